import type { Domain } from '../../../src/domains/model.ts'
import { DnsStub } from '../../support/dns-stub.ts'
import { MailSink } from '../../support/mail-sink.ts'
import type { Random } from '../../support/random.ts'
import { TwilioStub } from '../../support/twilio-stub.ts'
import { publish } from '../../support/verified-domain.ts'
import { type Received, WebhookSink } from '../../support/webhook-sink.ts'

/** The domains of recipients elsewhere. */
export const farDomains = ['far0.test', 'far1.test', 'far2.test']

interface Snapshot {
  messages: MailSink['messages'][number][]
  rejected: string[]
  received: Received[]
  arrivals: Map<string, number>
  events: Map<string, number>
}

/** A message or an event that came to a peer, whole, and when by performance.now(). */
export interface HandedOver {
  kind: 'message' | 'event'
  /** Its Message-ID, or the id of the event. */
  id: string
  at: number
}

/** What a box talks to, all of it on loopback: a name server, a mail server, an endpoint of webhooks and, where it is wanted, a provider of text messages. */
export class Peers {
  readonly dns: DnsStub
  readonly sink: MailSink
  readonly hooks: WebhookSink
  /** Marks of the time at which each message first arrived, by its Message-ID, and each event, by its id. */
  readonly arrivals = new Map<string, number>()
  readonly events = new Map<string, number>()
  /** Every copy, in order. */
  readonly handedOver: HandedOver[] = []
  readonly twilio: TwilioStub | undefined
  #mark: () => number = () => 0

  private constructor(dns: DnsStub, sink: MailSink, hooks: WebhookSink, twilio: TwilioStub | undefined) {
    this.dns = dns
    this.sink = sink
    this.hooks = hooks
    this.twilio = twilio
  }

  static async open(random: Random, { texts }: { texts: boolean }): Promise<Peers> {
    const [dns, sink, hooks] = await Promise.all([DnsStub.start(), MailSink.open(), WebhookSink.open()])
    const twilio = texts ? await TwilioStub.open() : undefined
    for (const name of farDomains) dns.mx(name, 'mx.far.test')
    dns.a('mx.far.test', '127.0.0.1')
    const peers = new Peers(dns, sink, hooks, twilio)
    sink.script = (line, guest) => {
      if (line !== '<end>' || random(3) > 0) return undefined
      // a while between the last byte and the 250, in which a box can be killed
      setTimeout(() => guest.write('250 2.0.0 Ok\r\n'), random(60))
      return null
    }
    sink.arrived = (raw) => {
      const id = messageId(raw)
      peers.handedOver.push({ kind: 'message', id, at: performance.now() })
      if (!peers.arrivals.has(id)) peers.arrivals.set(id, peers.#mark())
    }
    hooks.behaviour = (response, { body }) => {
      peers.handedOver.push({ kind: 'event', id: body.id, at: performance.now() })
      if (!peers.events.has(body.id)) peers.events.set(body.id, peers.#mark())
      response.writeHead(200).end()
    }
    return peers
  }

  publish(domain: Domain): void {
    publish(this.dns, domain)
  }

  /** Forgets what came, and tells times by this mark from here on. */
  begin(mark: () => number): void {
    this.#mark = mark
    this.sink.messages.length = 0
    this.sink.rejected.length = 0
    this.sink.commands.length = 0
    this.hooks.received.length = 0
    this.dns.queries.length = 0
    this.arrivals.clear()
    this.events.clear()
    this.handedOver.length = 0
    if (this.twilio !== undefined) this.twilio.messages.length = 0
  }

  /** What has come so far, for `restore`. */
  snapshot(): Snapshot {
    return {
      messages: [...this.sink.messages],
      rejected: [...this.sink.rejected],
      received: [...this.hooks.received],
      arrivals: new Map(this.arrivals),
      events: new Map(this.events),
    }
  }

  /** Has only what had come when the snapshot was taken; what comes from here on has no mark. */
  restore({ messages, rejected, received, arrivals, events }: Snapshot): void {
    this.begin(() => Infinity)
    this.sink.messages.push(...messages)
    this.sink.rejected.push(...rejected)
    this.hooks.received.push(...received)
    for (const [id, mark] of arrivals) this.arrivals.set(id, mark)
    for (const [id, mark] of events) this.events.set(id, mark)
  }

  /** The bytes of every copy of each message that arrived, whether or not the answer reached the box, by Message-ID. */
  copies(): Map<string, string[]> {
    const all = [...this.sink.messages.map(({ raw }) => raw), ...this.sink.rejected]
    return Map.groupBy(all, messageId)
  }

  /** What the endpoint was sent for each event, by the event's id. */
  heard(): Map<string, Received[]> {
    return Map.groupBy(this.hooks.received, ({ body }) => body.id)
  }

  async close(): Promise<void> {
    this.twilio?.stop()
    await Promise.all([this.dns.close(), this.sink.stop(), this.hooks.stop()])
  }
}

function messageId(raw: string): string {
  return /^Message-ID: (.*?)\r?$/im.exec(raw)?.[1] ?? ''
}
