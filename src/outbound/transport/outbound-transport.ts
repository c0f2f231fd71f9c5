import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Basis } from '../../basis.ts'
import { minute } from '../../core/clock.ts'
import { Outside, type OutsideDial, type OutsideSettings } from '../../net/outside.ts'
import type { DnsTally } from '../../net/dns-tally.ts'
import { recordsOf, resolver } from '../../net/resolve.ts'
import { SecureDns } from '../../net/secure-dns.ts'
import type { Domains } from '../../domains/domains.ts'
import type { Inbox } from '../../mail/inbox.ts'
import type { OutgoingEmails } from '../../mail/outgoing.ts'
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
import type { DkimSigner } from '../compose/signing.ts'
import type { ReturnPaths } from '../return-path.ts'
import { type OutboundSettings, Routing } from './routing.ts'
import type { Suppressions } from '../suppressions.ts'
import { TlsMemory } from './tls-memory.ts'
import type { TlsListener } from './tls-result.ts'
import { Undelivered } from './undelivered.ts'

/** Lets tests replace TCP to mail servers, TLS to policy hosts, and timeouts. */
export interface TransportTest {
  dial?: Dial | undefined
  outsideDial?: OutsideDial | undefined
  timeout?: Timeouts | undefined
}

interface Deps extends TransportTest, Pick<Basis, 'database' | 'clock' | 'log' | 'metrics'> {
  domains: Domains
  inbox: Inbox
  outgoing: OutgoingEmails
  queries: DnsTally
  suppressions: Suppressions
  returnPaths: ReturnPaths
  signer: DkimSigner
  /** The addresses at which this box receives mail. */
  listeners: () => { host: string; port: number }[]
  settings: OutboundSettings
}

/** A message that no identity sends, such as a report. */
export interface SystemMail {
  from: string
  to: string
  raw: Buffer
  /** True if it is sent even when TLS fails (RFC 8460 3). */
  despite_tls: boolean
}

/** The result of sending one, with the reply of the server. */
export interface SystemMailResult {
  outcome: 'delivered' | 'deferred' | 'refused'
  response: string
  mx: string | null
}

/** Timeout of one attempt, in milliseconds. */
const systemMailTimeout = 5 * minute

/** Delivers mail to other servers. The parts that depend on settings are created again when they change. */
export class OutboundTransport {
  readonly courier: MailCourier
  readonly #deps: Deps
  readonly #connections = new Connections()
  readonly #outside: Outside
  readonly #tlsMemory: TlsMemory
  #transport: Transport & { exchangers: MailExchangers }
  #listener: TlsListener | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    this.#outside = new Outside(outsideSettings(deps.settings), deps.outsideDial)
    this.#tlsMemory = new TlsMemory(deps)
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

  /** Running attempts keep the previous settings. */
  reload(settings: OutboundSettings): void {
    this.#outside.reload(outsideSettings(settings))
    this.#transport = this.#route(settings)
    this.#connections.drop()
  }

  /** Connects to the mail server of a domain and disconnects after its greeting; returns its name. Throws an Error with a readable message. */
  async probe(domain: string, signal: AbortSignal): Promise<string> {
    const { routing, exchangers } = this.#transport
    const { target, options } = await routing.to(domain, false)
    for await (const { socket, hostname, address } of exchangers.servers(target, signal)) {
      const who = `${hostname} (${address}, port ${target.port})`
      try {
        // with implicit TLS the client sends first
        if (!options.implicit) await greeted(socket, who, signal)
        return who
      } finally {
        socket.destroy()
      }
    }
    throw new Error(`no server of ${domain} accepted a connection`)
  }

  /** Sets the listener for the results of TLS sessions. */
  onTls(listener: TlsListener): void {
    this.#listener = listener
  }

  /** Sends such a message to an external domain. */
  async sendSystemMail({ from, to, raw, despite_tls }: SystemMail, signal: AbortSignal): Promise<SystemMailResult> {
    const { routing, smtpDelivery } = this.#transport
    const overdue = AbortSignal.timeout(systemMailTimeout)
    try {
      const route = await routing.to(domainOf(to), false, despite_tls)
      const copy = { from, to, require_tls: false }
      const { response, hostname } = await smtpDelivery.deliver(route, copy, async () => raw, AbortSignal.any([signal, overdue]))
      return { outcome: 'delivered', response, mx: hostname }
    } catch (error) {
      if (error instanceof Undelivered) {
        const { response, mx } = error.answer
        return { outcome: error.permanent ? 'refused' : 'deferred', response: response ?? error.message, mx }
      }
      if (overdue.aborted && !signal.aborted) {
        return { outcome: 'deferred', response: `not finished within ${systemMailTimeout / 1000} s`, mx: null }
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
      addressPolicy: new AddressPolicy(settings.allow_networks, this.#deps.listeners),
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
        memory: this.#tlsMemory,
        log: this.#deps.log,
        report: (result) => this.#listener?.(result),
      }),
    }
  }
}

function outsideSettings({ allow_networks, dns }: OutboundSettings): OutsideSettings {
  return { allow_networks, allow_http: false, resolve: resolver(dns) }
}

/** Waits for the greeting of a server. Throws when its code is not 220 (RFC 5321 3.1). */
async function greeted(socket: Socket, who: string, signal: AbortSignal): Promise<void> {
  const closed = once(socket, 'close', { signal }).then(() => {
    throw new Error(`${who} closes the connection without a greeting`)
  })
  closed.catch(() => undefined)
  const [chunk] = (await Promise.race([once(socket, 'data', { signal }), closed])) as [Buffer]
  const said = chunk.toString('latin1').split(/\r?\n/, 1)[0]!
  if (!said.startsWith('220')) throw new Error(`${who} replies “${said.slice(0, 100)}”`)
  socket.write('QUIT\r\n')
}
