import helmet from 'koa-helmet'

/** An API response may load nothing, not be framed, and not submit forms. */
const nothing = { defaultSrc: ["'none'"], baseUri: ["'none'"], formAction: ["'none'"], frameAncestors: ["'none'"] }

/**
 * The headers of every response, computed once, as they are the same for all. HSTS (RFC 6797) only where the box is reached by https.
 */
export function securityHeaders(secure: boolean): Record<string, string> {
  const headers: Record<string, string> = {}
  const response = {
    setHeader: (name: string, value: string) => {
      headers[name] = value
    },
    removeHeader: (name: string) => {
      Reflect.deleteProperty(headers, name)
    },
  }
  const apply = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: nothing },
    strictTransportSecurity: secure ? { maxAge: 31_536_000, includeSubDomains: false } : false,
    referrerPolicy: { policy: 'no-referrer' },
    crossOriginResourcePolicy: { policy: 'same-origin' },
    xFrameOptions: { action: 'deny' },
    xXssProtection: false,
    xPoweredBy: false,
    // These concern pages; an API response is not a page, and the page of the reference needs none of them.
    crossOriginOpenerPolicy: false,
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
  })
  // Helmet answers through a promise, but sets every header before it first waits.
  void apply({ req: {}, res: response } as never, async () => undefined)
  return { ...headers, 'Cache-Control': 'no-store' }
}
