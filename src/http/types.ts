import type { AuditRecorder } from '../core/audit.ts'
import type { Basis } from '../basis.ts'
import type { Authenticate, RateLimits } from './admission.ts'
import type { SameSite } from './cookie.ts'
import type { Idempotency } from './idempotency.ts'
import type { MonitoringDeps } from './server/health.ts'
import type { ProtocolEndpoint } from './protocol.ts'
import type { Answer, AnyRoute } from './route.ts'
import type { Upgrade } from './server/upgrades.ts'
import type { IncomingHttpHeaders } from 'node:http'

/** The settings that can change while the API is running. */
export interface ApiSettings extends RateLimits {
  /** Addresses and networks whose `X-Forwarded-For` is believed. */
  trusted_proxies: readonly string[]
  /** Exact origins whose pages may read answers. */
  cors_origins: readonly string[]
  /** The token for `/metrics` on the port of the API; undefined: not served. */
  metrics_token: string | undefined
  /** When requests from other sites carry the session cookie. */
  session_same_site: SameSite
  /** Headers of every response. */
  headers: Readonly<Record<string, string>>
}

export interface ApiDeps extends MonitoringDeps, Pick<Basis, 'database' | 'log' | 'version' | 'clock'> {
  routes: readonly AnyRoute[]
  upgrades?: readonly Upgrade[]
  /** Paths that speak protocols of their own. */
  endpoints?: readonly ProtocolEndpoint[]
  /** The web interface; none by default. */
  site?: Site | undefined
  authenticate: Authenticate
  /** By the session cookie of a browser. */
  session: Authenticate
  idempotency: Idempotency
  /** Without it nothing is recorded. */
  audit?: AuditRecorder
  /** True if the disk has space; while it has none, POST and PATCH are refused before their body is read. */
  hasSpace: () => boolean
  /** The account of the box's operator. */
  operator: string
  /** True if there is such an account. */
  exists: (accountId: string) => boolean
  public_url: string
  /** The origin of the box; its pages may open sockets and use a session. */
  origin: () => string
}

/** The web interface, which serves paths that no route has. */
export interface Site {
  /** The response to a GET of this path; undefined when there is no such page. */
  answer(path: string, headers: IncomingHttpHeaders): Promise<Answer> | undefined
}
