import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openapi } from '../../src/http/openapi/openapi.ts'
import { reference } from '../../src/http/openapi/reference.ts'
import { routePaths } from '../../src/http/route.ts'
import { openToybox, type Toybox, toyId, toyRoutes } from './toy-box.ts'
import * as z from 'zod'

const routes = toyRoutes({ made: 0, aborted: [], release: undefined, held: Promise.resolve() })
const about = { version: '0.1.0', publicUrl: 'https://box.test/' }

let box: Toybox

beforeAll(async () => {
  box = await openToybox()
})

afterAll(async () => {
  await box.server.stop()
})

test('the description is valid OpenAPI 3.1, public, and names every spelling of every call', async () => {
  const response = await box.call('GET', '/v1/openapi.json', { key: null })
  expect(response.headers.get('content-type')).toContain('application/json')
  const document = (await response.json()) as { openapi: string; paths: Record<string, Record<string, unknown>> }
  expect(await new Validator().validate(structuredClone(document))).toMatchObject({ valid: true })
  expect(document.openapi).toBe('3.1.0')
  for (const { method, path } of routePaths(routes)) {
    expect(document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]).toBeDefined()
  }
})

test('an operation says its name, key, parameters, body, answers and errors', () => {
  const post = openapi(routes, about).paths?.['/v1/toys']?.post
  expect(post).toMatchObject({
    operationId: 'makeToy',
    tags: ['Toys'],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: { $ref: '#/components/schemas/NewToy' }, example: { name: 'Bear' } } },
    },
    responses: {
      201: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Toy' } } } },
      400: { $ref: '#/components/responses/BadRequest' },
      409: { $ref: '#/components/responses/Conflict' },
    },
  })
  expect(JSON.stringify(post?.parameters)).toContain('Idempotency-Key')
  const list = openapi(routes, about).paths?.['/v1/toys']?.get
  expect(list?.parameters).toContainEqual(
    expect.objectContaining({ name: 'limit', in: 'query', schema: expect.objectContaining({ type: 'integer', maximum: 200 }) }),
  )
  expect(openapi(routes, about).paths?.['/files/{token}']?.get).toMatchObject({ security: [] })
})

test('two operations of one name do not start', () => {
  expect(() => openapi([routes[0]!, { ...routes[0]!, path: '/other' }], about)).toThrow('listToys')
})

test('the documented examples work', async () => {
  for (const { method, path, route } of routePaths(routes).filter(({ route: { example } }) => example)) {
    const response = await box.call(method, path.replaceAll(/:\w+/g, toyId), { body: route.example?.body })
    expect(response.status).toBe(route.status ?? 200)
  }
})

test('the page reads only from this box, under a strict policy', async () => {
  const page = await box.call('GET', '/docs', { key: null })
  const html = await page.text()
  expect(page.headers.get('content-type')).toContain('text/html')
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
  expect(html).not.toMatch(/https?:|<script>/)
  for (const [, path] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
    const file = await box.call('GET', path!, { key: null })
    expect(file.status).toBe(200)
    const { byteLength } = await file.arrayBuffer()
    expect(byteLength).toBeGreaterThan(100)
    const head = await box.call('HEAD', path!, { key: null })
    expect([head.status, head.headers.get('content-type')]).toEqual([200, file.headers.get('content-type')])
    if (path !== '/docs/start.js') expect(head.headers.get('content-length')).toBe(String(byteLength))
  }
})

test('the reference lists calls, events and objects', () => {
  const Thing = z.object({ id: z.string() }).meta({ id: 'Thing' })
  const text = reference(routes, [{ name: 'toy.made', summary: 'A toy was made', scopes: ['identities:read'], data: Thing }])
  expect(text).toContain('### Make a toy\n\n`POST /v1/toys` or `POST /v1/toys/make`')
  expect(text).toContain('| `limit` | integer | default 50 |')
  expect(text).toContain('| `name` | string |  |')
  expect(text).toContain('Scope: `messages:read` or `emails:read`.')
  expect(text).toContain('| `toy.made` | A toy was made | [Thing](#thing) | `identities:read` |')
  expect(text).toContain('### Toy\n\nA thing to play with')
})
