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

const conventions = `Every call except the public ones requires \`Authorization: Bearer <key>\`. Bodies are JSON (\`Content-Type: application/json\`, UTF-8);
an empty body means \`{}\`. Limits of a body: 1 MiB (64 KiB without a key, 40 MiB for an e-mail; else \`body_too_large\`), 32 levels (\`too_deep\`),
10,000 tokens, which are opening braces and brackets, commas and colons outside of strings (\`too_many_tokens\`), keys of 1,024 bytes (\`too_long_key\`),
1,000,000 bytes outside of strings, such as white space (\`too_much_padding\`), and 6,291,456 escapes in strings (\`too_many_escapes\`).
Bodies being read are limited to 48 MiB for each account and 96 MiB in total, stored e-mails being read (for an attachment, an HTML page, or to be forwarded) or waiting for it to 96 MiB and 192 MiB; above that the response is \`rate_limited\`, \`too_much_at_once\`. An account that uses less than 1 MiB is not rejected because of others.
Unread responses are limited to 48 MiB for each account; above that the next call is \`rate_limited\`, \`too_much_unread\`. Above 144 MiB in total, the connections of the client with the most unread bytes are closed.
Accounts (without a key: networks) take turns; at most 1,000 calls of one wait, and the next is \`rate_limited\`, \`too_many_waiting\`.
Unknown fields and parameters are rejected; the error names the nearest known one. Times are ISO 8601 in UTC, ids are opaque.

Lists return \`{data, has_more, next_cursor}\`; pass \`next_cursor\` as \`cursor\` to get the next page.
A page has fewer rows than \`limit\` if they are large (about 1 MiB in total): \`has_more\` is true if there are more.

**Errors** have one shape, \`{"error": {type, message, param, status, code, request_id}}\`, and one of these types: \`invalid_request\` 400,
\`unauthorized\` 401, \`forbidden\` 403, \`not_found\` 404, \`conflict\` 409, \`rate_limited\` 429, \`internal_error\` 500. \`code\` is stable and machine-readable;
\`request_id\` is also in \`X-Request-Id\`.

**Idempotency:** a POST, and a GET where stated, accepts \`Idempotency-Key\` (1 to 255 printable characters). The same key with the same call and body gets the first
response again for 24 hours (\`Idempotency-Replayed: true\`); with another body, or while the first call is in progress, it is a \`conflict\`. After a 5xx or
a 429 the same key can be retried. A repeated call that sends or moves a message returns the present state of the message. \`idempotency_answer_gone\` (404):
the object of the call was deleted since; \`idempotency_answer_not_kept\` (409): the response was larger than 256 KiB, or exceeded the quota of its account.
\`idempotency_interrupted\`: a restart interrupted the first call; check whether it took effect.

**Writing without reading:** a key that may write an object but not read it gets a receipt (ids, status, times, and the fields named in the call's
description); objects it creates are returned completely.

**Rate limits** are stated in every response by \`RateLimit-Policy\` and \`RateLimit\`; a 429 has \`Retry-After\` in seconds.`

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
