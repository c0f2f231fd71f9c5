import * as z from 'zod'
import type { EventType } from '../../../events/model.ts'
import type { Schema } from '../../../http/openapi/document.ts'
import { openapi } from '../../../http/openapi/openapi.ts'
import { type AnyRoute, isIdempotent, routePaths } from '../../../http/route.ts'

/** What a method sends beside the ids in its path. */
export interface MethodInput {
  /** `octets`: bytes as they are. */
  kind: 'query' | 'body' | 'octets'
  /** Undefined for octets. */
  schema: Schema | undefined
  required: boolean
}

/** What a method returns; for a page the schema is that of its rows. */
export interface MethodAnswer {
  kind: 'json' | 'page' | 'text' | 'octets'
  schema: Schema | undefined
}

/** A method of the client libraries: `group.name`. */
export interface SdkMethod {
  group: string
  name: string
  httpMethod: AnyRoute['method']
  /** Below `/v1`: `/identities/{identity_id}/emails`. */
  path: string
  /** The names in braces, in their order. */
  params: string[]
  input: MethodInput | undefined
  answer: MethodAnswer
  /** True if `Idempotency-Key` is supported. */
  idempotent: boolean
  summary: string
}

/** All that the client libraries are printed from, in terms of no language. */
export interface SdkTable {
  methods: SdkMethod[]
  /** The named schemas that methods and events use, by name. */
  schemas: Map<string, Schema>
  /** The schema of the data of each event, by the event's name. */
  events: Map<string, Schema>
}

/** The name under which every schema of any JSON appears. */
export const anyJson = 'Json'

type Described = Pick<EventType, 'name' | 'data'>

/** Throws when a route cannot be a method: it has a query and a body. */
export function sdkTable(routes: readonly AnyRoute[], eventTypes: readonly Described[]): SdkTable {
  const document = openapi(routes, { version: '', publicUrl: '' }) as unknown as Document
  const events = new Map<string, Schema>()
  const named: Record<string, Schema> = { ...document.components?.schemas }
  for (const { name, data } of eventTypes) {
    const { $defs = {}, ...schema } = z.toJSONSchema(data, { io: 'output' }) as Schema & { $defs?: Record<string, Schema> }
    for (const [id, one] of Object.entries($defs)) named[id] ??= one
    const id = z.globalRegistry.get(data)?.id
    if (id !== undefined) named[id] ??= schema
    events.set(name, id === undefined ? schema : { $ref: id })
  }
  const methods = routes.flatMap((route) => (route.sdk === undefined ? [] : [methodOf(route, route.sdk, document, named)]))
  methods.sort((one, other) => one.group.localeCompare(other.group, 'en'))
  const roots = [...methods.flatMap(({ input, answer }) => [input?.schema, answer.schema]), ...events.values()]
  return { methods, schemas: reachable(roots, named), events }
}

/** The name that a schema refers to: `Email`; `Json` for zod's own names of schemas that refer to themselves. */
export function referred({ $ref }: Schema): string | undefined {
  const name = $ref?.split('/').at(-1)
  return name?.startsWith('__schema') ? anyJson : name
}

function methodOf(route: AnyRoute, sdk: string, document: Document, named: Readonly<Record<string, Schema>>): SdkMethod {
  const [group, name] = sdk.split('.') as [string, string]
  const spelling = routePaths([route]).find(({ alias }) => !alias)!
  const whole = spelling.path.replaceAll(/:(\w+)/g, '{$1}')
  const operation = document.paths[whole]![route.method.toLowerCase()]!
  const path = namedPath(spelling.path)
  return {
    group,
    name,
    httpMethod: route.method,
    path,
    params: [...path.matchAll(/\{(\w+)\}/g)].map(([, param]) => param!),
    input: inputOf(route, operation),
    answer: answerOf(route, operation, named),
    idempotent: isIdempotent(route),
    summary: route.summary,
  }
}

interface Document {
  paths: Record<string, Record<string, Operation>>
  components?: { schemas?: Record<string, Schema> }
}

interface Operation {
  parameters?: { name: string; in: string; required?: boolean; schema?: Schema; description?: string }[]
  requestBody?: { required?: boolean; content: Record<string, { schema?: Schema }> }
  responses: Record<string, { content?: Record<string, { schema?: Schema }> }>
}

/** `/v1/api-keys/:id/rotate` → `/api-keys/{api_key_id}/rotate`: as an argument, an id says what it is of. */
function namedPath(path: string): string {
  const parts = path.replace(/^\/v1/, '').split('/')
  return parts
    .map((part, index) => {
      if (!part.startsWith(':')) return part
      const one = parts[index - 1]!.replaceAll('-', '_').replace(/ies$/, 'y').replace(/s$/, '')
      return part === ':id' ? `{${one}_id}` : `{${part.slice(1)}}`
    })
    .join('/')
}

function inputOf(route: AnyRoute, { parameters = [], requestBody }: Operation): MethodInput | undefined {
  if (route.upload !== undefined) return { kind: 'octets', schema: undefined, required: true }
  const query = parameters.filter((parameter) => parameter.in === 'query')
  if (query.length > 0 && requestBody) throw new Error(`${route.sdk} has a query and a body`)
  if (requestBody) {
    return { kind: 'body', schema: requestBody.content['application/json']!.schema!, required: requestBody.required ?? false }
  }
  if (query.length === 0) return undefined
  const required = query.filter((parameter) => parameter.required).map(({ name }) => name)
  const properties = Object.fromEntries(
    query.map(({ name, schema, description }) => [name, { ...schema, ...(description ? { description } : {}) }]),
  )
  return { kind: 'query', schema: { type: 'object', properties, required }, required: required.length > 0 }
}

function answerOf(route: AnyRoute, { responses }: Operation, named: Readonly<Record<string, Schema>>): MethodAnswer {
  if (route.download !== undefined) {
    return { kind: route.download.startsWith('text/') ? 'text' : 'octets', schema: undefined }
  }
  const schema = responses[String(route.status ?? 200)]?.content?.['application/json']?.schema ?? {}
  const { properties } = named[referred(schema) ?? ''] ?? schema
  const rows = properties?.['data']?.items
  const paged = route.query !== undefined && rows && properties['has_more'] && properties['next_cursor']
  return paged ? { kind: 'page', schema: rows } : { kind: 'json', schema }
}

/** The named schemas that these use, directly or by others; by name. */
function reachable(roots: readonly (Schema | undefined)[], named: Readonly<Record<string, Schema>>): Map<string, Schema> {
  const found = new Map<string, Schema>()
  const open: unknown[] = [...roots]
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next !== 'object' || next === null) continue
    const name = Array.isArray(next) ? undefined : referred(next)
    const schema = name === undefined || name === anyJson ? undefined : named[name]
    if (schema && !found.has(name!)) {
      found.set(name!, schema)
      open.push(schema)
    }
    open.push(...Object.entries(next).flatMap(([key, value]) => (key === 'override' ? [] : [value as unknown])))
  }
  return new Map([...found].toSorted(([one], [other]) => one.localeCompare(other, 'en')))
}

/** One of these types; two that differ for one language alone are one for the other. */
export function union(types: readonly string[]): string {
  return [...new Set(types)].join(' | ')
}
