import { anyError } from './errors.ts'
import type { Components, Described, Document, Json, JsonObject, Operation } from './document.ts'

/** Bytes that must be saved for an object to be described by another one. */
const worthwhile = 100

/** Characters of the description of a call in the short document, if its first sentence is not longer. */
const longestText = 130

/** Characters of the description of a field there, if its first clause is not longer. */
const longestClause = 50

/**
 * The same document in fewer bytes: bounds that bound nothing go, what several operations share is named once, and an object that has all fields
 * of another refers to that one. A response may get more fields, so that only objects of requests are closed.
 */
export function compact(document: Document): Document {
  const { paths, components, ...head } = structuredClone(document)
  const calls = Object.values(paths).flatMap((path) => Object.values(path))
  const requests = namesBelow(
    calls.map(({ requestBody, parameters }) => [requestBody ?? null, parameters ?? null]),
    components.schemas,
  )
  for (const [name, schema] of Object.entries(components.schemas)) {
    components.schemas[name] = simplified(schema, requests.has(name)) as JsonObject
  }
  for (const call of calls) {
    call.parameters &&= call.parameters.map((parameter) => simplified(withoutTwice(parameter), true) as Described)
    if (call.requestBody) call.requestBody = simplified(call.requestBody, true) as Described
    for (const [status, response] of Object.entries(call.responses)) {
      call.responses[status] = asPage(simplified(response, false) as Described)
    }
  }
  for (const [name, parameter] of Object.entries(components.parameters)) {
    components.parameters[name] = simplified(withoutTwice(parameter), true) as Described
  }
  components.schemas['Page'] = page
  shareFields(components.schemas, requests)
  shareParameters(paths, components)
  shareResponses(calls, components)
  return { ...head, paths, components: used(paths, components) }
}

const page: JsonObject = {
  type: 'object',
  properties: { data: { type: 'array' }, has_more: { type: 'boolean' }, next_cursor: { type: ['string', 'null'] } },
  required: ['data', 'has_more', 'next_cursor'],
}

/** Describes the response of a list by the page of all lists, and what its rows are. */
function asPage(response: Described): Described {
  const content = response['content'] as { 'application/json'?: { schema: JsonObject } } | undefined
  const schema = content?.['application/json']?.schema
  if (JSON.stringify(schema?.['required']) !== JSON.stringify(page['required'])) return response
  const { data } = schema!['properties'] as JsonObject
  const ofRows = { allOf: [{ $ref: '#/components/schemas/Page' }, { properties: { data: data! } }] }
  return { ...response, content: { 'application/json': { schema: ofRows } } }
}

/** The document with the beginnings of long descriptions, and with the errors that every call may have in one response. */
export function brief(document: Document): Document {
  const { paths, ...rest } = structuredClone(document)
  for (const call of Object.values(paths).flatMap((path) => Object.values(path))) {
    delete call['x-receipt']
    call.description = call.description
      .split('\n\n')
      .filter((paragraph) => !paragraph.startsWith('A key without'))
      .map((paragraph) => beginning(paragraph))
      .join('\n\n')
    call.parameters &&= inClauses(call.parameters) as Described[]
    const own = Object.entries(call.responses).filter(
      ([status, response]) => response.$ref === undefined || isOwn(status, response),
    )
    call.responses = { ...Object.fromEntries(own), default: { $ref: '#/components/responses/Error' } }
  }
  const { components, ...head } = rest
  const schemas = Object.fromEntries(
    Object.entries(components.schemas).map(([name, schema]) => [name, inClauses(schema) as JsonObject]),
  )
  const parameters = inClauses(components.parameters) as Components['parameters']
  return {
    ...head,
    paths,
    components: { ...components, schemas, parameters, responses: { ...components.responses, Error: anyError } },
  }
}

/** True for an error with a code that many other calls do not have. */
function isOwn(status: string, { description }: Described): boolean {
  return (
    description !== undefined &&
    ['401', '403', '404', '409'].includes(status) &&
    !/^Codes: (?:(?:not_found|conflict|plan_limit_reached)(?:, |\.))+$/.test(description)
  )
}

/** The value with the descriptions inside of it cut to their first clause. */
function inClauses(value: Json): Json {
  if (Array.isArray(value)) return value.map((one) => inClauses(withClause(one)))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, inClauses(withClause(one))]))
}

function withClause(value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || typeof value['description'] !== 'string')
    return value
  const { description } = value
  return { ...value, description: description.length > longestClause ? description.split(/(?<=[a-z`)]); |\. /)[0]! : description }
}

/** The first sentences of a text. */
function beginning(text: string): string {
  const sentences = text.split(/(?<=[.:]) (?=[A-Z])/)
  let taken = sentences[0]!
  for (const sentence of sentences.slice(1)) {
    if (taken.length + sentence.length >= longestText) break
    taken += ` ${sentence}`
  }
  return taken
}

/** The names of all schemas that a value refers to, directly or not. */
function namesBelow(value: Json, schemas: Record<string, JsonObject>, found = new Set<string>()): Set<string> {
  for (const [, name] of JSON.stringify(value).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
    if (found.has(name!)) continue
    found.add(name!)
    namesBelow(schemas[name!] ?? null, schemas, found)
  }
  return found
}

function simplified(value: Json, closed: boolean): Json {
  if (Array.isArray(value)) return value.map((one) => simplified(one, closed))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([key, one]) => says(key, one, value, closed))
  return nullable(Object.fromEntries(entries.map(([key, one]) => [key, simplifiedBelow(key, one, closed)])))
}

/** The names of fields are no keywords, and examples are no schemas. */
function simplifiedBelow(key: string, value: Json, closed: boolean): Json {
  if (key === 'example') return value
  if (key === 'pattern') return readable(value as string)
  if (key !== 'properties') return simplified(value, closed)
  return Object.fromEntries(Object.entries(value as JsonObject).map(([name, field]) => [name, simplified(field, closed)]))
}

/** A pattern in what ECMAScript, Python and Java have in common: without classes of Unicode. */
function readable(pattern: string): string {
  return pattern.replaceAll('\\p{Cc}', '\\x00-\\x1f\\x7f-\\x9f')
}

/** False for a keyword that says nothing. */
function says(key: string, value: Json, schema: JsonObject, closed: boolean): boolean {
  if (key === 'minimum') return value !== Number.MIN_SAFE_INTEGER
  if (key === 'maximum') return value !== Number.MAX_SAFE_INTEGER
  if (key === 'propertyNames') return JSON.stringify(value) !== '{"type":"string"}'
  // the form of a number or a flag as text
  if (key === 'pattern') return closed && schema['type'] === 'string' && schema['format'] === undefined
  if (key === 'additionalProperties') return value !== false || closed
  if (key === 'default') return closed
  return key !== 'required' || value !== false
}

/** `{anyOf: [{type: 'integer'}, {type: 'null'}]}` as `{type: ['integer', 'null']}`. */
function nullable(schema: JsonObject): JsonObject {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema
  const [some, none] = anyOf as [JsonObject, JsonObject]
  if (none['type'] !== 'null' || typeof some['type'] !== 'string') return schema
  const { type, enum: values, ...more } = some
  return { type: [type, 'null'], ...(Array.isArray(values) ? { enum: [...values, null] } : {}), ...more, ...rest }
}

/** A parameter whose schema does not repeat its description. */
function withoutTwice(parameter: Described): Described {
  const { description, ...schema } = (parameter['schema'] ?? {}) as JsonObject
  return description === undefined || description !== parameter.description ? parameter : { ...parameter, schema }
}

/** Describes an object of responses that has all fields of another by that one and its own. */
function shareFields(schemas: Record<string, JsonObject>, requests: Set<string>): void {
  const objects = Object.entries(schemas)
    .filter(([name, { properties }]) => properties !== undefined && !requests.has(name))
    .toSorted(([, one], [, other]) => fieldsOf(other).length - fieldsOf(one).length)
  for (const [name, whole] of objects) {
    const base = objects.find(([other, part]) => other !== name && isPart(part, whole))
    if (!base) continue
    const shared = { allOf: [{ $ref: `#/components/schemas/${base[0]}` }, without(whole, base[1])] }
    if (JSON.stringify(shared).length + worthwhile < JSON.stringify(whole).length) schemas[name] = shared
  }
}

function fieldsOf(schema: JsonObject): [string, Json][] {
  return Object.entries((schema['properties'] ?? {}) as JsonObject)
}

function requiredOf(schema: JsonObject): string[] {
  return (schema['required'] ?? []) as string[]
}

function isPart(part: JsonObject, whole: JsonObject): boolean {
  const fields = new Map(fieldsOf(whole).map(([name, field]) => [name, JSON.stringify(field)]))
  return (
    fieldsOf(part).length < fields.size &&
    fieldsOf(part).every(([name, field]) => fields.get(name) === JSON.stringify(field)) &&
    requiredOf(part).every((name) => requiredOf(whole).includes(name))
  )
}

function without(whole: JsonObject, part: JsonObject): JsonObject {
  const known = new Set(fieldsOf(part).map(([name]) => name))
  const properties = Object.fromEntries(fieldsOf(whole).filter(([name]) => !known.has(name)))
  const { required: _, ...rest } = whole
  const required = requiredOf(whole).filter((name) => !requiredOf(part).includes(name))
  return { ...rest, properties, ...(required.length === 0 ? {} : { required }) }
}

/** Names the parameters that several operations have. */
function shareParameters(paths: Document['paths'], { parameters }: Components): void {
  const calls = Object.values(paths).flatMap((path) => Object.values(path))
  const names = shareRepeated(
    'parameters',
    parameters,
    calls.flatMap((call) => call.parameters ?? []),
    (parameter) => parameter['name'] as string,
  )
  for (const call of calls) {
    call.parameters &&= call.parameters.map((parameter) => names(parameter) ?? parameter)
  }
}

/** Names the responses that several operations have, after their schema. */
function shareResponses(calls: readonly Operation[], { responses }: Components): void {
  const all = calls.flatMap((call) => Object.values(call.responses))
  const names = shareRepeated('responses', responses, all, nameOfResponse)
  for (const call of calls) {
    for (const [status, response] of Object.entries(call.responses)) call.responses[status] = names(response) ?? response
  }
}

/** `Identity`, `IdentityCreated`, `EmailRowPage`. */
function nameOfResponse(response: Described): string | undefined {
  const schemas = [...JSON.stringify(response).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name!)
  if (schemas.length === 0) return undefined
  const { length, [length - 1]: last } = schemas
  return `${last}${length > 1 ? 'Page' : ''}${response.description === 'Created' ? 'Created' : ''}`
}

/** Puts what appears more than once among the components. Returns the reference of each of them. */
function shareRepeated(
  kind: 'parameters' | 'responses',
  components: Record<string, Described>,
  all: readonly Described[],
  nameOf: (one: Described) => string | undefined,
): (one: Described) => Described | undefined {
  const counts = new Map<string, number>()
  for (const one of all) counts.set(JSON.stringify(one), (counts.get(JSON.stringify(one)) ?? 0) + 1)
  const references = new Map<string, Described>()
  for (const [text, count] of counts) {
    const one = JSON.parse(text) as Described
    const name = count > 1 && one.$ref === undefined ? nameOf(one) : undefined
    if (name === undefined) continue
    let free = name
    for (let number = 2; free in components; number += 1) free = `${name}${number}`
    components[free] = one
    references.set(text, { $ref: `#/components/${kind}/${free}` })
  }
  return (one) => references.get(JSON.stringify(one))
}

/** The components that are referred to. */
function used(paths: Document['paths'], components: Components): Components {
  const kept = structuredClone(components)
  for (let before = ''; before !== JSON.stringify(kept);) {
    before = JSON.stringify(kept)
    const text = JSON.stringify([paths, kept])
    for (const kind of ['schemas', 'parameters', 'responses'] as const) {
      for (const name of Object.keys(kept[kind])) if (!text.includes(`"#/components/${kind}/${name}"`)) delete kept[kind][name]
    }
  }
  return kept
}
