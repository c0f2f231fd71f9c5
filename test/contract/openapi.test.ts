import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, expect, test } from 'vitest'
import { openapi } from '../../src/http/openapi/openapi.ts'
import { routePaths } from '../../src/http/route.ts'
import { appliance, type Appliance, openAppliance } from '../support/appliance.ts'

interface Parameter {
  $ref?: string
  name: string
  in: string
  required?: boolean
}

interface Operation {
  operationId: string
  tags: string[]
  security?: unknown[]
  parameters?: Parameter[]
  requestBody?: object
  responses: Record<string, { $ref?: string; description?: string; content?: Record<string, { schema: object }> }>
  'x-receipt'?: { scopes: string[]; fields: string[] }
}

interface Described {
  openapi: string
  info: { description: string }
  servers: { url: string }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, { type?: string; additionalProperties?: unknown; properties?: object }>
    parameters: Record<string, Parameter>
    responses: Record<string, object>
  }
}

const { box: shared, close } = await openAppliance()
afterAll(close)

test('the whole description is valid OpenAPI 3.1 and names every spelling of every route', async () => {
  const box = await appliance({ PILLARBOX_PUBLIC_URL: 'https://box.test' })
  const {
    body: document,
    status,
    headers,
  } = await box.call<Described>('GET', `${plainUrl(box)}/v1/openapi.json?all=true`, undefined, {
    key: null,
  })
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
  const { valid, errors } = await new Validator().validate(structuredClone(document) as never)
  expect(errors).toBeUndefined()
  expect(valid).toBe(true)
  expect(document.openapi).toMatch(/^3\.1\./)
  expect(document.servers).toEqual([{ url: 'https://box.test' }])

  const named = Object.entries(document.paths).flatMap(([path, calls]) =>
    Object.keys(calls).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const declared = routePaths(box.app.routes).map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`)
  expect(named.toSorted()).toEqual([...declared, 'GET /v1/openapi.json'].toSorted())
})

test('each operation says who may call it, what it takes, what it answers, and every way it fails', async () => {
  const document = await described(shared, '?all=true')
  const names = new Set<string>()
  for (const { method, path, route } of routePaths(shared.app.routes)) {
    const operation = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]![method.toLowerCase()]!
    names.add(operation.operationId)
    expect(operation.operationId).toMatch(/^[a-z][A-Za-z0-9]+$/)
    expect(operation.tags).toHaveLength(1)
    expect(operation.security).toEqual(route.scope === 'public' ? [] : undefined)
    const { parameters, responses } = document.components
    const inPath = (operation.parameters ?? [])
      .map((one) => (one.$ref ? parameters[one.$ref.split('/').at(-1)!]! : one))
      .filter((parameter) => parameter.in === 'path')
    expect(inPath.map(({ name, required }) => [name, required])).toEqual(
      [...path.matchAll(/:(\w+)/g)].map(([, name]) => [name, true]),
    )
    expect(operation.requestBody !== undefined).toBe((route.body ?? route.upload) !== undefined)
    const success = operation.responses[route.status ?? 200]!
    expect(success.$ref ? responses[success.$ref.split('/').at(-1)!] : success).toHaveProperty('content')
    expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['400', '429', '500']))
    if (route.scope !== 'public') expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['401', '403']))
    if (path.includes(':')) expect(Object.keys(operation.responses)).toContain('404')
  }
  expect(names.size).toBe(routePaths(shared.app.routes).length)
})

test('a field that a resource does not name is not part of it, and a caller may meet fields that are added later', async () => {
  const declared = openapi(shared.app.routes, { version: '1', publicUrl: '' })
  const open = Object.entries(declared.components.schemas).filter(
    ([name, schema]) => schema['properties'] !== undefined && schema['additionalProperties'] !== false && name !== 'Error',
  )
  expect(open.map(([name]) => name)).toEqual([])
  const { components } = await described(shared, '?all=true')
  expect(components.schemas['Identity']).not.toHaveProperty('additionalProperties')
  expect(components.schemas['NewEmail']).toHaveProperty('additionalProperties', false)
})

test('the feed of the account says that an identity may not be there, an event no longer, and that too many may wait', async () => {
  const { status } = await shared.call('GET', '/v1/events?identity_id=ident_01jd3v8m2ef1pbx9mz5k7q4w6a')
  const { responses } = (await described(shared, '?all=true')).paths['/v1/events']!['get']!
  expect([status, Object.keys(responses)]).toEqual([404, expect.arrayContaining(['404'])])
  const reference = JSON.stringify(responses)
  for (const code of ['since_expired', 'too_many_waits']) expect(reference).toContain(code)
})

test('what a program reads is under 120 kB, valid, and has the daily calls in few words', async () => {
  const response = await fetch(`${shared.url}/v1/openapi.json`)
  const text = await response.text()
  expect(Buffer.byteLength(text)).toBeLessThan(120_000)
  const document = JSON.parse(text) as Described
  expect((await new Validator().validate(structuredClone(document) as never)).errors).toBeUndefined()
  const calls = Object.values(document.paths).flatMap((path) => Object.values(path).map(({ operationId }) => operationId))
  expect(calls).toEqual(
    expect.arrayContaining([
      'createIdentity',
      'sendEmail',
      'replyToEmail',
      'changeManyEmails',
      'readCode',
      'createAPIKey',
      'sendSMS',
      'getCaller',
    ]),
  )
  expect(calls).not.toContain('listAccounts')
  // who reads it learns that there is more
  expect(document.info.description).toContain('/v1/openapi.json?all=true')
  expect((await described(shared, '?all=true')).info.description).not.toContain('all=true')
})

test('every reference leads to a component, and any JSON is one schema with a name', async () => {
  for (const query of ['', '?all=true']) {
    const document = await described(shared, query)
    const text = JSON.stringify(document)
    expect(text).not.toContain('__schema')
    expect(document.components.schemas['Json']).toBeDefined()
    for (const [, kind, name] of text.matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)) {
      expect(Object.keys(document.components[kind as 'schemas'])).toContain(name)
    }
  }
})

test('scopes and the identity of a key are described, and errors are named once', async () => {
  const document = await described(shared)
  const { NewApiKey, Scope } = document.components.schemas as Record<
    string,
    { description?: string; properties?: Record<string, object> }
  >
  expect(Scope!.description).toMatch(/messages: read e-mail and SMS; write: send, mark and delete them/)
  expect(NewApiKey!.properties!['identity_id']).toHaveProperty(
    'description',
    expect.stringContaining('binds the key to this identity'),
  )
  expect(JSON.stringify(NewApiKey!.properties!['scopes'])).toContain('#/components/schemas/Scope')
  const whole = await described(shared, '?all=true')
  for (const { responses } of Object.values(whole.paths).flatMap((path) => Object.values(path))) {
    for (const [status, response] of Object.entries(responses)) {
      if (Number(status) >= 400) expect(response.$ref).toMatch(/^#\/components\/responses\//)
    }
  }
})

/** Statuses that tools have met, with a code of each. */
const met: [call: string, status: number, code: string][] = [
  ['POST /v1/identities/{id}/emails', 409, 'domain_not_verified'],
  ['POST /v1/identities/{id}/emails/{email_id}/reply', 409, 'domain_not_verified'],
  ['POST /v1/identities/{id}/emails/{email_id}/forward', 409, 'domain_not_verified'],
  ['POST /v1/identities/{id}/emails/{email_id}/forward', 429, 'send_rate'],
  ['GET /v1/attachments/{email_id}/{index}', 403, 'bad_signature'],
  ['GET /v1/attachments/{email_id}/{index}', 403, 'url_expired'],
  ['POST /v1/account/totp', 404, 'not_found'],
  ['POST /v1/account/totp/confirm', 404, 'not_found'],
  ['POST /v1/identities', 409, 'domain_not_verified'],
  ['POST /v1/api-keys', 403, 'plan_limit_reached'],
  ['POST /v1/session', 401, 'invalid_credentials'],
  ['GET /v1/identities/{id}/wait', 429, 'too_many_waits'],
  ['POST /v1/cards/{id}/reveal', 403, 'budget_exceeded'],
]

test.each(met)('%s may answer %i %s', async (call, status, code) => {
  const [method, path] = call.split(' ') as [string, string]
  const document = await described(shared, '?all=true')
  expect(document.paths[path]?.[method.toLowerCase()]?.responses[status]?.description).toContain(code)
})

test('patterns hold only what ECMAScript, Python and Java read alike', async () => {
  const patterns = new Set<string>()
  JSON.stringify(await described(shared, '?all=true'), (key, value: unknown) => {
    if (key === 'pattern' && typeof value === 'string') patterns.add(value)
    return value
  })
  expect(patterns.size).toBeGreaterThan(20)
  for (const pattern of patterns) {
    // letters after a backslash that mean the same in all three
    for (const [, letter] of pattern.matchAll(/\\([A-Za-z])/g)) expect('dwsx').toContain(letter)
    expect(pattern).not.toMatch(/\(\?<|\[\[|&&/)
  }
})

test('the description and its page hold no address, path or name of the machine', async () => {
  for (const path of ['/v1/openapi.json', '/docs']) {
    const response = await fetch(`${shared.url}${path}`)
    const text = await response.text()
    expect(response.status).toBe(200)
    for (const secret of [shared.directory, shared.key, process.cwd(), 'node_modules']) expect(text).not.toContain(secret)
  }
})

test('a part of a download is a status that the description names', async () => {
  const url = `${plainUrl(shared)}/v1/openapi.json?all=true`
  const part = await fetch(url, { headers: { Range: 'bytes=0-9' } })
  expect([part.status, part.headers.get('content-range')]).toEqual([206, expect.stringMatching(/^bytes 0-9\/\d+$/)])
  expect(await part.text()).toBe('{"openapi"')
  const whole = (await (await fetch(url)).json()) as Described
  const downloads = Object.entries(whole.paths).filter(([path]) => /\/(?:raw|zone|openapi\.json)$/.test(path))
  expect(downloads.length).toBeGreaterThan(2)
  for (const [path, { get }] of downloads)
    expect({ path, statuses: Object.keys(get!.responses) }).toEqual({ path, statuses: expect.arrayContaining(['206']) })
  expect(Object.keys(whole.paths['/v1/identities']!['get']!.responses)).not.toContain('206')
})

test('what a key is answered that may write and not read is in the description', async () => {
  const whole = await described(shared, '?all=true')
  const receipt = { scopes: ['identities:read'], fields: ['id', 'status', 'created_at', 'updated_at'] }
  expect(whole.paths['/v1/identities/{id}']!['patch']!['x-receipt']).toEqual(receipt)
  expect(whole.paths['/v1/identities']!['post']!['x-receipt']).toBeUndefined()
  const { body: ada } = await shared.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: key } = await shared.call('POST', '/v1/api-keys', { scopes: ['identities:write'] })
  const { body: answer } = await shared.call('PATCH', `/v1/identities/${ada['id']}`, { name: 'Eve' }, { key: String(key['key']) })
  expect(Object.keys(answer).toSorted()).toEqual(receipt.fields.toSorted())
})

async function described(box: Appliance, query = ''): Promise<Described> {
  const { body } = await box.call<Described>('GET', `/v1/openapi.json${query}`, undefined, { key: null })
  return body
}

function plainUrl({ app }: Appliance): string {
  return `http://127.0.0.1:${app.httpAddresses.plain!.port}`
}
