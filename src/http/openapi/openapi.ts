import { setImmediate } from 'node:timers/promises'
import * as z from 'zod'
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
} from 'zod-openapi'
import { scopes } from '../../core/scopes.ts'
import { Flag } from '../../core/shapes.ts'
import { trimEnd } from '../../core/text.ts'
import { cookieName } from '../cookie.ts'
import { type AnyRoute, isIdempotent, readersOf, routeOf, type RoutePath, routePaths } from '../route.ts'
import { brief, compact } from './compact.ts'
import type { Components, Document } from './document.ts'
import { ErrorBody, errorResponses, errorsOf } from './errors.ts'
import { keptIds } from './operation-ids.ts'
import { inOrder, rarelyRead } from './order.ts'
import { pathParameters } from './path-parameters.ts'

const info = `Identities with real mail for software agents, on your own server. Calls carry \`Authorization: Bearer <key>\`; bodies are JSON.
Lists return \`{data, has_more, next_cursor}\`: the next page is requested with \`cursor\`. Times are ISO 8601 in UTC, ids are opaque. Fields may be added to responses.
How the commonest things are done is at \`/llms.txt\`, the documentation at \`/docs\`.`

const ofPart = `${info}\nThese are the daily calls. All, also those of logins, tokens, domains and holds, are at \`/v1/openapi.json?all=true\`.`

/** `GET /v1/openapi.json`: each of the two documents is generated once, at its first request. */
export function openapiRoute(routes: readonly AnyRoute[], about: { version: string; publicUrl: string }): AnyRoute {
  const documents = new Map<boolean, Promise<Buffer>>()
  const described: AnyRoute = routeOf('Reference')('GET', '/openapi.json', {
    scope: 'public',
    rate: 'document',
    summary: 'Get the OpenAPI description',
    description:
      'The calls of programs in OpenAPI 3.1, with short descriptions; also as a page at `/docs`. With all=true every call, described in full.',
    query: z.strictObject({
      all: Flag.default(false).meta({
        description:
          'also the calls of the operator, of people who sign in, of SMS providers, and public documents; descriptions in full',
      }),
    }),
    download: 'application/json',
    handle: async ({ query: { all } }) => {
      const document = documents.get(all) ?? published([...routes, described], about, all)
      documents.set(all, document)
      return { type: 'application/json; charset=utf-8', bytes: await document, headers: { 'Content-Disposition': 'inline' } }
    },
  })
  return described
}

/** The document in bytes. Others have their turns between its steps, each of which took up to 270 ms on a slow machine. */
async function published(
  routes: readonly AnyRoute[],
  about: { version: string; publicUrl: string },
  all: boolean,
): Promise<Buffer> {
  await setImmediate()
  const whole = openapi(all ? routes : routes.filter(isDaily), about)
  await setImmediate()
  const described = all ? whole : { ...brief(whole), info: { ...whole.info, description: ofPart } }
  await setImmediate()
  const short = compact(described)
  await setImmediate()
  return Buffer.from(JSON.stringify(short))
}

/** What a program with a key calls daily: not what only people, the operator, SMS providers and strangers do, nor a section of its own. */
function isDaily({ tag, method, operator, local, raw }: AnyRoute): boolean {
  if (operator || local || raw || (tag === 'Account' && method !== 'GET')) return false
  return !rarelyRead.includes(tag)
}

/** Describes every spelling of every route. Throws when two routes would have one operation name: the summary must be unique. */
export function openapi(routes: readonly AnyRoute[], about: { version: string; publicUrl: string }): Document {
  const paths: ZodOpenApiPathsObject = {}
  const names = new Set<string>()
  const spellings = routePaths(routes)
  for (const spelling of spellings) {
    const described = operation(spelling)
    if (names.has(described.operationId!)) throw new Error(`Two operations are named ${described.operationId}`)
    names.add(described.operationId!)
    paths[templateOf(spelling)] = { ...paths[templateOf(spelling)], [spelling.method.toLowerCase()]: described }
  }
  const document = createDocument({
    openapi: '3.1.0',
    info: { title: 'Pillarbox API', version: about.version, description: info },
    servers: [{ url: trimEnd(about.publicUrl, '/') || '/' }],
    tags: [...new Set(inOrder(routes).map(({ tag }) => tag))].map((name) => ({ name })),
    security: [{ key: [] }, { session: [] }],
    components: {
      schemas: { Error: ErrorBody },
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
  }) as unknown as Document
  for (const spelling of spellings) {
    const { responses } = document.paths[templateOf(spelling)]![spelling.method.toLowerCase()]!
    if (spelling.route.download !== undefined) responses['206'] = { $ref: '#/components/responses/Part' }
    Object.assign(responses, errorsOf(spelling.route, spelling.path))
  }
  const made: Partial<Components> & Pick<Components, 'schemas' | 'securitySchemes'> = document.components
  return { ...document, components: { parameters: {}, headers: {}, ...made, responses: { ...errorResponses, Part: part } } }
}

/** `/v1/identities/:id` → `/v1/identities/{id}` */
function templateOf({ path }: RoutePath): string {
  return path.replaceAll(/:(\w+)/g, '{$1}')
}

function operation({ route, path, alias }: RoutePath): ZodOpenApiOperationObject {
  const open = route.scope === 'public'
  const header = isIdempotent(route) ? { header: z.object({ 'Idempotency-Key': idempotencyKey.optional() }) } : {}
  const params = pathParameters(path)
  const id = keptIds[`${route.method} ${route.path}`] ?? nameOf(route.summary)
  const receipt = receiptOf(route)
  return {
    operationId: alias ? `${id}By${nameOf(path.replaceAll(/[/:]/g, ' '), true)}` : id,
    tags: [route.tag],
    summary: route.summary,
    description: [
      alias ? `The same call as \`${route.method} /v1${route.path}\`.` : route.description,
      scopeText(route),
      receipt && `A key without ${anyOf(receipt.scopes)} gets only ${receipt.fields.map(quoted).join(', ')}.`,
    ]
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
    responses: { [route.status ?? 200]: success(route) },
    ...(receipt ? { 'x-receipt': receipt } : {}),
  }
}

function requestBody(route: AnyRoute) {
  const body = route.body!
  const example = route.example?.body === undefined ? {} : { example: route.example.body }
  return { required: !body.safeParse({}).success, content: { 'application/json': { schema: body, ...example } } }
}

function octets(type: string) {
  return { required: true, content: binary(type) }
}

/** What a request with the header `Range` is answered. */
const part = {
  description: 'A part, if the request has `Range` with one range; of downloads with `Accept-Ranges: bytes`',
  headers: { 'Content-Range': { schema: { type: 'string' } } },
  content: { '*/*': { schema: { type: 'string', format: 'binary' } } },
}

function binary(type: string) {
  return { [type]: { schema: z.string().meta({ format: 'binary' }) } }
}

function success(route: AnyRoute): ZodOpenApiResponseObject {
  if (route.download !== undefined) return { description: 'OK', content: binary(route.download) }
  return {
    description: route.status === 201 ? 'Created' : 'OK',
    ...(route.location ? { headers: z.object({ Location: location }) } : {}),
    content: { 'application/json': { schema: route.reply ?? z.object({}) } },
  }
}

function scopeText(route: AnyRoute): string {
  if (route.scope === 'public') return 'Requires no key.'
  return `Scope: ${anyOf([route.scope].flat())}${route.alsoScope ? `, and ${anyOf(route.alsoScope)}` : ''}.`
}

/** What a key with none of the scopes is answered: these fields of the reply. */
function receiptOf(route: AnyRoute): { scopes: readonly string[]; fields: readonly string[] } | undefined {
  const readers = readersOf(route)
  if (!readers) return undefined
  const shape = route.reply instanceof z.ZodObject ? route.reply.shape : {}
  return { scopes: readers.scopes, fields: readers.fields.filter((field) => field in shape) }
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

const location = z.string().meta({ header: { id: 'Location' }, description: 'the path of the created object' })

const idempotencyKey = z.string().min(1).max(255).meta({
  description: 'A repeated call with the same key and body gets the first response again, for 24 hours.',
})
