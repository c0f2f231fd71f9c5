import { createRequire } from 'node:module'
import { isIP, type Socket } from 'node:net'
import { callbackify } from 'node:util'
import { isAbsent, type Records, type RecordsOf } from '../../net/resolve.ts'
import { connectFailure, type Dial, dialSocket } from './dial.ts'
import type { Dane, DaneQuestions, Tlsa } from './dane.ts'
import type { AddressPolicy } from './address-policy.ts'
import { later, never, refused, Undelivered } from './undelivered.ts'

/** Where mail for a domain goes. */
export interface MailHosts {
  /** The recipients' domain, lower-case A-labels; for a relay only its name in sentences. */
  domain: string
  port: number
  /** The one server, in place of what the DNS says of the domain: a relay of the operator's, wherever it is. */
  host?: string
  /** Whether a policy lets us speak to this server. */
  allows?: (hostname: string) => boolean
  /** TLSA records are not asked for. */
  withoutDane?: true
}

/** A server that took the connection. */
export interface ServerConnection {
  socket: Socket
  hostname: string
  address: string
  /** Checks the certificate against TLSA records (RFC 7672); answers what is wrong. Only where there are any. */
  verify?: (certificate: Certificate, chain: Certificate[]) => Error | undefined
  /** These records. */
  tlsa?: Tlsa[]
  /** Connects to the same address once more. */
  reconnect(): Promise<Socket>
}

interface Certificate {
  raw: Buffer
}

interface Settings {
  /** Our own name: an exchange of that name is ourselves. */
  hostname: string
  ipv6: boolean
}

/** What the library is asked, and what it answers; it has no types of its own. */
interface Options {
  target: string
  port: number
  mx?: { exchange: string }[]
  maxConnectTime: number
  ignoreMXHosts: string[]
  mxLastError: Error
  dnsOptions: { ignoreIPv6: boolean; resolveRecords: (name: string, type: keyof RecordsOf) => Promise<unknown> }
  dane?: DaneQuestions & { enabled: true }
  connectHook: (delivery: Delivery, place: Place, done: (error: Error) => void) => void
}
/** The library's work, when it is about to connect: the exchanges with their addresses. */
interface Delivery {
  mx: { exchange: string; A: string[]; AAAA: string[] }[]
}
interface Place {
  host: string
  port: number
  socket?: Socket
}
interface Found {
  socket: Socket
  hostname: string
  host: string
  daneVerifier?: (hostname: string, certificate: Certificate, chain: Certificate[]) => Error | undefined
}

const mxConnect = createRequire(import.meta.url)('mx-connect') as (options: Options) => Promise<Found>

/** Exchanges of a domain, addresses of an exchange, and servers of one attempt: more are a burden, not a choice. */
const maxExchanges = 10
const maxAddresses = 8
const maxServers = 8

/** Longest time for one connection, in milliseconds. */
const connectTime = 30_000

/** Finds and reaches the servers of a domain (RFC 5321 5.1, RFC 7505): each address is checked before a connection and after. */
export class MailExchangers {
  readonly #records: Records
  readonly #reach: AddressPolicy
  readonly #dane: Dane | undefined
  readonly #settings: Settings
  readonly #dial: Dial

  constructor(parts: {
    records: Records
    reach: AddressPolicy
    dane: Dane | undefined
    settings: Settings
    dial?: Dial | undefined
  }) {
    this.#records = parts.records
    this.#reach = parts.reach
    this.#dane = parts.dane
    this.#settings = parts.settings
    this.#dial = parts.dial ?? dialSocket
  }

  /**
   * The servers of a domain that take a connection, best first; whoever is done with one takes the next only if that one would not do.
   * Throws Undelivered when there is none at all, and at the end when one was not reached.
   */
  async *servers(
    target: MailHosts,
    signal: AbortSignal,
    trying: (server: { hostname: string; address: string }) => void = () => undefined,
  ): AsyncGenerator<ServerConnection, void> {
    const view = this.#view(target)
    const spent: string[] = []
    let first: Undelivered | undefined
    let opened = 0
    for (let tries = 0; tries < maxServers; tries++) {
      try {
        const found = await this.#connect(target, view, spent, signal, trying)
        opened += 1
        yield found
      } catch (error) {
        if (error === exhausted) break
        if (signal.aborted || !(error instanceof Undelivered)) throw error
        // ourselves, behind servers that did not answer, is no loop: they may yet
        first ??= error
        if (error.step !== 'connect') break
      }
    }
    if (opened === 0) throw first ?? later(`no server of ${target.domain} could be reached`, '4.4.1')
    // those that took the connection would not do: one that was not reached may yet
    if (first && !first.permanent) throw first
  }

  async #connect(
    target: MailHosts,
    view: View,
    spent: string[],
    signal: AbortSignal,
    trying: (server: { hostname: string; address: string }) => void,
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
      ignoreMXHosts: spent,
      mxLastError: exhausted,
      dnsOptions: { ignoreIPv6: !this.#settings.ipv6, resolveRecords: view.resolve },
      ...(dane ? { dane: { enabled: true, ...dane } } : {}),
      connectHook: callbackify(async ({ mx }: Delivery, place: Place): Promise<void> => {
        spent.push(place.host)
        const exchange = mx.find(({ A, AAAA }) => A.includes(place.host) || AAAA.includes(place.host))?.exchange
        const server = { hostname: bare(exchange ?? target.host ?? target.domain), address: place.host }
        trying(server)
        place.socket = await open(place.host).catch((error: unknown) => {
          throw error instanceof Undelivered ? error.at({ ...server, tls: null, security: null }) : error
        })
      }),
    }).catch((error: unknown) => {
      throw error === exhausted || error instanceof Undelivered ? (view.failure ?? error) : view.explain(error)
    })
    const { socket, host, daneVerifier } = found
    const hostname = bare(found.hostname)
    // of a domain without MX the library asks for addresses alone, so its name was not seen before
    if (target.allows && !target.allows(hostname)) {
      socket.destroy()
      throw notAdmitted(target.domain)
    }
    const prove = daneVerifier && ((one: Certificate, chain: Certificate[]) => daneVerifier(hostname, one, chain))
    const tlsa = dane?.found.get(`_${target.port}._tcp.${hostname}`) ?? []
    return { socket, hostname, address: host, ...(prove ? { verify: prove, tlsa } : {}), reconnect: () => open(host) }
  }

  #check({ domain, host, port }: MailHosts, address: string): void {
    // a relay is where the operator says
    if (host !== undefined) return
    if (this.#reach.isOurs(address, port)) throw loop(domain)
    const why = this.#reach.refuses(address)
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

  /** The DNS as one attempt sees it: each question asked once, and what must not be reached left out. */
  #view(target: MailHosts): View {
    const asked = new Map<string, Promise<unknown[]>>()
    const view: View = {
      failure: undefined,
      forbidden: undefined,
      explain: (error) => view.failure ?? toUndelivered(error, target.domain, view.forbidden),
      resolve: (name, type) => {
        const key = `${type} ${name}`
        const answer = asked.get(key) ?? this.#ask(target, view, name, type)
        asked.set(key, answer)
        // the library sorts what it gets
        return answer.then((list) => [...list])
      },
    }
    return view
  }

  async #ask(target: MailHosts, view: View, name: string, type: keyof RecordsOf): Promise<unknown[]> {
    if (type === 'MX') return this.#exchanges(target, view, await this.#records(name, type))
    if (type === 'TXT') return this.#records(name, type)
    const found = (await this.#records(name, type)).slice(0, maxAddresses)
    if (target.host !== undefined) return found
    const why = found.map((address) => this.#reach.refuses(address)).find((reason) => reason !== undefined)
    const allowed = found.filter((address) => this.#reach.refuses(address) === undefined)
    if (why !== undefined) view.forbidden ??= forbidden(`${name} is at ${why}`)
    return allowed
  }

  #exchanges({ domain, allows }: MailHosts, view: View, found: RecordsOf['MX']): RecordsOf['MX'] {
    const usable = found.filter(({ exchange }) => exchange !== '' && exchange !== '.')
    if (usable.length === 0) return found
    const named = usable.filter(({ exchange }) => isIP(exchange.replace(/\.$/, '')) === 0)
    if (named.length === 0) throw (view.failure = never(`the MX of ${domain} is an address, and must be a name`, '5.4.4'))
    const own = named.find(({ exchange }) => bare(exchange) === this.#settings.hostname)
    // RFC 5321 5.1: servers that are not before ourselves would bring it back
    const before = own ? named.filter(({ priority }) => priority < own.priority) : named
    if (before.length === 0) throw (view.failure = loop(domain))
    const admitted = allows ? before.filter(({ exchange }) => allows(bare(exchange))) : before
    if (admitted.length === 0) throw (view.failure = notAdmitted(domain))
    return admitted
      .map((one) => ({ ...one, exchange: bare(one.exchange), chance: Math.random() }))
      .toSorted((one, other) => one.priority - other.priority || one.chance - other.chance)
      .slice(0, maxExchanges)
      .map(({ exchange, priority }) => ({ exchange, priority }))
  }
}

interface View {
  /** What is wrong with the domain in our eyes: thrown into the library, which says it in other words. */
  failure: Undelivered | undefined
  /** An address that was left out. */
  forbidden: Undelivered | undefined
  explain(error: unknown): Undelivered
  resolve: (name: string, type: keyof RecordsOf) => Promise<unknown[]>
}

/** What the library throws when every server was tried. */
const exhausted = new Error('every server was tried')

/** What the library says of the DNS; an address that was left out explains why nothing is left, unless the DNS itself was in trouble. */
function toUndelivered(error: unknown, domain: string, left: Undelivered | undefined): Undelivered {
  const { code, temporary } = error as { code?: unknown; temporary?: unknown }
  if (code === 'ENULLMX') return never(`${domain} takes no mail (null MX, RFC 7505)`, '5.1.10')
  if (temporary === true)
    return later(`the DNS gave no answer about ${domain} (${typeof code === 'string' ? code : 'no code'})`, '4.4.3')
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
  return later(`no mail server of ${domain} is one that its MTA-STS policy names (RFC 8461)`, '4.7.0', 'policy')
}

/** A name as it is compared: lower case, no dot at the end. */
function bare(name: string): string {
  return name.replace(/\.$/, '').toLowerCase()
}
