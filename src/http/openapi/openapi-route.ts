import { openapi } from './openapi.ts'
import { type AnyRoute, routeOf } from '../route.ts'

/** `GET /v1/openapi.json`: generated once, at the first request. */
export function openapiRoute(routes: readonly AnyRoute[], about: { version: string; publicUrl: string }): AnyRoute {
  let document: Buffer | undefined
  const described: AnyRoute = routeOf('Reference')('GET', '/openapi.json', {
    scope: 'public',
    rate: 'document',
    summary: 'Get the OpenAPI description',
    description: 'Every call, in OpenAPI 3.1; also as a page at `/docs`.',
    download: 'application/json',
    handle: async () => {
      document ??= Buffer.from(JSON.stringify(openapi([...routes, described], about)))
      return { type: 'application/json; charset=utf-8', bytes: document, headers: { 'Content-Disposition': 'inline' } }
    },
  })
  return described
}
