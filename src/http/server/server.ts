import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Clock, systemClock } from '../../core/clock.ts'
import { Fault } from '../../core/fault.ts'
import { newId } from '../../core/ids.ts'
import { canonicalAddress, Networks } from '../../net/networks.ts'
import { Api } from '../api.ts'
import type { ApiDeps, ApiSettings } from '../types.ts'
import type { RateLimits } from '../admission.ts'
import { type AddressLimit, AddressLimiter } from './address-limiter.ts'
import { PortMetrics } from './metrics.ts'
import { metricsHandler, type MetricsSettings } from './health.ts'
import { type Complain, Listener, type Shown, type Upgrader } from './listener.ts'
import { errorBody, problemOf } from '../problem.ts'
import { rateHeaders } from '../rate.ts'
import { securityHeaders } from './security-headers.ts'

export interface HttpSettings extends RateLimits {
  /** `host:port` of plain HTTP; left out: none. */
  listen?: string | undefined
  tls?: (Shown & { listen: string }) | undefined
  public_url: string
  /** Addresses and networks whose `X-Forwarded-For` is believed. */
  trusted_proxies: readonly string[]
  /** Exact origins whose pages may read answers. */
  cors_origins: readonly string[]
  session_same_site: ApiSettings['session_same_site']
  max_connections: number
  /** Networks whose connections are not counted by address: proxies, and the machine itself. */
  uncounted: readonly string[]
  /** Open at once from one IPv4 address or IPv6 /64; four times as many from a /56, sixteen times from a /48. */
  max_connections_per_address: number
  metrics?: MetricsSettings | undefined
  /** The path of the box's own socket, for its operator on this machine; left out: none. */
  control?: string | undefined
}

export interface HttpDeps extends Omit<ApiDeps, 'public_url' | 'clock' | 'roomy' | 'origin'> {
  settings: HttpSettings
  clock?: Clock
  roomy?: () => boolean
  /** Our own origin, where it is known only once we listen; `public_url` unless said. */
  origin?: () => string
}

/** Where the server really listens. */
export interface Addresses {
  plain?: AddressInfo
  tls?: AddressInfo
  metrics?: AddressInfo
}

/** Longest that `stop` waits for calls in hand, in milliseconds. */
const farewell = 5000

/** The API on its ports. */
export class HttpServer {
  readonly #parts: HttpDeps
  readonly #api: Api
  readonly #listeners: Listener[] = []
  readonly #crowd: AddressLimiter
  readonly #figures: PortMetrics
  #addresses: Addresses = {}
  #settings: HttpSettings
  #secure: Listener | undefined

  constructor(parts: HttpDeps) {
    const { settings, clock = systemClock, roomy = () => true, origin = () => settings.public_url } = parts
    this.#parts = parts
    this.#settings = settings
    this.#figures = new PortMetrics(
      parts.metrics,
      () => this.#listeners.reduce((sum, listener) => sum + listener.connections, 0),
      () => this.#settings.max_connections,
    )
    this.#crowd = new AddressLimiter(crowdLimit(settings), this.#figures.crowded)
    this.#api = new Api({ ...parts, clock, roomy, origin, public_url: settings.public_url }, apiSettings(settings))
  }

  get addresses(): Readonly<Addresses> {
    return this.#addresses
  }

  /** Throws when a port is taken; nothing listens then. */
  async start(): Promise<void> {
    try {
      await this.#start(this.#settings)
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  /** Answers the operator alone, on the box's own socket: for a box that is open and not started. Throws when it cannot be made. */
  async attend(): Promise<void> {
    const { control } = this.#settings
    if (control === undefined) throw new Error('There is no socket to answer on.')
    const listener = this.#listener(this.#api.inPerson, {})
    await listener.startAt(control)
    this.#listeners.push(listener)
  }

  /** Takes no more calls, ends waits at once, gives those in hand 5 s. */
  async stop(): Promise<void> {
    this.#api.close()
    const closed = Promise.all(this.#listeners.map((listener) => listener.close()))
    const timer = setTimeout(() => {
      for (const listener of this.#listeners) listener.cut()
    }, farewell)
    await closed
    clearTimeout(timer)
    this.#addresses = {}
  }

  /** Takes over limits, origins, proxies, the certificate and the metrics token; ports stay as they are. */
  async reload(settings: HttpSettings): Promise<void> {
    this.#api.reload(apiSettings(settings))
    this.#settings = settings
    this.#crowd.limit(crowdLimit(settings))
    this.renew()
    for (const listener of this.#listeners) listener.limit(settings.max_connections)
  }

  /** There is another certificate: new connections get it. */
  renew(): void {
    const { tls } = this.#settings
    if (tls) this.#secure?.renew(tls.certificate())
  }

  /** Forgets idempotent answers older than 24 h; answers how many. */
  sweep(): Promise<number> {
    return this.#api.sweep()
  }

  async #start({ listen, tls, metrics, control, max_connections }: HttpSettings): Promise<void> {
    const { handler, upgrades: upgrader } = this.#api
    if (listen !== undefined)
      this.#addresses.plain = await this.#listen(this.#listener(handler, { upgrader }), listen, max_connections)
    if (tls) {
      this.#secure = this.#listener(handler, { tls, upgrader })
      this.#addresses.tls = await this.#listen(this.#secure, tls.listen, max_connections)
    }
    if (metrics?.listen !== undefined) {
      const watched = this.#listener(metricsHandler(this.#parts.metrics), {})
      this.#addresses.metrics = await this.#listen(watched, metrics.listen, max_connections)
    }
    if (control !== undefined) await this.attend()
  }

  #listener(handler: RequestListener, options: { tls?: Shown; upgrader?: Upgrader }): Listener {
    const complain: Complain = (code, message, socket) => {
      const requestId = newId('req')
      const peer = 'remoteAddress' in socket ? String(socket.remoteAddress) : ''
      const standing = this.#api.count(canonicalAddress(peer) ?? '')
      this.#figures.malformed(code)
      this.#parts.log.info({ request_id: requestId, status: 400, code }, 'request that is no HTTP')
      const body = errorBody(problemOf(new Fault('invalid_request', message, { code })), requestId)
      return { body, requestId, headers: standing ? rateHeaders(standing) : {} }
    }
    return new Listener(handler, complain, { ...options, crowd: this.#crowd, unsecured: this.#figures.unsecured })
  }

  async #listen(listener: Listener, address: string, maxConnections: number): Promise<AddressInfo> {
    const bound = await listener.start(address, maxConnections)
    this.#listeners.push(listener)
    return bound
  }
}

function crowdLimit(settings: HttpSettings): AddressLimit {
  return { perAddress: settings.max_connections_per_address, trusted: new Networks(settings.uncounted) }
}

function apiSettings(settings: HttpSettings): ApiSettings {
  const {
    account_rate_limit,
    public_rate_limit,
    document_rate_limit,
    sign_in_rate_limit,
    trusted_proxies,
    cors_origins,
    metrics,
    public_url,
  } = settings
  return {
    public_rate_limit,
    document_rate_limit,
    account_rate_limit,
    sign_in_rate_limit,
    trusted_proxies,
    cors_origins,
    session_same_site: settings.session_same_site,
    metrics_token: metrics?.token,
    headers: securityHeaders(public_url.startsWith('https:')),
  }
}
