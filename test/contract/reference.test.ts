import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { apiReference, declared } from '../../src/commands/docs/docs.ts'
import { tagOrder } from '../../src/http/openapi/order.ts'
import { routePaths } from '../../src/http/route.ts'

test('docs/api.md is what the routes and event types say (npm run docs writes it)', async () => {
  expect(readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')).toBe(await apiReference())
})

test('the list at its top has every route once, with its scope, under the tags in their order', async () => {
  const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')
  const [, list = ''] = /^## All routes\n([^]*?)^## /m.exec(page) ?? []
  const listed = [...list.matchAll(/^\| `(\S+ \S+)` \| (?:public|any|`\w+:\w+`.*?) \| \[/gm)].map(([, call]) => call!)
  const { calls, tags } = await declared(({ routes }) => ({
    calls: routes.map((route) => routePaths([route]).find(({ alias }) => !alias)!).map(({ method, path }) => `${method} ${path}`),
    tags: [...new Set(routes.map(({ tag }) => tag))],
  }))
  expect(listed.toSorted()).toEqual(calls.toSorted())
  expect([...list.matchAll(/^\| \*\*\[(.+)\]/gm)].map(([, tag]) => tag!)).toEqual(tagOrder.filter((tag) => tags.includes(tag)))
  expect(tags.filter((tag) => !tagOrder.includes(tag))).toEqual([])
})
