import * as z from 'zod'
import type { Document, Schema } from './document.ts'
import { anyOf, openapi } from './openapi.ts'
import { type AnyRoute, type RoutePath, routePaths } from '../route.ts'
import { inOrder, tagOrder } from './order.ts'

/** An event type in the reference. */
interface DescribedEvent {
  name: string
  summary: string
  scopes: readonly string[]
  data: z.ZodType
}

const basics = `Every call except the public ones carries \`Authorization: Bearer <key>\`. Bodies are JSON (\`Content-Type: application/json\`, UTF-8); no body is \`{}\`.
Unknown fields and parameters are refused, with the nearest known one named. Times are ISO 8601 in UTC, ids are opaque.

**Lists** return \`{data, has_more, next_cursor}\`; request the next page with \`cursor\`. A page has fewer rows than \`limit\` where they are large (about 1 MiB together).

**Errors** have one shape, \`{"error": {type, message, param, status, code, request_id}}\`, and one of these types: \`invalid_request\` 400, \`unauthorized\` 401,
\`forbidden\` 403, \`not_found\` 404, \`conflict\` 409, \`rate_limited\` 429, \`internal_error\` 500. \`code\` is a stable word for programs; \`request_id\` is also in
\`X-Request-Id\`.

**Idempotency.** A POST, and a GET that says so, may carry \`Idempotency-Key\` (1 to 255 printable characters). The same key with the same call and body returns the first
response again for 24 hours (\`Idempotency-Replayed: true\`); with another body, or while the first is still being answered, it is a \`conflict\`. After a 400, a
429 or a 5xx the same key is free, also for another body; any other error is returned again. A call that sends or moves a message is answered with the message as it is now. A response with a secret (such as a new API key) is returned again only to the
same secret of an API key, or the same session: for any other it is a first call. \`idempotency_answer_gone\` (404): what the call was about was deleted since;
\`idempotency_answer_not_kept\` (409): its response had more than 256 KiB, or no room in its account; \`idempotency_interrupted\`: a restart interrupted the first call, so check
whether it took effect.

**Receipts.** A key that may write something but not read it gets a receipt (ids, status, times, and what the call says besides: \`x-receipt\` in the OpenAPI document); what it creates itself is returned whole.

**Rate limits** are in every response as \`RateLimit-Policy\` and \`RateLimit\`; a 429 has \`Retry-After\` in seconds.`

const bounds = `| What | Bound | Beyond it |
| --- | --- | --- |
| a body | 1 MiB; 64 KiB on calls without a key; 40 MiB where it is an e-mail | \`body_too_large\` |
| levels of JSON | 32 | \`too_deep\` |
| tokens of JSON (opening braces and brackets, commas, and colons outside of strings) | 10,000 | \`too_many_tokens\` |
| a key of JSON | 1,024 bytes | \`too_long_key\` |
| JSON outside of strings, such as white space | 1,000,000 bytes | \`too_much_padding\` |
| escapes in strings | 6,291,456 | \`too_many_escapes\` |
| bodies, unread responses and frames, messages and files on their way, together | 64 MiB in each account, 24 MiB of callers without a key, 112 MiB together; an account with less than 1 MiB is not refused because of others | 429 \`too_much_at_once\` or \`too_much_unread\` |
| bodies being read at once | 48 MiB in each account, 64 MiB together, 24 MiB of callers without a key; an account with less than 1 MiB is not refused because of others | 429 \`too_much_at_once\` |
| stored e-mails being read for an attachment, an HTML page or to be forwarded, or waiting for it | 96 MiB in each account, 192 MiB together; an account with less than 1 MiB is not refused because of others | 429 \`too_much_at_once\` |
| attachments being read as text, one at a time, or waiting for it; one of less than 8 MiB counts as 8 MiB | 64 MiB in each account, 256 MiB together; an account with no more than 8 MiB is not refused because of others | 429 \`too_much_at_once\` |
| responses that an account has not read | 48 MiB | 429 \`too_much_unread\` |
| responses that all callers have not read | 112 MiB | connections of the caller with most of them are closed |
| calls of one account (without a key: of one network) that wait for their turn | 1,000 | 429 \`too_many_waiting\` |
| requests of one connection that are not answered yet | 8 | the connection is closed |`

/** The API as a page of Markdown: a list of all routes, then every call with its body and response, every event, every object. */
export function reference(routes: readonly AnyRoute[], events: readonly DescribedEvent[]): string {
  const document = openapi(routes, { version: '1', publicUrl: '' })
  const answered = (document.components?.schemas ?? {}) as Record<string, Schema>
  const named = Object.entries({ ...carried(events), ...answered })
  const calls = inOrder(routes).map((route) => routePaths([route]).find(({ alias }) => !alias)!)
  const tags = [...new Set(calls.map(({ route }) => route.tag))]
  return [
    '# API reference',
    'Generated from the route declarations. A running box serves the same at `/docs`, and in OpenAPI 3.1 at `/v1/openapi.json` (`?all=true`: with the calls of the operator too).',
    basics,
    '## All routes',
    index(calls),
    ...tags.flatMap((tag) => [
      `## ${tag}`,
      ...calls.filter(({ route }) => route.tag === tag).map((spelling) => call(spelling, document)),
    ]),
    ...(events.length === 0 ? [] : ['## Events', eventTable(events)]),
    '## Objects',
    ...named
      .filter(([name]) => name !== 'Json')
      .toSorted(([one], [other]) => one.localeCompare(other, 'en'))
      .map(([name, schema]) => [`### ${titleOf(name)}`, schema.description ?? '', object(schema)].filter(Boolean).join('\n\n')),
    '## Bounds of requests and responses',
    bounds,
    '',
  ].join('\n\n')
}

/** Every route with its scope and one line, under its tag. */
function index(calls: readonly RoutePath[]): string {
  const rows = calls.flatMap(({ method, path, route }, at) => [
    ...(calls[at - 1]?.route.tag === route.tag ? [] : [[`**[${route.tag}](#${anchor(route.tag)})**`, '', '']]),
    [
      `\`${method} ${path}\``,
      scopesOf(route),
      `[${route.summary}](#${anchor(route.summary)})${route.operator ? ' (operator)' : ''}`,
    ],
  ])
  return table(['Call', 'Scope', ''], rows)
}

function scopesOf({ scope, alsoScope }: AnyRoute): string {
  return scope === 'public'
    ? 'public'
    : [scope, ...(alsoScope ? [alsoScope] : [])].map((names) => anyOf([names].flat())).join(', and ')
}

/** The data of events, by name: some of it is in no response of a call. */
function carried(events: readonly DescribedEvent[]): Record<string, Schema> {
  const schemas = events.map(({ data }) => z.toJSONSchema(data, { io: 'output' }) as { $defs?: Record<string, Schema> })
  return Object.assign({}, ...schemas.map(({ $defs }) => $defs ?? {})) as Record<string, Schema>
}

function object(schema: Schema): string {
  return schema.properties ? fields(schema) : typeOf(schema)
}

function call({ method, path, route }: RoutePath, document: Document): string {
  const operation = document.paths?.[path.replaceAll(/:(\w+)/g, '{$1}')]?.[method.toLowerCase() as 'get']
  const body = operation?.requestBody as { content?: Record<string, { schema?: Schema }> } | undefined
  const answer = operation?.responses?.[String(route.status ?? 200)] as
    | { content?: Record<string, { schema?: Schema }> }
    | undefined
  const query = (
    (operation?.parameters ?? []) as unknown as {
      name: string
      in: string
      required?: boolean
      schema?: Schema
      description?: string
    }[]
  ).filter((parameter) => parameter.in === 'query')
  const taken = body?.content?.['application/json']?.schema
  const given = answer?.content?.['application/json']?.schema
  return [
    `### ${route.summary}`,
    [`\`${method} ${path}\``, ...(route.aliases ?? []).map((alias) => `\`${method} /v1${alias}\``)].join(' or '),
    operation?.description ?? '',
    query.length === 0
      ? ''
      : table(
          ['Query', 'Type', 'Meaning'],
          query.map(({ name, required, schema, description }) => [
            `\`${name}\``,
            `${typeOf(schema ?? {})}${required ? ', required' : ''}`,
            meaning({ ...schema, ...(description ? { description } : {}) }),
          ]),
        ),
    taken ? `Body: ${shape(taken)}` : '',
    route.upload === undefined ? '' : `Body: raw bytes (\`${route.upload}\` or any other type) of any length`,
    route.example?.query ? `Example: \`?${new URLSearchParams(route.example.query).toString()}\`` : '',
    route.example?.body === undefined || route.upload !== undefined
      ? ''
      : `\`\`\`json\n${JSON.stringify(route.example.body, null, 2)}\n\`\`\``,
    `Response ${route.status ?? 200}: ${given ? shape(given) : route.download ? downloaded(route.download) : 'nothing'}`,
  ]
    .filter(Boolean)
    .join('\n\n')
}

function downloaded(type: string): string {
  return `\`${type}\`; with \`Accept-Ranges: bytes\`, a request with \`Range\` and one range in it is answered with that part, 206`
}

function shape(schema: Schema): string {
  return schema.$ref || !schema.properties ? typeOf(schema) : `an object:\n\n${fields(schema)}`
}

function fields(schema: Schema): string {
  const required = new Set(schema.required)
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => [
    `\`${name}\``,
    `${typeOf(field)}${required.has(name) ? '' : ', optional'}`,
    meaning(field),
  ])
  return rows.length === 0 ? 'No fields.' : table(['Field', 'Type', 'Meaning'], rows)
}

function eventTable(events: readonly DescribedEvent[]): string {
  const rows = events.map(({ name, summary, scopes, data }) => [
    `\`${name}\``,
    summary,
    link(z.globalRegistry.get(data)?.id),
    anyOf(scopes),
  ])
  return table(['Event', 'When', 'Data', 'Scope'], rows)
}

function typeOf(schema: Schema): string {
  if (schema.$ref) return link(schema.$ref.split('/').at(-1))
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.enum) return schema.enum.map((value) => `\`${String(value)}\``).join(', ')
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return [...new Set(choices.map((choice) => typeOf(choice)))].join(' or ')
  if (schema.items) return `list of ${typeOf(schema.items)}`
  if (schema.properties) return `object {${Object.keys(schema.properties).join(', ')}}`
  const type = [schema.type ?? 'any'].flat().join(' or ')
  return schema.format ? `${type} (${schema.format})` : type
}

function meaning({ description, default: fallback }: Schema): string {
  return [description ?? '', fallback === undefined ? '' : `default ${JSON.stringify(fallback)}`].filter(Boolean).join('; ')
}

function link(name: string | undefined): string {
  if (name === undefined) return 'object'
  return name === 'Json' ? 'any JSON' : `[${name}](#${anchor(titleOf(name))})`
}

/** The heading of an object: not that of a tag. */
function titleOf(name: string): string {
  return tagOrder.includes(name) ? `${name} (object)` : name
}

/** The name of a heading in links. */
export function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

function table(head: string[], rows: string[][]): string {
  return [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`)
    .join('\n')
}
