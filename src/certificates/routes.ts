import { minute } from '../core/clock.ts'
import { Page } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import { Certificate, Renewal } from './model.ts'

const route = routeOf('Operation')

/** The timeout of all attempts of one call, in milliseconds. */
const longest = 10 * minute

export function routes(parts: {
  list: () => Promise<Certificate[]>
  renew: (host: string | undefined) => Promise<void>
}): AnyRoute[] {
  const all = async (): Promise<{ data: Certificate[]; has_more: boolean; next_cursor: null }> => ({
    data: await parts.list(),
    has_more: false,
    next_cursor: null,
  })
  return [
    route('GET', '/certificates', {
      scope: 'account:read',
      operator: true,
      summary: 'List certificates',
      description: 'Those the box shows, and those it should show: where each is from, until when it is good, and what is wrong.',
      reply: Page(Certificate),
      handle: all,
    }),
    route('POST', '/certificates/renew', {
      scope: 'account:write',
      operator: true,
      reads: ['account:read'],
      summary: 'Renew certificates',
      description:
        'Looks at the files again, and asks the CA now for what is missing or due, or for the one that names a host, due or not. Answers all certificates once the CA has spoken; what it refused says so in problem. Each is tried four times an hour at most: rate_limited, code acme_tries.',
      body: Renewal,
      reply: Page(Certificate),
      timeout: longest,
      handle: async ({ body, signal }) => {
        await whileHeard(parts.renew(body.name?.toLowerCase()), signal)
        return all()
      },
    }),
  ]
}

/** Waits for work that continues when the caller disconnects. */
async function whileHeard(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  const cut = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', cut)
  try {
    await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', cut)
  }
}
