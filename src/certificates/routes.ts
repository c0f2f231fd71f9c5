import { minute } from '../core/clock.ts'
import { Page } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import { Certificate, Renewal } from './model.ts'

const route = routeOf('Operation')

/** The timeout of all attempts of one call, in milliseconds. */
const longest = 10 * minute

export function routes(deps: {
  list: () => Promise<Certificate[]>
  renew: (host: string | undefined) => Promise<void>
}): AnyRoute[] {
  const all = async (): Promise<{ data: Certificate[]; has_more: boolean; next_cursor: null }> => ({
    data: await deps.list(),
    has_more: false,
    next_cursor: null,
  })
  return [
    route('GET', '/certificates', {
      scope: 'account:read',
      operator: true,
      sdk: 'certificates.list',
      summary: 'List certificates',
      description: 'The certificates the box uses or should use, with their source, expiry and problems.',
      reply: Page(Certificate),
      handle: all,
    }),
    route('POST', '/certificates/renew', {
      scope: 'account:write',
      operator: true,
      alsoScope: ['account:read'],
      sdk: 'certificates.renew',
      errors: { 404: ['not_found'], 409: ['not_running', 'acme_not_configured'], 429: ['acme_tries'] },
      audit: 'certificate.renewed',
      summary: 'Renew certificates',
      description:
        'Reads the files again, and requests missing or due certificates from the CA, or the one for a given host even if it is not due. Returns all certificates once the CA has responded; a failure is stated in problem. Each is tried at most four times an hour: rate_limited, code acme_tries.',
      body: Renewal,
      reply: Page(Certificate),
      timeout: longest,
      handle: async ({ body, signal }) => {
        await whileHeard(deps.renew(body.name?.toLowerCase()), signal)
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
