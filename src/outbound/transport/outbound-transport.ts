import { once } from 'node:events'
import type { Socket } from 'node:net'
import { type Clock, minute } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Metrics } from '../../core/metrics.ts'
import { Outside, type OutsideDial, type OutsideSettings } from '../../net/outside.ts'
import type { DnsTally } from '../../net/dns-tally.ts'
import { recordsOf, resolver } from '../../net/resolve.ts'
import { SecureDns } from '../../net/secure-dns.ts'
import type { Domains } from '../../domains/domains.ts'
import type { Inbox } from '../../mail/inbox.ts'
import type { OutgoingEmails } from '../../mail/outgoing.ts'
import type { Database } from '../../store/database.ts'
import { Connections } from './connections.ts'
import { MailCourier, type Transport } from './courier.ts'
import type { Timeouts } from './attempt-bounds.ts'
import { Dane } from './dane.ts'
import type { Dial } from './dial.ts'
import { SmtpDelivery } from './smtp-delivery.ts'
import { MailExchangers } from './mx.ts'
import { Outcomes } from './outcomes.ts'
import { Policies } from './policies.ts'
import { AddressPolicy } from './address-policy.ts'
import { domainOf } from '../compose/recipients.ts'
import type { ReturnPaths } from '../return-path.ts'
import { type OutboundSettings, Routing } from './routing.ts'
import type { Suppressions } from '../suppressions.ts'
import { TlsMemory } from './tls-memory.ts'
import type { TlsListener } from './tls-result.ts'
import { Undelivered } from './undelivered.ts'

/** What tests put in place of TCP to mail servers, of TLS to policy hosts, and of the time that an attempt may take. */
export interface TransportTest {
  dial?: Dial | undefined
  outsideDial?: OutsideDial | undefined
  timeout?: Timeouts | undefined
}

interface Deps extends TransportTest {
  database: Database
  clock: Clock
  log: Log
  metrics: Metrics
  domains: Domains
  inbox: Inbox
  outgoing: OutgoingEmails
  queries: DnsTally
  suppressions: Suppressions
  returnPaths: ReturnPaths
  /** Where this box itself takes mail. */
  listeners: () => { host: string; port: number }[]
  settings: OutboundSettings
}

/** A message that no identity sends. */
export interface SystemMail {
  from: string
  to: string
  raw: Buffer
  /** Whether it goes whatever is wrong with TLS (RFC 8460 3). */
  despite_tls: boolean
}

/** What became of an attempt to hand one over, with the server's words. */
export interface SystemMailResult {
  outcome: 'delivered' | 'deferred' | 'refused'
  response: string
  mx: string | null
}

/** Milliseconds that one attempt may take. */
const systemTime = 5 * minute

/** All that carries mail to others, put together; what the settings decide is made anew when they change. */
export class OutboundTransport {
  readonly courier: MailCourier
  readonly #deps: Deps
  readonly #connections = new Connections()
  readonly #outside: Outside
  readonly #memory: TlsMemory
  #transport: Transport & { exchangers: MailExchangers }
  #listener: TlsListener | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    this.#outside = new Outside(outsideSettings(deps.settings), deps.outsideDial)
    this.#memory = new TlsMemory(deps)
    this.#transport = this.#route(deps.settings)
    this.courier = new MailCourier({ ...deps, outcomes: new Outcomes(deps), transport: () => this.#transport })
    deps.metrics.gauge(
      'pillarbox_mail_connections',
      'Connections to other mail servers: in use or being opened, and idle',
      (gauge) => {
        gauge.labels('busy').set(this.#connections.busy)
        gauge.labels('idle').set(this.#connections.idle)
      },
      ['state'],
    )
  }

  /** Attempts under way end as they began. */
  reload(settings: OutboundSettings): void {
    this.#outside.reload(outsideSettings(settings))
    this.#transport = this.#route(settings)
    this.#connections.drop()
  }

  /** Reaches the server that takes mail for a domain, and hangs up once it greets; answers who it is. Throws a sentence. */
  async probe(domain: string, signal: AbortSignal): Promise<string> {
    const { routing, exchangers } = this.#transport
    const { target, options } = await routing.to(domain, false)
    for await (const { socket, hostname, address } of exchangers.servers(target, signal)) {
      const who = `${hostname} (${address}, port ${target.port})`
      try {
        // with TLS from the first octet it is the client that speaks first
        if (!options.implicit) await greeted(socket, who, signal)
        return who
      } finally {
        socket.destroy()
      }
    }
    throw new Error(`no server of ${domain} took a connection`)
  }

  /** Who hears how TLS sessions went. */
  onTls(listener: TlsListener): void {
    this.#listener = listener
  }

  /** Hands over a message that no identity sends, to a domain that is not ours. */
  async sendSystemMail({ from, to, raw, despite_tls }: SystemMail, signal: AbortSignal): Promise<SystemMailResult> {
    const { routing, smtpDelivery } = this.#transport
    const overdue = AbortSignal.timeout(systemTime)
    try {
      const way = await routing.to(domainOf(to), false, despite_tls)
      const copy = { from, to, require_tls: false }
      const { response, hostname } = await smtpDelivery.deliver(way, copy, async () => raw, AbortSignal.any([signal, overdue]))
      return { outcome: 'delivered', response, mx: hostname }
    } catch (error) {
      if (error instanceof Undelivered) {
        const { response, mx } = error.answer
        return { outcome: error.permanent ? 'refused' : 'deferred', response: response ?? error.message, mx }
      }
      if (overdue.aborted && !signal.aborted) {
        return { outcome: 'deferred', response: `no end within ${systemTime / 1000} s`, mx: null }
      }
      throw error
    }
  }

  async stop(): Promise<void> {
    this.#connections.drop()
    await this.#outside.close()
  }

  #route(settings: OutboundSettings): Transport & { exchangers: MailExchangers } {
    const records = this.#deps.queries.counting(recordsOf(settings.dns))
    const exchangers = new MailExchangers({
      records,
      reach: new AddressPolicy(settings.allow_networks, this.#deps.listeners),
      dane: settings.dane ? new Dane(new SecureDns(settings.dns, this.#deps.queries)) : undefined,
      settings,
      dial: this.#deps.dial,
    })
    const policies = new Policies({ ...this.#deps, records, outside: this.#outside })
    return {
      hostname: settings.hostname,
      exchangers,
      routing: new Routing(settings, policies),
      smtpDelivery: new SmtpDelivery({
        exchangers,
        connections: this.#connections,
        memory: this.#memory,
        log: this.#deps.log,
        report: (result) => this.#listener?.(result),
      }),
    }
  }
}

function outsideSettings({ allow_networks, dns }: OutboundSettings): OutsideSettings {
  return { allow_networks, allow_http: false, resolve: resolver(dns) }
}

/** Waits for the greeting of a server. Throws when it is another word than 220 (RFC 5321 3.1). */
async function greeted(socket: Socket, who: string, signal: AbortSignal): Promise<void> {
  const closed = once(socket, 'close', { signal }).then(() => {
    throw new Error(`${who} hangs up without a word`)
  })
  closed.catch(() => undefined)
  const [chunk] = (await Promise.race([once(socket, 'data', { signal }), closed])) as [Buffer]
  const said = chunk.toString('latin1').split(/\r?\n/, 1)[0]!
  if (!said.startsWith('220')) throw new Error(`${who} says “${said.slice(0, 100)}”`)
  socket.write('QUIT\r\n')
}
