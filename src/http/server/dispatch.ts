import { Router, type RouterContext } from '@koa/router'

export type { RouterContext } from '@koa/router'

/** A handler of one method and path; literal paths must come before those with a parameter in the same position. */
export interface Handler<State> {
  method: string
  path: string
  answer: (context: RouterContext<State>) => Promise<void>
}

/**
 * Finds the handler of a request. @koa/router tries its paths one after the other, so it gets only those that could
 * match: a router for each noun and number of segments, which no parameter can span.
 */
export function dispatcher<State>(handlers: readonly Handler<State>[]) {
  const routers = new Map<string, Router<State>>()
  for (const { method, path, answer } of handlers) {
    const form = formOf(path)
    const router = routers.get(form) ?? new Router<State>({ strict: true, sensitive: true })
    routers.set(form, router)
    router.register(path, [method], answer)
  }
  const middlewares = new Map([...routers].map(([form, router]) => [form, router.middleware()]))
  return (path: string) => middlewares.get(formOf(path))
}

/** `/v1/identities/:id` → `identities 4`, `/files/:token` → `files 3` */
function formOf(path: string): string {
  const segments = path.split('/')
  return `${segments[1] === 'v1' ? segments[2] : segments[1]} ${segments.length}`
}
