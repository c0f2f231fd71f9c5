import { expect, test } from 'vitest'
import { pages } from './pages.ts'

/** Every call as docs/api.md has it (which is made from the routes, and compared with them by a test). */
const routes = [...pages.get('docs/api.md')!.matchAll(/`(GET|POST|PATCH|DELETE) (\/[^`\s]*)`/g)].map(([, method, path]) => ({
  method: method!,
  parts: path!.split('/'),
}))

test('every call that a page names is there', () => {
  const others = [...pages].filter(([page]) => page !== 'docs/api.md')
  const named = others.flatMap(([page, text]) =>
    [...text.matchAll(/\b(GET|POST|PATCH|DELETE) (?:\$URL)?(\/v1\/[^\s`"'?),;|…]*[^\s`"'?),;|….:])/g)].map(
      ([, method, path]) => [page, method!, path!] as const,
    ),
  )
  expect(routes.length).toBeGreaterThan(100)
  expect(named.length).toBeGreaterThan(60)
  expect(named.filter(([, method, path]) => !isRoute(method, path))).toEqual([])
})

test('a call that is none would be found', () => {
  expect(isRoute('GET', '/v1/queue/{id}')).toBe(true)
  expect(isRoute('GET', '/v1/queues')).toBe(false)
  expect(isRoute('DELETE', '/v1/queue')).toBe(false)
})

/** A part of the path that names something may be written in any way. */
function isRoute(method: string, path: string): boolean {
  const parts = path.split('/')
  return routes.some(
    (route) =>
      route.method === method &&
      route.parts.length === parts.length &&
      route.parts.every((part, index) => part.startsWith(':') || part === parts[index]),
  )
}
