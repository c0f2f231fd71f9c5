import { strict as assert } from 'node:assert'
import * as z from 'zod'
import type { Schema } from '../../src/http/openapi/document.ts'
import { openapi } from '../../src/http/openapi/openapi.ts'
import { type AnyRoute, type RoutePath, routePaths } from '../../src/http/route.ts'

export interface Told {
  status: number
  headers: Headers
  text: string
  /** Octets of the body. */
  size: number
  json: Json
}

type Json = ReturnType<typeof JSON.parse>

const errorShape = z.strictObject({
  error: z.strictObject({
    type: z.string(),
    message: z.string().min(10),
    param: z.string().optional(),
    status: z.int(),
    code: z.string().regex(/^[a-z_]+$/),
    request_id: z.string(),
  }),
})

const statuses: Record<string, number> = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  rate_limited: 429,
  internal_error: 500,
}

/** What the description says of a call. */
interface Operation {
  /** The statuses that it names. */
  statuses: ReadonlySet<number>
  /** Of what is answered when all is well; none for a download. */
  reply: z.ZodType | undefined
  /** Of what a key that may write and not read is answered. */
  receipt: z.ZodType | undefined
}

/** What the published description says of the answers of each call. */
export class Described {
  readonly #operations: Map<string, Operation>

  constructor(routes: readonly AnyRoute[]) {
    this.#operations = operationsOf(routes)
  }

  /** True if the description names this status for this call. */
  names({ method, path }: Pick<RoutePath, 'method' | 'path'>, status: number): boolean {
    return this.#operations.get(`${method} ${path}`)?.statuses.has(status) ?? false
  }

  /**
   * Throws unless an answer is what all answers promise, and what the description says of this call; `limited` if who calls may not be allowed
   * to read what was written.
   */
  check(spelling: RoutePath, method: string, told: Told, limited = false): void {
    checkAnswer(told, { method, kept: spelling.route.document === true && told.status < 400 })
    if (method === 'HEAD' || told.status >= 400) return
    const { download, status = 200 } = spelling.route
    // a part of a download, which the request asked for by Range
    if (download !== undefined && told.headers.has('content-range')) assert.equal(told.status, 206)
    else assert.equal(told.status, status)
    if (download !== undefined) {
      // what is stored has a type of its own
      if (download !== '*/*') assert.equal(told.headers.get('content-type')?.split(';')[0], download)
      return
    }
    const { reply, receipt } = this.#operations.get(`${method} ${spelling.path}`) ?? {}
    if (limited && receipt?.safeParse(told.json).success) return
    if (!reply) throw new Error(`${method} ${spelling.path} has no reply in the description`)
    const parsed = reply.safeParse(told.json)
    if (!parsed.success)
      throw new Error(`${method} ${spelling.path}: ${z.prettifyError(parsed.error)}\n${told.text.slice(0, 2000)}`)
  }
}

/** Throws unless an answer is what all answers promise, whatever was called; `kept` if a cache may keep it. */
export function checkAnswer(told: Told, { method, kept = false }: { method: string; kept?: boolean }): void {
  const requestId = told.headers.get('x-request-id') ?? ''
  assert.match(requestId, /^req_[0-9a-z]{26}$/)
  assert.match(
    told.headers.get('ratelimit-policy') ?? '',
    /^"(?:key|session|account|sign-in|address|document|callback)";q=\d+;w=60$/,
  )
  assert.match(told.headers.get('ratelimit') ?? '', /^"(?:key|session|account|sign-in|address|document|callback)";r=\d+;t=\d+$/)
  assert.match(told.headers.get('cache-control') ?? '', kept ? /^public, max-age=300$/ : /no-store/)
  assert.equal(told.headers.get('x-content-type-options'), 'nosniff')
  if (method === 'HEAD' || told.status < 400) return
  const { error } = errorShape.parse(told.json)
  assert.equal(error.status, told.status)
  assert.equal(statuses[error.type], told.status)
  assert.equal(error.request_id, requestId)
}

/** By the text of a description: to read it takes seconds, and other files of this process have the same. */
const known = new Map<string, Map<string, Operation>>()

/** What the description says of each call, read back into schemas that refuse what it does not name. */
function operationsOf(routes: readonly AnyRoute[]): Map<string, Operation> {
  const text = JSON.stringify(openapi(routes, { version: '0', publicUrl: 'http://box.test' }))
  const operations = known.get(text) ?? readOperations(text, routes)
  known.set(text, operations)
  return operations
}

function readOperations(text: string, routes: readonly AnyRoute[]): Map<string, Operation> {
  const document = JSON.parse(text) as {
    paths: Record<string, Record<string, DescribedCall>>
    components: { schemas: Record<string, Schema> }
  }
  const named = local(document.components.schemas)
  const read = (one: Schema): z.ZodType => z.fromJSONSchema({ ...local(one), $defs: named } as never)
  return new Map(
    routePaths(routes).map(({ method, path, route }): [string, Operation] => {
      const call = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]![method.toLowerCase()]!
      const { responses, 'x-receipt': receipt } = call
      const schema = responses[route.status ?? 200]?.content?.['application/json']?.schema
      const whole = schema?.$ref === undefined ? schema : document.components.schemas[schema.$ref.split('/').at(-1)!]
      return [
        `${method} ${path}`,
        {
          statuses: new Set(Object.keys(responses).map(Number)),
          reply: schema && read(schema),
          receipt: receipt && read(only(whole!, receipt.fields)),
        },
      ]
    }),
  )
}

interface DescribedCall {
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>
  'x-receipt'?: { fields: string[] }
}

/** An object with these fields and no others. */
function only({ properties = {}, required = [] }: Schema, fields: readonly string[]): Schema {
  return {
    type: 'object',
    properties: Object.fromEntries(Object.entries(properties).filter(([name]) => fields.includes(name))),
    required: required.filter((name) => fields.includes(name)),
    additionalProperties: false,
  }
}

/** References into the components become references into `$defs`. */
function local<Schemas extends object>(schemas: Schemas): Schemas {
  return JSON.parse(JSON.stringify(schemas).replaceAll('#/components/schemas/', '#/$defs/')) as Schemas
}
