import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Database } from '../store/database.ts'
import type { Authenticate, RateLimits } from './admission.ts'
import type { SameSite } from './cookie.ts'
import type { Idempotency } from './idempotency.ts'
import type { Watched } from './server/health.ts'
import type { AnyRoute } from './route.ts'
import type { Upgrade } from './server/upgrades.ts'
import type { IncomingHttpHeaders } from 'node:http'
import type { Answer } from './response.ts'

/** What of the settings can change while the API serves. */
export interface ApiSettings extends RateLimits {
  /** Addresses and networks whose `X-Forwarded-For` is believed. */
  trusted_proxies: readonly string[]
  /** Exact origins whose pages may read answers. */
  cors_origins: readonly string[]
  /** The token that opens `/metrics` on the API's own port; left out: nothing does. */
  metrics_token: string | undefined
  /** Whether pages of other sites may send a session's cookie along. */
  session_same_site: SameSite
  /** Set on every answer. */
  headers: Readonly<Record<string, string>>
}

export interface ApiDeps extends Watched {
  routes: readonly AnyRoute[]
  upgrades?: readonly Upgrade[]
  /** Pages for people; left out: none. */
  site?: Site | undefined
  authenticate: Authenticate
  /** By what a browser keeps of its session. */
  session: Authenticate
  database: Database
  idempotency: Idempotency
  log: Log
  /** Whether there is room to store more; while there is none, POST and PATCH are refused before they are read. */
  roomy: () => boolean
  /** The account of the box's operator. */
  operator: string
  /** Whether there is such an account. */
  exists: (accountId: string) => boolean
  version: string
  public_url: string
  /** Our own origin; its pages may open sockets, and act with a session. */
  origin: () => string
  clock: Clock
}

/** Pages for people, beside the API: what is asked of none of its calls may be one of theirs. */
export interface Site {
  /** What a GET of this path is answered; undefined where there is no such page. */
  answer(path: string, headers: IncomingHttpHeaders): Promise<Answer> | undefined
}
