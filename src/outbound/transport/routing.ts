import { isIP } from 'node:net'
import type { NextHop } from './smtp-delivery.ts'
import { policyNames, type Policies } from './policies.ts'
import { noPolicy, stsPolicy } from './tls-result.ts'
import type { TlsLevel } from './session.ts'
import { later, never, policyUnknown } from './undelivered.ts'

/** The route of a message: the next hop, and whether acceptance there means delivery or only relaying. */
export interface Route extends NextHop {
  outcome: 'delivered' | 'sent'
}

/** Decides by recipient domain and settings the next hop of a message and the required TLS. */
export class Routing {
  readonly #settings: OutboundSettings
  readonly #policies: Policies

  constructor(settings: OutboundSettings, policies: Policies) {
    this.#settings = settings
    this.#policies = policies
  }

  /**
   * The route to an external domain (lower-case A-labels); `despiteTls` ignores its policies (RFC 8460 3). Throws Undelivered.
   */
  async to(domain: string, requireTls: boolean, despiteTls = false): Promise<Route> {
    if (isIP(domain) > 0 || !/^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(domain))
      throw never('the address has an address literal instead of a domain', '5.1.3')
    const { mode, relay, relays } = this.#settings
    const special = relays.find(({ domains }) => domains.includes(domain))
    if (special) return this.#relayed(special, requireTls)
    if (mode === 'none') throw later('outgoing mail is disabled (outbound.mode is none)')
    if (mode === 'direct') return despiteTls ? this.#directWithoutPolicies(domain) : this.#direct(domain, requireTls)
    if (!relay) throw later('outbound.mode is relay, but outbound.relay is not set')
    return this.#relayed(relay, requireTls)
  }

  async #direct(domain: string, requireTls: boolean): Promise<Route> {
    const { port, hostname, mta_sts, dane } = this.#settings
    const found = mta_sts ? await this.#policies.of(domain) : undefined
    if (requireTls && found === 'unknown' && !dane) throw policyUnknown(domain)
    const policy = found === 'unknown' ? undefined : found
    const enforced = policy?.mode === 'enforce' ? policy : undefined
    // RFC 8689 4.2.1: a certificate for an insecure MX name proves nothing
    if (requireTls && !enforced && !dane) {
      throw never(`${domain} has no enforced MTA-STS policy, so its server cannot be authenticated (RFC 8689)`, '5.7.30')
    }
    const level: TlsLevel = enforced || requireTls ? 'checked' : 'opportunistic'
    return {
      target: { domain, port, ...(enforced ? { allows: (host: string) => policyNames(enforced, host) } : {}) },
      options: { name: hostname, level, implicit: false },
      outcome: 'delivered',
      ...(found === 'unknown' ? { policyUnknown: true } : {}),
      appliedPolicy: {
        policy: policy ? stsPolicy(domain, policy) : noPolicy(domain),
        mode: policy?.mode ?? 'none',
        failure: mta_sts ? this.#policies.failure(domain) : undefined,
      },
    }
  }

  #directWithoutPolicies(domain: string): Route {
    const { port, hostname } = this.#settings
    return {
      target: { domain, port, withoutDane: true },
      options: { name: hostname, level: 'opportunistic', implicit: false },
      outcome: 'delivered',
    }
  }

  #relayed({ host, port, tls, user, password }: Relay, requireTls: boolean): Route {
    if (requireTls && tls === 'none') throw never(`the relay ${host} is used without TLS`, '5.7.30')
    const login = user !== undefined && tls !== 'none' ? { user, password: password ?? '' } : undefined
    return {
      target: { domain: host, host, port },
      options: {
        name: this.#settings.hostname,
        level: tls === 'none' ? 'clear' : 'checked',
        implicit: tls === 'implicit',
        login,
      },
      outcome: 'sent',
    }
  }
}

/** A relay of the operator; `none` is without TLS and then without login. */
export interface Relay {
  host: string
  port: number
  tls: 'starttls' | 'implicit' | 'none'
  user?: string | undefined
  password?: string | undefined
}

/** The settings of outgoing mail. */
export interface OutboundSettings {
  /** Our host name for EHLO. */
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
