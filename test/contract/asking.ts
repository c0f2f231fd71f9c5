import { strict as assert } from 'node:assert'
import { generateSync } from 'otplib'
import * as z from 'zod'
import { type IdPrefix, newId } from '../../src/core/ids.ts'
import { openapi } from '../../src/http/openapi/openapi.ts'
import { type AnyRoute, type RoutePath, routePaths } from '../../src/http/route.ts'
import { fetchAs } from '../support/host.ts'
import { browser } from '../support/people.ts'
import { type Estate, freshToken, type Inhabited, person } from './inhabited.ts'

export interface Question {
  key?: string | null
  /** Of a session, instead of a key; then the call comes from a page of ours unless `headers` says otherwise. */
  cookie?: string
  method?: string
  query?: Record<string, string>
  /** Sent as JSON; a string as it is. */
  body?: unknown
  headers?: Record<string, string>
}

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

/** Asks calls of a box, and holds every answer to what all answers promise and to the published description. */
export class Asking {
  readonly spellings: RoutePath[]
  readonly #inhabited: Inhabited
  readonly #replies: Map<string, z.ZodType>

  constructor(inhabited: Inhabited) {
    this.#inhabited = inhabited
    // what providers call has forms and signatures of its own: test/sms; what is done on the machine itself: test/commands
    this.spellings = routePaths(inhabited.box.app.routes).filter(({ route }) => !route.raw && !route.local)
    this.#replies = repliesOf(inhabited.box.app.routes)
  }

  /** The path with the objects of an estate, some of them replaced. Throws for a parameter nobody has an object for. */
  path({ path }: Pick<RoutePath, 'path'>, estate: Estate, changes: Record<string, string> = {}): string {
    const before = path.split('/')
    return before
      .map((segment, index) => {
        if (!segment.startsWith(':')) return segment
        const named = `${before[index - 1]}/${segment}`
        // some calls need a thing in another state: `cards/:id/unfreeze`
        const places = [`${named}/${before[index + 1]}`, `${segment}/${before[index + 1]}`, segment, named]
        const object = changes[segment.slice(1)] ?? places.map((place) => estate.objects[place]).find((one) => one !== undefined)
        if (object === undefined) throw new Error(`${path}: no estate has an object for ${segment}; add one to inhabited.ts`)
        return object
      })
      .join('/')
  }

  async ask(spelling: RoutePath, path: string, question: Question = {}): Promise<Told> {
    const { own, box } = this.#inhabited
    const key = question.key === undefined ? (spelling.route.scope === 'public' ? null : own.key) : question.key
    const { body, query } = question
    const needed = needsSession(spelling) && question.key === undefined
    const cookie = question.cookie ?? (needed ? await this.#inhabited.plantSession(own.account) : undefined)
    const headers: Record<string, string> = {
      ...(cookie !== undefined ? { Cookie: cookie } : key === null ? {} : { Authorization: `Bearer ${key}` }),
      ...(cookie !== undefined || spelling.route.rate === 'sign-in' ? { Origin: box.url } : {}),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...question.headers,
    }
    const method = question.method ?? spelling.method
    const url = `${box.url}${path}${query ? `?${new URLSearchParams(query).toString()}` : ''}`
    const response =
      'Host' in headers
        ? await fetchAs(url, { method, headers })
        : await fetch(url, {
            method,
            redirect: 'manual',
            headers,
            ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
          })
    const octets = Buffer.from(await response.arrayBuffer())
    const text = octets.toString()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true && text !== ''
    const told = {
      status: response.status,
      headers: response.headers,
      text,
      size: octets.length,
      json: isJson ? JSON.parse(text) : undefined,
    }
    this.#check(spelling, method, told)
    if (spelling.path === '/v1/account/stop' && told.status === 200) await this.#resume()
    return told
  }

  /** What is asked next is asked of an account that is not stopped. */
  async #resume(): Promise<void> {
    const { own, box, plantSession } = this.#inhabited
    const { status } = await browser(box, await plantSession(own.account)).call('POST', '/v1/account/resume', {})
    assert.equal(status, 200)
  }

  /** The documented way to call a route that succeeds; a signed URL is asked for first. */
  async good(spelling: RoutePath, estate: Estate): Promise<{ path: string; question: Question }> {
    const { example, query } = spelling.route
    const path = this.path(spelling, estate)
    // first, as it may end sessions
    const input = example?.body && (await this.#withOwn(example.body, spelling, estate))
    const question: Question = {
      ...(needsSession(spelling) ? { cookie: await this.#inhabited.plantSession(this.#inhabited.own.account) } : {}),
      ...(example?.query ? { query: example.query } : {}),
      ...(input ? { body: input } : {}),
      ...(example?.headers ? { headers: example.headers } : {}),
    }
    if (query === undefined || !('signature' in shapeOf(query))) return { path, question }
    if (path.startsWith('/v1/exports/')) {
      const { body } = await this.#inhabited.box.call('GET', `/v1/jobs/${estate.objects[':job_id']}`, undefined, {
        key: estate.key,
      })
      return { path, question: { ...question, query: Object.fromEntries(new URL(body.result.url as string).searchParams) } }
    }
    const below = path.startsWith('/v1/media/')
      ? `sms/${estate.objects[':sms_id']}/media/0`
      : `emails/${estate.objects[':email_id']}/attachments/0`
    const signer = `/v1/identities/${estate.objects['identities/:id']}/${below}`
    const { body } = await this.#inhabited.box.call('GET', signer, undefined, { key: estate.key })
    return { path, question: { ...question, query: Object.fromEntries(new URL(body.url as string).searchParams) } }
  }

  /**
   * A message is put into a number that the estate has, an alias is new and of an identity of it, an agent is of an identity without one, a link is to a token that is free, an
   * address is suppressed that was not, and a password and a code are those of the account.
   */
  async #withOwn(body: unknown, { method, path }: RoutePath, estate: Estate): Promise<unknown> {
    if (path === '/v1/sms/loopback/inject') return { ...(body as object), to: estate.objects['number'] }
    if (path === '/v1/agents') return { ...(body as object), identity_id: estate.objects['agentless'] }
    if (path === '/v1/domains/:id/aliases') {
      return { identity_id: estate.objects['identities/:id'], local_part: newId('alias').slice(-12) }
    }
    if (path === '/v1/agents/:id/erc8004') return { ...(body as object), token_id: freshToken() }
    if (method === 'POST' && path === '/v1/suppressions') return { ...(body as object), email: `${newId('sup')}@elsewhere.test` }
    if (path === '/v1/accounts') {
      const name = newId('acct')
      return { ...(body as object), name, email: `${name}@example.com` }
    }
    if (path === '/v1/setup')
      return { ...(body as object), email: `${newId('acct')}@example.com`, token: await this.#inhabited.plantLink() }
    if (path === '/v1/people/invitations')
      return { ...(body as object), email: `${newId('inv')}@example.com`, password: person.password }
    if (path === '/v1/people/invitations/accept') return { ...(body as object), token: await this.#inhabited.plantInvitation() }
    if (path.startsWith('/v1/hold-links/'))
      return { ...(body as object), token: await this.#inhabited.plantHoldLink(estate.objects['holds/:id']!) }
    if (path === '/v1/account/password') return { current_password: person.password, password: person.password }
    if (!path.startsWith('/v1/account/totp') && path !== '/v1/session') return body
    const { box, own, plantSession } = this.#inhabited
    const input = { password: person.password }
    const page = browser(box, await plantSession(own.account))
    await page.call('DELETE', '/v1/account/totp', input)
    if (path === '/v1/session') return person
    if (path === '/v1/account/totp' && method === 'POST') return input
    const { body: begun } = await page.call('POST', '/v1/account/totp', input)
    return method === 'DELETE' ? input : { code: begun.error ? '000000' : generateSync({ secret: begun['secret'] as string }) }
  }

  #check(spelling: RoutePath, method: string, told: Told): void {
    const requestId = told.headers.get('x-request-id') ?? ''
    assert.match(requestId, /^req_[0-9a-z]{26}$/)
    assert.match(
      told.headers.get('ratelimit-policy') ?? '',
      /^"(?:key|session|account|sign-in|address|document|callback)";q=\d+;w=60$/,
    )
    assert.match(told.headers.get('ratelimit') ?? '', /^"(?:key|session|account|sign-in|address|document|callback)";r=\d+;t=\d+$/)
    const kept = spelling.route.document === true && told.status < 400
    assert.match(told.headers.get('cache-control') ?? '', kept ? /^public, max-age=300$/ : /no-store/)
    assert.equal(told.headers.get('x-content-type-options'), 'nosniff')
    if (method === 'HEAD') return
    if (told.status >= 400) {
      const { error } = errorShape.parse(told.json)
      assert.equal(error.status, told.status)
      assert.equal(statuses[error.type], told.status)
      assert.equal(error.request_id, requestId)
      return
    }
    assert.equal(told.status, spelling.route.status ?? 200)
    const { download } = spelling.route
    if (download !== undefined) {
      // what is stored has a type of its own
      if (download !== '*/*') assert.equal(told.headers.get('content-type')?.split(';')[0], download)
      return
    }
    const schema = this.#replies.get(`${method} ${spelling.path}`)
    if (!schema) throw new Error(`${method} ${spelling.path} has no reply in the description`)
    const parsed = schema.safeParse(told.json)
    if (!parsed.success)
      throw new Error(`${method} ${spelling.path}: ${z.prettifyError(parsed.error)}\n${told.text.slice(0, 2000)}`)
  }
}

/** What is asked of the session itself, which no key has. */
export function needsSession({ method, path }: RoutePath): boolean {
  return (
    (path === '/v1/session' && method !== 'POST') ||
    path.startsWith('/v1/account/totp') ||
    path === '/v1/account/resume' ||
    changesPeople({ method, path })
  )
}

function changesPeople({ method, path }: Pick<RoutePath, 'method' | 'path'>): boolean {
  return method !== 'GET' && path.startsWith('/v1/people') && !path.endsWith('/accept')
}

/** An id of the same kind that nobody has. */
export function absent(id: string): string {
  const prefix = id.slice(0, id.indexOf('_'))
  return id.includes('_') ? newId(prefix as IdPrefix) : '7'
}

/** The fields of an object schema; none for any other. */
export function shapeOf(schema: z.ZodType | undefined): Record<string, z.ZodType> {
  return schema instanceof z.ZodObject ? schema.shape : {}
}

/** By the text of a description: to read it takes seconds, and other files of this process have the same. */
const known = new Map<string, Map<string, z.ZodType>>()

/** What the description says each call answers, read back into schemas that refuse what it does not name. */
function repliesOf(routes: readonly AnyRoute[]): Map<string, z.ZodType> {
  const text = JSON.stringify(openapi(routes, { version: '0', publicUrl: 'http://box.test' }))
  const replies = known.get(text) ?? readReplies(text, routes)
  known.set(text, replies)
  return replies
}

function readReplies(text: string, routes: readonly AnyRoute[]): Map<string, z.ZodType> {
  const document = JSON.parse(text) as {
    paths: Record<string, Record<string, { responses: Record<string, { content?: Record<string, { schema: object }> }> }>>
    components: { schemas: Record<string, object> }
  }
  const named = local(document.components.schemas)
  const replies = new Map<string, z.ZodType>()
  for (const { method, path, route } of routePaths(routes)) {
    const operation = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]![method.toLowerCase()]!
    const schema = operation.responses[route.status ?? 200]?.content?.['application/json']?.schema
    if (schema) replies.set(`${method} ${path}`, z.fromJSONSchema({ ...local(schema), $defs: named } as never))
  }
  return replies
}

/** References into the components become references into `$defs`. */
function local<Schema extends object>(schema: Schema): Schema {
  return JSON.parse(JSON.stringify(schema).replaceAll('#/components/schemas/', '#/$defs/')) as Schema
}
