import { isIP } from 'node:net'
import type { NextHop } from './smtp-delivery.ts'
import { policyNames, type Policies } from './policies.ts'
import { noPolicy, stsPolicy } from './tls-result.ts'
import type { TlsLevel } from './session.ts'
import { later, never } from './undelivered.ts'

/** How a message leaves: to which server, and whether taking it means that it arrived or only that it was passed on. */
export interface Route extends NextHop {
  outcome: 'delivered' | 'sent'
}

/** Decides by recipient domain and settings which server takes a message, and how much TLS that must be. */
export class Routing {
  readonly #settings: OutboundSettings
  readonly #policies: Policies

  constructor(settings: OutboundSettings, policies: Policies) {
    this.#settings = settings
    this.#policies = policies
  }

  /**
   * The way to a domain (lower-case A-labels) that is not ours; `despiteTls` when its policies do not matter (RFC 8460 3). Throws
   * Undelivered.
   */
  async to(domain: string, requireTls: boolean, despiteTls = false): Promise<Route> {
    if (isIP(domain) > 0 || !/^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(domain))
      throw never('the address has no domain but a literal', '5.1.3')
    const { mode, relay, relays } = this.#settings
    const special = relays.find(({ domains }) => domains.includes(domain))
    if (special) return this.#relayed(special, requireTls)
    if (mode === 'none') throw later('no mail leaves this box (outbound.mode is none)')
    if (mode === 'direct') return despiteTls ? this.#heedless(domain) : this.#direct(domain, requireTls)
    if (!relay) throw later('there is no relay (outbound.relay), though outbound.mode is relay')
    return this.#relayed(relay, requireTls)
  }

  async #direct(domain: string, requireTls: boolean): Promise<Route> {
    const { port, hostname, mta_sts, dane } = this.#settings
    const found = mta_sts ? await this.#policies.of(domain) : undefined
    if (requireTls && found === 'unknown' && !dane)
      throw later(`whether ${domain} has an MTA-STS policy is not known now`, '4.7.5')
    const policy = found === 'unknown' ? undefined : found
    const enforced = policy?.mode === 'enforce' ? policy : undefined
    // RFC 8689 4.2.1: a name that anybody may have put into the DNS is not worth a certificate
    if (requireTls && !enforced && !dane) {
      throw never(`${domain} publishes no MTA-STS policy in force, so nothing vouches for its server (RFC 8689)`, '5.7.30')
    }
    const level: TlsLevel = enforced || requireTls ? 'checked' : 'may'
    return {
      target: { domain, port, ...(enforced ? { allows: (host: string) => policyNames(enforced, host) } : {}) },
      options: { name: hostname, level, implicit: false },
      outcome: 'delivered',
      appliedPolicy: {
        policy: policy ? stsPolicy(domain, policy) : noPolicy(domain),
        mode: policy?.mode ?? 'none',
        failure: mta_sts ? this.#policies.failure(domain) : undefined,
      },
    }
  }

  #heedless(domain: string): Route {
    const { port, hostname } = this.#settings
    return {
      target: { domain, port, withoutDane: true },
      options: { name: hostname, level: 'may', implicit: false },
      outcome: 'delivered',
    }
  }

  #relayed({ host, port, tls, user, password }: Relay, requireTls: boolean): Route {
    if (requireTls && tls === 'none') throw never(`the way out is ${host} without TLS`, '5.7.30')
    const login = user !== undefined && tls !== 'none' ? { user, password: password ?? '' } : undefined
    return {
      target: { domain: host, host, port },
      options: { name: this.#settings.hostname, level: tls === 'none' ? 'clear' : 'checked', implicit: tls === 'implicit', login },
      outcome: 'sent',
    }
  }
}

/** A server of the operator's that passes mail on; `none` is without TLS, and then nobody logs in. */
export interface Relay {
  host: string
  port: number
  tls: 'starttls' | 'implicit' | 'none'
  user?: string | undefined
  password?: string | undefined
}

/** How mail leaves, as the operator set it. */
export interface OutboundSettings {
  /** Our own name, as other servers know us. */
  hostname: string
  mode: 'direct' | 'relay' | 'none'
  relay?: Relay | undefined
  relays: (Relay & { domains: string[] })[]
  port: number
  allow_networks: string[]
  ipv6: boolean
  mta_sts: boolean
  dane: boolean
  dns: { servers: string[]; timeout: number }
}
