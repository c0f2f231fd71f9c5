import * as z from 'zod'
import { type Document, openapi } from './openapi.ts'
import { type AnyRoute, type RoutePath, routePaths } from '../route.ts'

/** An event type, as the reference shows it. */
export interface DescribedEvent {
  name: string
  summary: string
  scopes: readonly string[]
  data: z.ZodType
}

interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema | boolean
  description?: string
  default?: unknown
}

const conventions = `Every call but the public ones carries \`Authorization: Bearer <key>\`. Bodies are JSON (\`Content-Type: application/json\`, UTF-8); no body
is \`{}\`. A body has at most 1 MiB (64 KiB on calls without a key, 40 MiB where it is an e-mail; else \`body_too_large\`), 32 levels (\`too_deep\`) and
10,000 tokens, which are the braces and brackets that open, the commas and the colons outside of strings (\`too_many_tokens\`); keys of 1,024 octets (\`too_long_key\`);
1,000,000 octets outside of strings, such as white space (\`too_much_padding\`); and 6,291,456 escapes in them (\`too_many_escapes\`).
Bodies that are read at once have 48 MiB in each account and 96 MiB together; e-mails that are read for an attachment, an HTML page or to be forwarded have 96 MiB and 192 MiB, with those that wait: above it stands \`rate_limited\`, \`too_much_at_once\`. An account that has taken less than 1 MiB is not refused for what others have taken.
Answers of one account that are not read yet have 48 MiB: above it the next is \`rate_limited\`, \`too_much_unread\`. Those of all callers have 144 MiB: above it connections of whoever has left most unread are closed.
Calls take turns by account, or by network without a key: of one account 1,000 wait at most, and the next is \`rate_limited\`, \`too_many_waiting\`.
Fields and parameters that are not listed are refused, with the nearest one named. Times are ISO 8601 in UTC, ids are opaque.

Lists answer \`{data, has_more, next_cursor}\`; the next page is asked for with \`cursor\`.
A page has fewer rows than \`limit\` where they are large (about 1 MiB together): \`has_more\` says whether there are more.

**Errors** have one shape, \`{"error": {type, message, param, status, code, request_id}}\`, and one of these types: \`invalid_request\` 400,
\`unauthorized\` 401, \`forbidden\` 403, \`not_found\` 404, \`conflict\` 409, \`rate_limited\` 429, \`internal_error\` 500. \`code\` is a stable word for programs;
\`request_id\` is also in \`X-Request-Id\`.

**Repeating safely:** a POST, and a GET that says so, may carry \`Idempotency-Key\` (1 to 255 printable characters). The same key with the same call and body gets the first
answer again for 24 hours (\`Idempotency-Replayed: true\`); with another body, or while the first is still being answered, it is a \`conflict\`. After a 5xx or
a 429 the same key may be tried again. A call that sends or moves a message is answered with the message as it is now. \`idempotency_answer_gone\` (404):
what the call was about was deleted since; \`idempotency_answer_not_kept\` (409): its answer had more than 256 KiB, or no room in its account. If a
restart cut the first call off, \`idempotency_interrupted\` says so: check whether it took effect.

**Writing without reading:** a key that may write something and not read it is answered a receipt (ids, status, times, and what the call says
besides); what it makes itself it is shown whole.

**Rate limits** are told on every answer by \`RateLimit-Policy\` and \`RateLimit\`; a 429 carries \`Retry-After\` in seconds.`

/** The API as a page of Markdown: every call with what it takes and answers, every event, every object. */
export function reference(routes: readonly AnyRoute[], events: readonly DescribedEvent[]): string {
  const document = openapi(routes, { version: '1', publicUrl: '' })
  const answered = (document.components?.schemas ?? {}) as Record<string, Schema>
  const named = Object.entries({ ...carried(events), ...answered })
  const calls = routes.map((route) => routePaths([route]).find(({ alias }) => !alias)!)
  const tags = [...new Set(routes.map(({ tag }) => tag))]
  return [
    '# API reference',
    'Generated from the route declarations. A running box serves the same at `/docs`, and in OpenAPI 3.1 at `/v1/openapi.json`.',
    conventions,
    ...tags.flatMap((tag) => [
      `## ${tag}`,
      ...calls.filter(({ route }) => route.tag === tag).map((spelling) => call(spelling, document)),
    ]),
    ...(events.length === 0 ? [] : ['## Events', eventTable(events)]),
    '## Objects',
    ...named
      .toSorted(([one], [other]) => one.localeCompare(other, 'en'))
      .map(([name, schema]) => [`### ${name}`, schema.description ?? '', object(schema)].filter(Boolean).join('\n\n')),
    '',
  ].join('\n\n')
}

/** What events carry, by name: some of it is in no answer of a call. */
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
    (operation?.parameters ?? []) as { name: string; in: string; required?: boolean; schema?: Schema; description?: string }[]
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
    taken ? `Takes ${shape(taken)}` : '',
    route.upload === undefined ? '' : `Takes raw bytes (\`${route.upload}\` or any other type) of any length`,
    route.example?.query ? `Example: \`?${new URLSearchParams(route.example.query).toString()}\`` : '',
    route.example?.body === undefined || route.upload !== undefined
      ? ''
      : `\`\`\`json\n${JSON.stringify(route.example.body, null, 2)}\n\`\`\``,
    `Answers ${route.status ?? 200}: ${given ? shape(given) : (route.download ?? 'nothing')}`,
  ]
    .filter(Boolean)
    .join('\n\n')
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
    scopes.map((scope) => `\`${scope}\``).join(' or '),
  ])
  return table(['Event', 'When', 'Data', 'Read with'], rows)
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
  return name === undefined ? 'object' : `[${name}](#${name.toLowerCase()})`
}

function table(head: string[], rows: string[][]): string {
  return [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`)
    .join('\n')
}
