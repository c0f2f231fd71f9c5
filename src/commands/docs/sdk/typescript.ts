import { capitalized } from '../../../core/text.ts'
import type { Schema } from '../../../http/openapi/document.ts'
import { anyJson, type MethodAnswer, type MethodInput, referred, type SdkMethod, type SdkTable, union } from './table.ts'

const notice = '// Printed by `npm run docs` from the declarations of the box. Not to be changed by hand.\n'

/** `types.ts`: the types of what is sent and answered, and of events. */
export function typescriptTypes({ methods, schemas, events }: SdkTable): string {
  const named = [...schemas].filter(([name]) => name !== 'Event')
  const queries = methods.flatMap((method) =>
    method.input && ownName(method.input) ? [declared(inputType(method), method.input.schema!)] : [],
  )
  return [
    notice,
    `/** Any JSON. */
export type ${anyJson} = string | number | boolean | null | ${anyJson}[] | { [name: string]: ${anyJson} }
`,
    `/** The answer of every list. */
export interface Page<Row> {
  data: Row[]
  has_more: boolean
  next_cursor: string | null
}
`,
    ...named.map(([name, schema]) => declared(name, schema)),
    ...queries,
    `/** The data of each event. */
export interface EventData {
${[...events].map(([name, schema]) => `  '${name}': ${typeOf(schema, 1)}`).join('\n')}
}

export type EventType = keyof EventData

/** An event. The \`data\` of a resource that was deleted since is \`{id, deleted: true}\`. */
export type Event = {
  [Type in EventType]: {
    id: string
    type: Type
    /** The same as \`type\`. */
    event: Type
    identity_id: string | null
    created_at: string
    data: EventData[Type] & { deleted?: true }
  }
}[EventType]
`,
  ].join('\n')
}

/** `methods.ts`: each call in a line, and the types of the methods. */
export function typescriptMethods({ methods }: SdkTable): string {
  const groups = [...new Set(methods.map(({ group }) => group))]
  const own = (group: string): SdkMethod[] => methods.filter((method) => method.group === group)
  const signatures = groups.map((group) => `  ${group}: {\n${own(group).map(signaturesOf).join('\n')}\n  }`)
  const text = signatures.join('\n')
  const words = new Set(text.split(/\W/))
  const imported = [...new Set(methods.flatMap(namesIn))].filter((name) => words.has(name))
  return `${notice}
${importOf(['RequestOptions'], './request.ts')}
${importOf([...imported, 'Page'].toSorted(), './types.ts')}

/**
 * The calls by group. A line with a path is the beginning of those that follow: each is a method with its HTTP method (GET is left out), the rest of its
 * path, and what else there is. \`query\`, \`body\` or \`octets\` is sent; \`page\` (which takes a query), \`text\` or \`bytes\` comes back instead of an object. A POST
 * takes an Idempotency-Key, unless it sends octets.
 */
export const methods = {
${groups.map((group) => tableOf(group, own(group))).join('\n')}
} as const

/** The methods, by group. What is called \`iterate…\` yields the rows of all pages. */
export interface Methods {
${text}
}
`
}

function tableOf(group: string, methods: readonly SdkMethod[]): string {
  const sections = Map.groupBy(methods, ({ path }) => beginningOf(path, methods))
  const lines = [...sections].flatMap(([beginning, own]) => [
    beginning,
    ...own.map((method) => `${method.name} ${lineOf(method, beginning)}`.trimEnd()),
  ])
  return `  ${group}: \`${lines.join('\n').replaceAll('_id}', '}')}\`,`
}

/** The longest beginning of a path that all methods share, or three do up to an id. */
function beginningOf(path: string, methods: readonly SdkMethod[]): string {
  const parts = path.split('/')
  const beginnings = parts.map((_, index) => parts.slice(0, parts.length - index))
  const shared = beginnings.find((beginning) => {
    const count = methods.filter((other) => beginning.every((part, index) => other.path.split('/')[index] === part)).length
    return count === methods.length || (count > 2 && beginning.at(-1)!.startsWith('{'))
  })
  return shared!.join('/')
}

/** Throws for a method of which the line would say something else. */
function lineOf({ group, name, httpMethod, path, input, answer, idempotent }: SdkMethod, base: string): string {
  if (idempotent !== (httpMethod === 'POST' && input?.kind !== 'octets'))
    throw new Error(`${group}.${name} is retried in another way`)
  const sent = input && answer.kind !== 'page' ? [input.kind] : []
  const back = { json: [], page: ['page'], text: ['text'], octets: ['bytes'] }[answer.kind]
  const method = httpMethod === 'GET' ? [] : [httpMethod]
  return [...method, path.slice(base.length), ...sent, ...back].filter((word) => word !== '').join(' ')
}

function signaturesOf(method: SdkMethod): string {
  const { name, params, input, answer, summary } = method
  const ids = params.map((param) => `${camel(param)}: ${param === 'index' ? 'number' : 'string'}`)
  const given = input
    ? [`${input.kind === 'octets' ? 'octets' : input.kind}${input.required ? '' : '?'}: ${inputType(method)}`]
    : []
  const lines = [
    `    /** ${summary}. */`,
    `    ${name}(${[...ids, ...given, 'options?: RequestOptions'].join(', ')}): Promise<${answerType(answer)}>`,
  ]
  if (answer.kind === 'page') {
    lines.push(
      `    ${iteratorName(name)}(${[...ids, ...given, 'options?: RequestOptions'].join(', ')}): AsyncGenerator<${typeOf(answer.schema!, 2)}, void>`,
    )
  }
  return lines.join('\n')
}

/** `list` → `iterate`, `search` → `iterateSearch` */
function iteratorName(name: string): string {
  return name === 'list' ? 'iterate' : `iterate${capitalized(name)}`
}

function answerType({ kind, schema }: MethodAnswer): string {
  if (kind === 'text') return 'string'
  if (kind === 'octets') return 'Uint8Array'
  return kind === 'page' ? `Page<${typeOf(schema!, 2)}>` : typeOf(schema!, 2)
}

function inputType({ group, name, input }: SdkMethod): string {
  if (input!.kind === 'octets') return 'Uint8Array | Blob'
  return ownName(input!) ? `${capitalized(group)}${capitalized(name)}${capitalized(input!.kind)}` : typeOf(input!.schema!, 2)
}

/** True if the input has no name in the API. */
function ownName({ schema }: MethodInput): boolean {
  return schema !== undefined && schema.$ref === undefined
}

function importOf(names: readonly string[], file: string): string {
  return `import type {\n${names.map((name) => `  ${name},\n`).join('')}} from '${file}'`
}

function namesIn(method: SdkMethod): string[] {
  const types = [method.input ? inputType(method) : '', answerType(method.answer)].join(' ')
  return types.split(/\W/).filter((name) => /^[A-Z]/.test(name) && !['Page', 'Uint8Array', 'Blob', 'Record'].includes(name))
}

function declared(name: string, schema: Schema): string {
  const words = comment(schema.description, '')
  return schema.properties
    ? `${words}export interface ${name} ${objectType(schema, 0)}\n`
    : `${words}export type ${name} = ${typeOf(schema, 0)}\n`
}

function typeOf(schema: Schema, depth: number): string {
  const name = referred(schema)
  if (name !== undefined) return name
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum) return union(schema.enum.map(literal))
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return union(choices.map((choice) => typeOf(choice, depth)))
  return union([schema.type ?? 'unknown'].flat().map((type) => basic(type, schema, depth)))
}

function basic(type: string, schema: Schema, depth: number): string {
  if (type === 'array') {
    const items = schema.items ?? {}
    return isUnion(items) ? `(${typeOf(items, depth)})[]` : `${typeOf(items, depth)}[]`
  }
  if (type === 'integer') return 'number'
  return type === 'object' ? objectType(schema, depth) : type
}

function isUnion({ $ref, enum: values, anyOf, oneOf, type }: Schema): boolean {
  return $ref === undefined && ((values ?? anyOf ?? oneOf) !== undefined || Array.isArray(type))
}

function objectType({ properties, required = [], additionalProperties: rest }: Schema, depth: number): string {
  if (!properties) return `Record<string, ${typeof rest === 'object' ? typeOf(rest, depth) : 'unknown'}>`
  const indent = '  '.repeat(depth + 1)
  const fields = Object.entries(properties).map(([name, field]) => {
    const optional = required.includes(name) ? '' : '?'
    const type = typeOf(field, depth + 1)
    return `${comment(field.description, indent)}${indent}${/^\w+$/.test(name) ? name : `'${name}'`}${optional}: ${type}${optional ? ' | undefined' : ''}`
  })
  if (typeof rest === 'object') fields.push(`${indent}[name: string]: unknown`)
  return fields.length === 0 ? 'Record<string, never>' : `{\n${fields.join('\n')}\n${'  '.repeat(depth)}}`
}

function comment(text: string | undefined, indent: string): string {
  return text === undefined ? '' : `${indent}/** ${text.replaceAll('*/', '*\\/')} */\n`
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : String(value)
}

/** `email_id` → `emailId` */
function camel(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
}
