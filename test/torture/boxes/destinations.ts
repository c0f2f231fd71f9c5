import type { Domain } from '../../../src/domains/model.ts'
import { DnsStub } from '../../support/dns-stub.ts'
import { MailSink } from '../../support/mail-sink.ts'
import type { Random } from '../../support/random.ts'
import { publish } from '../../support/verified-domain.ts'
import { type Received, WebhookSink } from '../../support/webhook-sink.ts'
import { farDomains } from '../box/peers.ts'

/** A message that arrived whole, and the box that sent it. */
export interface Copy {
  id: string
  box: number
  /** Of performance.now(). */
  at: number
  raw: string
}

/** What boxes talk to, all of it on loopback: a name server, a mail server for each box, so that it is known which one sends, and an endpoint of webhooks. */
export class Destinations {
  readonly dns: DnsStub
  readonly sinks: readonly MailSink[]
  readonly hooks: WebhookSink
  readonly sent: Copy[] = []
  /** When the endpoint was told of each object first, by its id. */
  readonly told = new Map<string, number>()
  /** When each message arrived first, by its Message-ID. */
  readonly arrivals = new Map<string, number>()
  /** The box whose mail server lets it wait. */
  slow: number | undefined

  private constructor(dns: DnsStub, sinks: readonly MailSink[], hooks: WebhookSink) {
    this.dns = dns
    this.sinks = sinks
    this.hooks = hooks
  }

  static async open(boxes: number, random: Random): Promise<Destinations> {
    const sinks = await Promise.all(Array.from({ length: boxes }, () => MailSink.open()))
    const [dns, hooks] = await Promise.all([DnsStub.start(), WebhookSink.open()])
    for (const name of farDomains) dns.mx(name, 'mx.far.test')
    dns.a('mx.far.test', '127.0.0.1')
    const all = new Destinations(dns, sinks, hooks)
    for (const [box, sink] of sinks.entries()) all.#listen(sink, box, random)
    hooks.behaviour = (response, { body }) => {
      const id = String(body.data['id'])
      if (!all.told.has(id)) all.told.set(id, performance.now())
      response.writeHead(200).end()
    }
    return all
  }

  publish(domain: Domain): void {
    publish(this.dns, domain)
  }

  /** The bytes of every copy of each message, by Message-ID. */
  copies(): Map<string, string[]> {
    return new Map([...Map.groupBy(this.sent, ({ id }) => id)].map(([id, copies]) => [id, copies.map(({ raw }) => raw)]))
  }

  /** What the endpoint was sent for each event, by the event's id. */
  heard(): Map<string, Received[]> {
    return Map.groupBy(this.hooks.received, ({ body }) => body.id)
  }

  async close(): Promise<void> {
    await Promise.all([this.dns.close(), this.hooks.stop(), ...this.sinks.map((sink) => sink.stop())])
  }

  #listen(sink: MailSink, box: number, random: Random): void {
    sink.arrived = (raw) => {
      const [id, at] = [/^Message-ID: (.*?)\r?$/im.exec(raw)?.[1] ?? '', performance.now()]
      this.sent.push({ id, box, at, raw })
      if (!this.arrivals.has(id)) this.arrivals.set(id, at)
    }
    sink.script = (line, guest) => {
      if (line.startsWith('MAIL') && this.slow === box && random(2) === 0) {
        // an attempt that is under way when its box loses the database, and may send only as long as nobody else does
        setTimeout(() => guest.write('250 2.1.0 Ok\r\n'), random(40_000)).unref()
        return null
      }
      if (line !== '<end>' || random(3) > 0) return undefined
      // a while between the last byte and the 250, in which a box can be killed
      setTimeout(() => guest.write('250 2.0.0 Ok\r\n'), random(60))
      return null
    }
  }
}
