import type { Log } from '../core/log.ts'
import { Dns, type DnsSettings } from '../net/dns.ts'
import { DnsTally } from '../net/dns-tally.ts'
import { blocklisted, rspamd, type RspamdSettings } from './filters.ts'
import type { Envelope } from '../mail/model.ts'
import { Refusal } from '../smtp/replies.ts'

export interface ScreeningSettings {
  /** DNS block lists (RFC 5782). */
  dnsbl: string[]
  rspamd: RspamdSettings | undefined
  dns: DnsSettings
}

/** The filters that the operator configured, none by default. A failing filter never causes a refusal. */
export class Screening {
  readonly queries = new DnsTally()
  readonly #log: Log
  #settings: ScreeningSettings
  #dns: Dns

  constructor(settings: ScreeningSettings, log: Log) {
    this.#settings = settings
    this.#log = log
    this.#dns = new Dns(settings.dns, undefined, this.queries)
  }

  reload(settings: ScreeningSettings): void {
    this.#settings = settings
    this.#dns = new Dns(settings.dns, undefined, this.queries)
  }

  /** True if the message is to be marked as spam. Throws the Refusal of a filter that rejects it. */
  async isSpam(envelope: Envelope, raw: Buffer): Promise<boolean> {
    const { dnsbl, rspamd: server } = this.#settings
    if (dnsbl.length > 0) {
      const list = await blocklisted(envelope.remote_address, dnsbl, this.#dns.lookup)
      if (list !== null) throw new Refusal(550, '5.7.1', `Client address is listed by ${list}`)
    }
    if (!server) return false
    const { action, reply } = await rspamd(raw, envelope, server, this.#log)
    if (reply) throw new Refusal(reply.code, reply.enhanced, reply.text)
    return action === 'spam'
  }
}
