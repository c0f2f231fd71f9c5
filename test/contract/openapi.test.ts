import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { routePaths } from '../../src/http/route.ts'
import { appliance, type Appliance } from '../support/appliance.ts'

interface Operation {
  operationId: string
  tags: string[]
  security?: unknown[]
  parameters?: { name: string; in: string; required?: boolean }[]
  requestBody?: object
  responses: Record<string, { $ref?: string; content?: Record<string, { schema: object }> }>
}

interface Described {
  openapi: string
  servers: { url: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, { type?: string; additionalProperties?: unknown; properties?: object }> }
}

test('the description is valid OpenAPI 3.1 and names every spelling of every route', async () => {
  const box = await appliance({ PILLARBOX_PUBLIC_URL: 'https://box.test' })
  const {
    body: document,
    status,
    headers,
  } = await box.call<Described>('GET', `${plainUrl(box)}/v1/openapi.json`, undefined, {
    key: null,
  })
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
  const { valid, errors } = await new Validator().validate(structuredClone(document) as never)
  expect(errors).toBeUndefined()
  expect(valid).toBe(true)
  expect(document.openapi).toMatch(/^3\.1\./)
  expect(document.servers).toEqual([{ url: 'https://box.test' }])

  const described = Object.entries(document.paths).flatMap(([path, calls]) =>
    Object.keys(calls).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const declared = routePaths(box.app.routes).map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`)
  expect(described.toSorted()).toEqual([...declared, 'GET /v1/openapi.json'].toSorted())
})

test('each operation says who may call it, what it takes, what it answers, and every way it fails', async () => {
  const box = await appliance()
  const { body: document } = await box.call<Described>('GET', '/v1/openapi.json', undefined, { key: null })
  const names = new Set<string>()
  for (const { method, path, route } of routePaths(box.app.routes)) {
    const operation = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]![method.toLowerCase()]!
    names.add(operation.operationId)
    expect(operation.operationId).toMatch(/^[a-z][A-Za-z0-9]+$/)
    expect(operation.tags).toHaveLength(1)
    expect(operation.security).toEqual(route.scope === 'public' ? [] : undefined)
    const inPath = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path')
    expect(inPath.map(({ name, required }) => [name, required])).toEqual(
      [...path.matchAll(/:(\w+)/g)].map(([, name]) => [name, true]),
    )
    expect(operation.requestBody !== undefined).toBe((route.body ?? route.upload) !== undefined)
    expect(operation.responses[route.status ?? 200]!.content).toBeDefined()
    expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['400', '429', '500']))
    if (route.scope !== 'public') expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['401', '403']))
    if (path.includes(':')) expect(Object.keys(operation.responses)).toContain('404')
  }
  expect(names.size).toBe(routePaths(box.app.routes).length)
})

test('what the description shows of a resource is closed: a field it does not name is not part of it', async () => {
  const box = await appliance()
  const { body: document } = await box.call<Described>('GET', '/v1/openapi.json', undefined, { key: null })
  const open = Object.entries(document.components.schemas).filter(
    ([name, schema]) => schema.properties !== undefined && schema.additionalProperties !== false && name !== 'Error',
  )
  expect(open.map(([name]) => name)).toEqual([])
})

test('the description and its page hold no address, path or name of the machine', async () => {
  const box = await appliance()
  for (const path of ['/v1/openapi.json', '/docs']) {
    const response = await fetch(`${box.url}${path}`)
    const text = await response.text()
    expect(response.status).toBe(200)
    for (const secret of [box.directory, box.key, process.cwd(), 'node_modules']) expect(text).not.toContain(secret)
  }
})

function plainUrl({ app }: Appliance): string {
  return `http://127.0.0.1:${app.httpAddresses.plain!.port}`
}
