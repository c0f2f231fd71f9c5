import { keptIds } from './operation-ids.ts'
import * as z from 'zod'
import {
  createDocument,
  type createDocument as Create,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
} from 'zod-openapi'
import { scopes } from '../../core/scopes.ts'
import { trimEnd } from '../../core/text.ts'
import { cookieName } from '../cookie.ts'
import { inOrder } from './order.ts'
import { type AnyRoute, isIdempotent, readersOf, routeOf, type RoutePath, routePaths } from '../route.ts'

/** An OpenAPI 3.1 document. */
export type Document = ReturnType<typeof Create>

const ErrorBody = z
  .object({
    error: z.object({
      type: z.enum(['invalid_request', 'unauthorized', 'forbidden', 'not_found', 'conflict', 'rate_limited', 'internal_error']),
      message: z.string(),
      param: z.string().optional().meta({ description: 'path of the invalid parameter: `metadata.colour`' }),
      status: z.int(),
      code: z.string().meta({ description: 'a stable machine-readable code' }),
      request_id: z.string().meta({ description: 'also in X-Request-Id' }),
    }),
  })
  .meta({ id: 'Error', description: 'The shape of every error.' })

const failures: Record<number, ZodOpenApiResponseObject> = {
  400: failure(
    'BadRequest',
    'invalid_request: a parameter is missing or invalid; `param` names it, the message states what is allowed.',
  ),
  401: failure('Unauthorized', 'unauthorized: missing or invalid API key or session.'),
  403: failure('Forbidden', 'forbidden: the key lacks the scope, or a rule or plan limit does not allow the call.'),
  404: failure('NotFound', 'not_found: no such object, or it belongs to another account.'),
  409: failure('Conflict', 'conflict: the object exists already, or its state does not allow the call.'),
  429: failure('RateLimited', 'rate_limited: too many requests; `Retry-After` states when to try again.'),
  500: failure('InternalError', 'internal_error: an error of the server.'),
}

/** `GET /v1/openapi.json`: generated once, at the first request. */
export function openapiRoute(routes: readonly AnyRoute[], about: { version: string; publicUrl: string }): AnyRoute {
  let document: Buffer | undefined
  const described: AnyRoute = routeOf('Reference')('GET', '/openapi.json', {
    scope: 'public',
    rate: 'document',
    summary: 'Get the OpenAPI description',
    description: 'Every call, in OpenAPI 3.1; also as a page at `/docs`.',
    download: 'application/json',
    handle: async () => {
      document ??= Buffer.from(JSON.stringify(openapi([...routes, described], about)))
      return { type: 'application/json; charset=utf-8', bytes: document, headers: { 'Content-Disposition': 'inline' } }
    },
  })
  return described
}

/** Describes every spelling of every route. Throws when two routes would have one operation name: the summary must be unique. */
export function openapi(routes: readonly AnyRoute[], about: { version: string; publicUrl: string }): Document {
  const paths: ZodOpenApiPathsObject = {}
  const names = new Set<string>()
  for (const spelling of routePaths(routes)) {
    const path = spelling.path.replaceAll(/:(\w+)/g, '{$1}')
    const described = operation(spelling)
    if (names.has(described.operationId!)) throw new Error(`Two operations are named ${described.operationId}`)
    names.add(described.operationId!)
    paths[path] = { ...paths[path], [spelling.method.toLowerCase()]: described }
  }
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Pillarbox API',
      version: about.version,
      description: 'Identities with real mail for software agents, on your own server.',
    },
    servers: [{ url: trimEnd(about.publicUrl, '/') || '/' }],
    tags: [...new Set(inOrder(routes).map(({ tag }) => tag))].map((name) => ({ name })),
    security: [{ key: [] }, { session: [] }],
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key: `Authorization: Bearer pbx_…`' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: cookieName(about.publicUrl),
          description: 'The cookie set by `POST /v1/session`. Calls that change something also require the header `Origin`.',
        },
      },
    },
    paths,
  })
}

function operation({ route, path, alias }: RoutePath): ZodOpenApiOperationObject {
  const open = route.scope === 'public'
  const header = isIdempotent(route) ? { header: z.object({ 'Idempotency-Key': idempotencyKey.optional() }) } : {}
  const params = pathParams(path)
  const id = keptIds[`${route.method} ${route.path}`] ?? nameOf(route.summary)
  return {
    operationId: alias ? `${id}By${nameOf(path.replaceAll(/[/:]/g, ' '), true)}` : id,
    tags: [route.tag],
    summary: route.summary,
    description: [route.description, alias ? `The same call as \`${route.method} /v1${route.path}\`.` : '', scopeText(route)]
      .filter(Boolean)
      .join('\n\n'),
    ...(open ? { security: [] } : {}),
    requestParams: {
      ...(params ? { path: params } : {}),
      ...(route.query ? { query: route.query as z.ZodObject } : {}),
      ...header,
    },
    ...(route.body ? { requestBody: requestBody(route) } : {}),
    ...(route.upload === undefined ? {} : { requestBody: octets(route.upload) }),
    responses: { [route.status ?? 200]: success(route), ...errorsOf(route, path) },
  }
}

function requestBody(route: AnyRoute) {
  const body = route.body!
  const example = route.example?.body === undefined ? {} : { example: route.example.body }
  return { required: !body.safeParse({}).success, content: { 'application/json': { schema: body, ...example } } }
}

function octets(type: string) {
  return { required: true, content: { [type]: { schema: z.string().meta({ format: 'binary' }) } } }
}

function success(route: AnyRoute): ZodOpenApiResponseObject {
  if (route.download !== undefined) {
    return { description: route.summary, content: { [route.download]: { schema: z.string().meta({ format: 'binary' }) } } }
  }
  return {
    description: route.summary,
    ...(route.location
      ? { headers: z.object({ Location: z.string().meta({ description: 'the path of the created object' }) }) }
      : {}),
    content: { 'application/json': { schema: route.reply ?? z.object({}) } },
  }
}

function errorsOf(route: AnyRoute, path: string): Record<string, ZodOpenApiResponseObject> {
  const statuses = [400, 429, 500]
  if (route.scope !== 'public') statuses.push(401, 403)
  if (path.includes(':')) statuses.push(404)
  if (route.method === 'POST' || route.method === 'PATCH' || isIdempotent(route)) statuses.push(409)
  return Object.fromEntries(statuses.map((status) => [status, failures[status]!]))
}

function pathParams(path: string): z.ZodObject | undefined {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
  if (names.length === 0) return undefined
  return z.object(Object.fromEntries(names.map((name) => [name, z.string()])))
}

function scopeText(route: AnyRoute): string {
  if (route.scope === 'public') return 'Requires no key.'
  const readers = readersOf(route)
  const shape = route.reply instanceof z.ZodObject ? route.reply.shape : {}
  const fields = readers?.fields.filter((field) => field in shape)
  return [
    `Scope: ${anyOf([route.scope].flat())}${route.reads ? `, and ${anyOf(route.reads)}` : ''}.`,
    ...(readers ? [`A key without ${anyOf(readers.scopes)} gets only ${fields!.map(quoted).join(', ')}.`] : []),
  ].join(' ')
}

/** Scopes of which one is needed, in words. */
export function anyOf(names: readonly string[]): string {
  return names.length === scopes.length ? 'any' : names.map(quoted).join(' or ')
}

function quoted(name: string): string {
  return `\`${name}\``
}

/** `Send an e-mail` → `sendEmail` */
function nameOf(summary: string, upper = false): string {
  const words = summary
    .replaceAll(/\be-mail/gi, 'email')
    .replaceAll(/['’]s\b/g, '')
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '' && !/^(an?|the)$/i.test(word))
  return words
    .map((word, index) => (index === 0 && !upper ? word.toLowerCase() : word[0]!.toUpperCase() + word.slice(1)))
    .join('')
}

function failure(id: string, description: string): ZodOpenApiResponseObject {
  return { id, description, content: { 'application/json': { schema: ErrorBody } } }
}

const idempotencyKey = z.string().min(1).max(255).meta({
  description: 'A repeated call with the same key and body gets the first response again, for 24 hours.',
})
