import { createRequire } from 'node:module'
import { isIP, type Socket } from 'node:net'
import { callbackify } from 'node:util'
import { isAbsent, type Records, type RecordsOf } from '../../net/resolve.ts'
import { connectFailure, type Dial, dialSocket } from './dial.ts'
import type { Tlsa } from '../../net/tls-worker.ts'
import { type Dane, type DaneQueries, isUsable } from './dane.ts'
import type { AddressPolicy } from './address-policy.ts'
import { later, never, refused, Undelivered } from './undelivered.ts'

/** The mail servers of a domain, or a relay. */
export interface MailHosts {
  /** The recipients' domain, lower-case A-labels; for a relay only its name in messages. */
  domain: string
  port: number
  /** The only server, instead of those in the DNS: a relay of the operator, at any address. */
  host?: string
  /** True if the MTA-STS policy allows this server. */
  allows?: (hostname: string) => boolean
  /** TLSA records are not queried. */
  withoutDane?: true
}

/** An open connection to a server. */
export interface ServerConnection {
  socket: Socket
  hostname: string
  address: string
  /** The TLSA records that the certificate has to match (RFC 7672). Only set when there are any that can be used. */
  tlsa?: Tlsa[]
  /** The domain whose TLSA records have led here. */
  domain: string
  /** True if it has TLSA records, none of which can be used: TLS is required, with any certificate (RFC 7672 2.2). */
  requiresTls: boolean
  /** Connects to the same address once more. */
  reconnect(): Promise<Socket>
}

interface Settings {
  /** Our own host name: an MX of that name is this box. */
  hostname: string
  ipv6: boolean
}

/** The options and results of the library, which has no types of its own. */
interface Options {
  target: string
  port: number
  mx?: { exchange: string }[]
  maxConnectTime: number
  ignoreMXHosts: string[]
  mxLastError: Error
  dnsOptions: { ignoreIPv6: boolean; resolveRecords: (name: string, type: keyof RecordsOf) => Promise<unknown> }
  dane?: DaneQueries & { enabled: true }
  connectHook: (delivery: Delivery, place: ConnectTarget, done: (error: Error) => void) => void
}
/** The state of the library before it connects: the MX hosts with their addresses. */
interface Delivery {
  mx: { exchange: string; A: string[]; AAAA: string[] }[]
}
interface ConnectTarget {
  host: string
  port: number
  socket?: Socket
}
interface Found {
  socket: Socket
  hostname: string
  host: string
  tlsaRecords?: Tlsa[] | null
}

const require = createRequire(import.meta.url)

// loaded when it is first used: it takes ten megabytes
const mxConnect = (options: Options): Promise<Found> => (require('mx-connect') as typeof mxConnect)(options)

/** Maximum MX hosts of a domain, addresses of a host, and servers of one attempt. */
const maxExchanges = 10
const maxAddresses = 8
const maxServers = 8

/** Connection timeout, in milliseconds. */
const connectTime = 30_000

/** Finds the servers of a domain and connects to them (RFC 5321 5.1, RFC 7505). Each address is checked before and after connecting. */
export class MailExchangers {
  readonly #records: Records
  readonly #addressPolicy: AddressPolicy
  readonly #dane: Dane | undefined
  readonly #settings: Settings
  readonly #dial: Dial

  constructor(deps: {
    records: Records
    addressPolicy: AddressPolicy
    dane: Dane | undefined
    settings: Settings
    dial?: Dial | undefined
  }) {
    this.#records = deps.records
    this.#addressPolicy = deps.addressPolicy
    this.#dane = deps.dane
    this.#settings = deps.settings
    this.#dial = deps.dial ?? dialSocket
  }

  /**
   * Connections to the servers of a domain, in the order of preference; the next is opened only when the caller continues. Throws Undelivered when
   * no server could be reached, and at the end when one of them could not.
   */
  async *servers(
    target: MailHosts,
    signal: AbortSignal,
    onServer: (server: { hostname: string; address: string }) => void = () => undefined,
  ): AsyncGenerator<ServerConnection, void> {
    const view = this.#view(target)
    const tried: string[] = []
    let first: Undelivered | undefined
    let opened = 0
    for (let tries = 0; tries < maxServers; tries++) {
      try {
        const found = await this.#connect(target, view, tried, signal, onServer)
        opened += 1
        yield found
      } catch (error) {
        if (error === exhausted) break
        if (signal.aborted || !(error instanceof Undelivered)) throw error
        // this box, after servers that did not answer, is no loop: they may answer later
        first ??= error
        if (error.step !== 'connect') break
      }
    }
    if (opened === 0) throw first ?? later(`no server of ${target.domain} could be reached`, '4.4.1')
    // a server that could not be reached may still accept the message
    if (first && !first.permanent) throw first
  }

  async #connect(
    target: MailHosts,
    view: View,
    tried: string[],
    signal: AbortSignal,
    onServer: (server: { hostname: string; address: string }) => void,
  ): Promise<ServerConnection> {
    const open = async (address: string): Promise<Socket> => {
      this.#check(target, address)
      try {
        const socket = await this.#dial(
          { host: address, port: target.port },
          AbortSignal.any([signal, AbortSignal.timeout(connectTime)]),
        )
        this.#checkPeer(target, socket)
        return socket
      } catch (error) {
        if (error instanceof Undelivered || signal.aborted) throw error
        throw later(`${address}: ${connectFailure(error)}`, '4.4.1', 'connect')
      }
    }
    const dane = target.host === undefined && !target.withoutDane ? this.#dane?.of(target.domain) : undefined
    const found = await mxConnect({
      target: target.domain,
      port: target.port,
      ...(target.host === undefined ? {} : { mx: [{ exchange: target.host }] }),
      maxConnectTime: connectTime,
      ignoreMXHosts: tried,
      mxLastError: exhausted,
      dnsOptions: { ignoreIPv6: !this.#settings.ipv6, resolveRecords: view.resolve },
      ...(dane ? { dane: { enabled: true, ...dane } } : {}),
      connectHook: callbackify(async ({ mx }: Delivery, place: ConnectTarget): Promise<void> => {
        tried.push(place.host)
        const exchange = mx.find(({ A, AAAA }) => A.includes(place.host) || AAAA.includes(place.host))?.exchange
        const server = { hostname: normalized(exchange ?? target.host ?? target.domain), address: place.host }
        onServer(server)
        place.socket = await open(place.host).catch((error: unknown) => {
          throw error instanceof Undelivered ? error.at({ ...server, tls: null, security: null }) : error
        })
      }),
    }).catch((error: unknown) => {
      throw error === exhausted || error instanceof Undelivered ? (view.failure ?? error) : view.explain(error)
    })
    const { socket, host } = found
    const records = dane ? (found.tlsaRecords ?? []) : []
    const tlsa = records.filter(isUsable)
    const hostname = normalized(found.hostname)
    // for a domain without MX the library queries only addresses, so the policy was not checked before
    if (target.allows && !target.allows(hostname)) {
      socket.destroy()
      throw notAdmitted(target.domain)
    }
    return {
      socket,
      hostname,
      address: host,
      ...(tlsa.length > 0 ? { tlsa } : {}),
      domain: target.domain,
      requiresTls: records.length > 0 && tlsa.length === 0,
      reconnect: () => open(host),
    }
  }

  #check({ domain, host, port }: MailHosts, address: string): void {
    // a relay may have any address
    if (host !== undefined) return
    if (this.#addressPolicy.isOurs(address, port)) throw loop(domain)
    const why = this.#addressPolicy.refuses(address)
    if (why !== undefined) throw forbidden(why)
  }

  #checkPeer(target: MailHosts, socket: Socket): void {
    try {
      this.#check(target, socket.remoteAddress ?? '')
    } catch (error) {
      socket.destroy()
      throw error
    }
  }

  /** The DNS for one attempt: each query is made once, and forbidden hosts are left out. */
  #view(target: MailHosts): View {
    const answers = new Map<string, Promise<unknown[]>>()
    const view: View = {
      failure: undefined,
      forbidden: undefined,
      explain: (error) => view.failure ?? toUndelivered(error, target.domain, view.forbidden),
      resolve: (name, type) => {
        const key = `${type} ${name}`
        const answer = answers.get(key) ?? this.#query(target, view, name, type)
        answers.set(key, answer)
        // a copy, as the library sorts it
        return answer.then((list) => [...list])
      },
    }
    return view
  }

  async #query(target: MailHosts, view: View, name: string, type: keyof RecordsOf): Promise<unknown[]> {
    if (type === 'MX') return this.#exchanges(target, view, await this.#records(name, type))
    if (type === 'TXT') return this.#records(name, type)
    const found = (await this.#records(name, type)).slice(0, maxAddresses)
    if (target.host !== undefined) return found
    const why = found.map((address) => this.#addressPolicy.refuses(address)).find((reason) => reason !== undefined)
    const allowed = found.filter((address) => this.#addressPolicy.refuses(address) === undefined)
    if (why !== undefined) view.forbidden ??= forbidden(`${name} is at ${why}`)
    return allowed
  }

  #exchanges({ domain, allows }: MailHosts, view: View, found: RecordsOf['MX']): RecordsOf['MX'] {
    const usable = found.filter(({ exchange }) => exchange !== '' && exchange !== '.')
    if (usable.length === 0) return found
    const named = usable.filter(({ exchange }) => isIP(exchange.replace(/\.$/, '')) === 0)
    if (named.length === 0) throw (view.failure = never(`the MX of ${domain} is an address but must be a host name`, '5.4.4'))
    const own = named.find(({ exchange }) => normalized(exchange) === this.#settings.hostname)
    // RFC 5321 5.1: servers of the same or lower preference than this box would send it back
    const before = own ? named.filter(({ priority }) => priority < own.priority) : named
    if (before.length === 0) throw (view.failure = loop(domain))
    const admitted = allows ? before.filter(({ exchange }) => allows(normalized(exchange))) : before
    if (admitted.length === 0) throw (view.failure = notAdmitted(domain))
    return admitted
      .map((one) => ({ ...one, exchange: normalized(one.exchange), chance: Math.random() }))
      .toSorted((one, other) => one.priority - other.priority || one.chance - other.chance)
      .slice(0, maxExchanges)
      .map(({ exchange, priority }) => ({ exchange, priority }))
  }
}

interface View {
  /** The error that we threw through the library, which replaces it by its own. */
  failure: Undelivered | undefined
  /** The error for an address that was left out. */
  forbidden: Undelivered | undefined
  explain(error: unknown): Undelivered
  resolve: (name: string, type: keyof RecordsOf) => Promise<unknown[]>
}

/** The error of the library after the last server. */
const exhausted = new Error('every server was tried')

/** Converts an error of the library. An address that was left out explains why no server is left, unless the DNS itself failed. */
function toUndelivered(error: unknown, domain: string, left: Undelivered | undefined): Undelivered {
  const { code, temporary } = error as { code?: unknown; temporary?: unknown }
  if (code === 'ENULLMX') return never(`${domain} accepts no mail (null MX, RFC 7505)`, '5.1.10')
  if (temporary === true)
    return later(`the DNS lookup of ${domain} failed (${typeof code === 'string' ? code : 'no code'})`, '4.4.3')
  if (left) return left
  if (isAbsent(error)) return never(`${domain} has no mail server and no address in the DNS`, '5.1.2')
  return later(error instanceof Error ? error.message.slice(0, 300) : 'no server was found', '4.4.4')
}

function loop(domain: string): Undelivered {
  return never(`the mail server of ${domain} is this box, which has no such domain: the mail would loop`, '5.4.6', 'loop')
}

function forbidden(why: string): Undelivered {
  return refused(`${why}, which is not a public address; outbound.allow_networks may allow it`, { enhanced_code: '5.4.4' })
}

function notAdmitted(domain: string): Undelivered {
  return later(`no mail server of ${domain} matches its MTA-STS policy (RFC 8461)`, '4.7.0', 'policy')
}

/** A name for comparison: lower case, without a trailing dot. */
function normalized(name: string): string {
  return name.replace(/\.$/, '').toLowerCase()
}
