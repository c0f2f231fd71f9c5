import { Router } from '@koa/router'

/** A handler of one method and path; literal paths must come before those with a parameter in the same position. */
export interface Handler<Context> {
  method: string
  path: string
  answer: (context: Context, params: Record<string, string>) => Promise<void>
}

/**
 * Finds the handler of a request, and the parameters in its path. @koa/router tries its paths one after the other, so it gets only those that could
 * match: a router for each noun and number of segments, which no parameter can span. Each is made at its first request, as all
 * take a tenth of the time of a start. They are asked for their match alone, as their middleware makes a chain of functions for each request.
 */
export function dispatcher<Context>(handlers: readonly Handler<Context>[]) {
  const forms = Map.groupBy(handlers, ({ path }) => formOf(path))
  const routers = new Map<string, Router>()
  return (method: string, path: string): { handler: Handler<Context>; params: Record<string, string> } | undefined => {
    const form = formOf(path)
    const some = forms.get(form)
    if (!some) return undefined
    let router = routers.get(form)
    if (!router) routers.set(form, (router = routerOf(some)))
    const [layer] = router.match(path, method).pathAndMethod
    return layer && { handler: some[router.stack.indexOf(layer)]!, params: layer.params(path, layer.captures(path)) }
  }
}

function routerOf(handlers: readonly Pick<Handler<never>, 'method' | 'path'>[]): Router {
  const router = new Router({ strict: true, sensitive: true })
  for (const { method, path } of handlers) router.register(path, [method], [])
  return router
}

/** `/v1/identities/:id` → `identities 4`, `/files/:token` → `files 3` */
function formOf(path: string): string {
  const segments = path.split('/')
  return `${segments[1] === 'v1' ? segments[2] : segments[1]} ${segments.length}`
}
