import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Clock, systemClock } from '../../core/clock.ts'
import { Fault } from '../../core/fault.ts'
import { newId } from '../../core/ids.ts'
import { ConnectionLimiter } from '../../net/connection-limiter.ts'
import type { Endpoint } from '../../net/listen.ts'
import { canonicalAddress, Networks } from '../../net/networks.ts'
import { ProxiedConnections } from '../../net/proxied-connections.ts'
import { Api } from '../api.ts'
import type { ApiDeps, ApiSettings } from '../types.ts'
import { PortMetrics } from './metrics.ts'
import { metricsHandler, type MetricsSettings } from './health.ts'
import { type RejectRequest, Listener, type Upgrader } from './listener.ts'
import type { ServedCertificate } from './tls-acceptor.ts'
import { errorBody, problemOf } from '../problem.ts'
import { rateLimitHeaders } from '../rate.ts'
import { securityHeaders } from './security-headers.ts'

export interface HttpSettings extends Omit<ApiSettings, 'metrics_token' | 'headers'> {
  /** The listener of plain HTTP; none by default. */
  listen?: Endpoint | undefined
  tls?: (ServedCertificate & { listen: Endpoint }) | undefined
  public_url: string
  max_connections: number
  /** Networks whose connections are not counted by address: proxies, and the machine itself. */
  uncounted: readonly string[]
  /** Open at once from one IPv4 address or IPv6 /64; four times as many from a /56, sixteen times from a /48. */
  max_connections_per_address: number
  /** Proxies whose connections begin with a PROXY protocol header. */
  proxy_protocol: readonly string[]
  metrics?: MetricsSettings | undefined
  /** The path of the control socket for the operator on this machine; none by default. */
  control?: string | undefined
}

export interface HttpDeps extends Omit<ApiDeps, 'public_url' | 'clock' | 'hasSpace' | 'origin'> {
  settings: HttpSettings
  clock?: Clock
  hasSpace?: () => boolean
  /** The origin of the box, when it is only known after listening; `public_url` by default. */
  origin?: () => string
}

/** The bound addresses. */
interface Addresses {
  plain?: AddressInfo
  tls?: AddressInfo
  metrics?: AddressInfo
}

/** How long `stop` waits for running calls, in milliseconds. */
const stopTimeout = 5000

/** The HTTP server: the listeners of the API, of metrics and of the control socket. */
export class HttpServer {
  readonly #deps: HttpDeps
  readonly #api: Api
  readonly #listeners: Listener[] = []
  readonly #limiter: ConnectionLimiter
  readonly #metrics: PortMetrics
  #addresses: Addresses = {}
  #settings: HttpSettings
  #uncounted: Networks
  #proxies: Networks
  #secure: Listener | undefined

  constructor(deps: HttpDeps) {
    const { settings, clock = systemClock, hasSpace = () => true, origin = () => settings.public_url } = deps
    this.#deps = deps
    this.#settings = settings
    this.#uncounted = new Networks(settings.uncounted)
    this.#proxies = new Networks(settings.proxy_protocol)
    this.#metrics = new PortMetrics(
      deps.metrics,
      () => this.#listeners.reduce((sum, listener) => sum + listener.connections, 0),
      () => this.#settings.max_connections,
    )
    this.#limiter = new ConnectionLimiter(() => ({
      // of all addresses together, each listener counts its own
      max_connections: Infinity,
      max_connections_per_address: this.#settings.max_connections_per_address,
      uncounted: this.#uncounted,
    }))
    this.#api = new Api({ ...deps, clock, hasSpace, origin, public_url: settings.public_url }, apiSettings(settings))
  }

  get addresses(): Readonly<Addresses> {
    return this.#addresses
  }

  /** Opens all listeners, or throws and opens none. */
  async start(): Promise<void> {
    try {
      await this.#start(this.#settings)
      this.#api.rates?.start()
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  /** Opens only the control socket, for a box that is open and not started. Throws when it cannot be created. */
  async startControlSocket(): Promise<void> {
    const { control } = this.#settings
    if (control === undefined) throw new Error('The control socket has no path.')
    const listener = this.#listener(this.#api.operatorHandler, {})
    await listener.startAt(control)
    this.#listeners.push(listener)
  }

  /** Accepts no more calls, ends waits at once, and closes connections after 5 s. */
  async stop(): Promise<void> {
    this.#api.close()
    const closed = Promise.all(this.#listeners.map((listener) => listener.close()))
    const timer = setTimeout(() => {
      for (const listener of this.#listeners) listener.cut()
    }, stopTimeout)
    await closed
    clearTimeout(timer)
    await this.#api.rates?.stop()
    this.#addresses = {}
  }

  /** Applies new limits, origins, proxies, the certificate and the metrics token; ports do not change. */
  async reload(settings: HttpSettings): Promise<void> {
    this.#api.reload(apiSettings(settings))
    this.#settings = settings
    this.#uncounted = new Networks(settings.uncounted)
    this.#proxies = new Networks(settings.proxy_protocol)
    this.renew()
    for (const listener of this.#listeners) listener.limit(settings.max_connections)
  }

  /** Uses the renewed certificate for new connections. */
  renew(): void {
    const { tls } = this.#settings
    if (tls) this.#secure?.renew(tls.certificate())
  }

  async #start({ listen, tls, metrics, control, max_connections }: HttpSettings): Promise<void> {
    const { handler, upgrades: upgrader } = this.#api
    const proxied = (): ProxiedConnections => new ProxiedConnections(() => this.#proxies, this.#deps.log)
    if (listen !== undefined) {
      const plain = this.#listener(handler, { upgrader, proxied: proxied() })
      this.#addresses.plain = await this.#listen(plain, listen, max_connections)
    }
    if (tls) {
      this.#secure = this.#listener(handler, { tls, upgrader, proxied: proxied() })
      this.#addresses.tls = await this.#listen(this.#secure, tls.listen, max_connections)
    }
    if (metrics?.listen !== undefined) {
      const watched = this.#listener(metricsHandler(this.#deps.metrics), {})
      this.#addresses.metrics = await this.#listen(watched, metrics.listen, max_connections)
    }
    if (control !== undefined) await this.startControlSocket()
  }

  #listener(
    handler: RequestListener,
    options: { tls?: ServedCertificate; upgrader?: Upgrader; proxied?: ProxiedConnections },
  ): Listener {
    const reject: RejectRequest = (code, message, socket) => {
      const requestId = newId('req')
      const peer = 'remoteAddress' in socket ? String(socket.remoteAddress) : ''
      const rateLimit = this.#api.count(canonicalAddress(peer) ?? '')
      this.#metrics.malformed(code)
      this.#deps.log.info({ request_id: requestId, status: 400, code }, 'invalid HTTP request')
      const body = errorBody(problemOf(new Fault('invalid_request', message, { code })), requestId)
      return { body, requestId, headers: rateLimit ? rateLimitHeaders(rateLimit) : {} }
    }
    const { tlsFailed, connectionRefused } = this.#metrics
    return new Listener(handler, reject, { ...options, limiter: this.#limiter, tlsFailed, connectionRefused })
  }

  async #listen(listener: Listener, endpoint: Endpoint, maxConnections: number): Promise<AddressInfo> {
    const bound = await listener.start(endpoint, maxConnections)
    this.#listeners.push(listener)
    return bound
  }
}

function apiSettings(settings: HttpSettings): ApiSettings {
  const { metrics, public_url } = settings
  return { ...settings, metrics_token: metrics?.token, headers: securityHeaders(public_url.startsWith('https:')) }
}
