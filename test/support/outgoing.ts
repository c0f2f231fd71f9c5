import { domainToASCII } from 'node:url'
import { expect, vi } from 'vitest'
import { emailQueued } from '../../src/outbound/model.ts'
import { Queue } from '../../src/queue/queue.ts'
import { Domains } from '../../src/domains/domains.ts'
import type { IdentityRow } from '../../src/identities/identities.ts'
import type { Email } from '../../src/mail/model.ts'
import { MailModule } from '../../src/mail/module.ts'
import type { TransportTest } from '../../src/outbound/transport/outbound-transport.ts'
import type { EmailLoad } from '../../src/outbound/model.ts'
import { type Database, sql } from '../../src/store/database.ts'
import { BoxDatabase } from './box-database.ts'
import { appliance, type Appliance, message } from './appliance.ts'
import type { Clock } from '../../src/core/clock.ts'

/** A box whose domain is verified, and what is inside of it. */
export interface SendingBox {
  box: Appliance
  /** The id of ada@pillarbox.test, who writes. */
  ada: string
  inside: () => { database: Database; queue: Queue; mail: MailModule }
  /** Puts a message into the queue, one delivery for each recipient; answers its id. */
  send: (to: string | string[], mail?: Sent) => Promise<string>
  email: (id: string) => Promise<Email>
  /** Waits until the delivery to the message's only recipient, or the one that is named, stands so; answers it. */
  until: (id: string, status: string | RegExp, recipient?: string) => Promise<Email['deliveries'][number]>
  /** The types of the events of a message, in order. */
  events: (id: string) => Promise<string[]>
}

interface Sent {
  fields?: Record<string, string>
  text?: string
  require_tls?: true
  from?: string
}

/** Starts a box that delivers to loopback at this port. */
export async function sendingBox(
  port: number,
  env: Record<string, string> = {},
  { clock, testing }: { clock?: Clock; testing?: TransportTest } = {},
): Promise<SendingBox> {
  // the parts are seen at work: nothing is changed in them
  const seen = {
    databases: vi.spyOn(BoxDatabase, 'open'),
    queues: vi.spyOn(Queue.prototype, 'start'),
    mails: vi.spyOn(MailModule.prototype, 'start'),
    domains: vi.spyOn(Domains.prototype, 'start'),
  }
  const settings = { PILLARBOX_OUTBOUND__PORT: String(port), PILLARBOX_OUTBOUND__ALLOW_NETWORKS: '127.0.0.0/8', ...env }
  const box = await appliance(settings, clock, testing)
  const inside = () => ({
    database: seen.databases.mock.settledResults.at(-1)!.value as Database,
    queue: seen.queues.mock.contexts.at(-1) as Queue,
    mail: seen.mails.mock.contexts.at(-1) as MailModule,
  })
  await inside().database.transaction((tx) => tx.run(sql`UPDATE domains SET status = 'verified'`))
  await (seen.domains.mock.contexts.at(-1) as Domains).start()
  const ada = (await box.call('POST', '/v1/identities', { name: 'Ada' })).body['id'] as string
  const email = async (id: string): Promise<Email> => (await box.call<Email>('GET', `/v1/identities/${ada}/emails/${id}`)).body
  return {
    box,
    ada,
    inside,
    email,
    send: async (to, mail = {}) => put(inside(), ada, [to].flat(), mail),
    until: (id, status, recipient) =>
      vi.waitFor(
        async () => {
          const { deliveries } = await email(id)
          const delivery = deliveries.find((one) => recipient === undefined || one.recipient === recipient)!
          expect(delivery.status).toMatch(status)
          return delivery
        },
        { timeout: 100_000, interval: 20 },
      ),
    events: async (id) => {
      const { body } = await box.call('GET', `/v1/identities/${ada}/events?limit=200`)
      const ours = body.data.filter((event) => event['data'].id === id && event['data'].delivery !== undefined)
      return ours.map((event) => event['type'] as string).toReversed()
    },
  }
}

async function put(
  { database, queue, mail }: ReturnType<SendingBox['inside']>,
  ada: string,
  to: string[],
  sent: Sent,
): Promise<string> {
  const owner = (await database.get<IdentityRow>(sql`SELECT * FROM identities WHERE id = ${ada}`))!
  const fields = {
    From: `Ada <${sent.from ?? owner.email}>`,
    To: to.join(', '),
    Subject: 'Hello',
    'Message-ID': `<${crypto.randomUUID()}@pillarbox.test>`,
  }
  const raw = Buffer.from(message({ ...fields, ...sent.fields }, sent.text ?? 'Hello\n'))
  const envelope = {
    remote_address: '127.0.0.1',
    helo: 'test',
    mail_from: owner.email,
    recipients: to,
    smtputf8: true,
    tls: null,
    session: 'test',
    own: true as const,
  }
  const examined = await mail.examiner.examine(raw, envelope)
  const recipients = to.map((address) => ({ field: 'to' as const, address: { address, name: '' } }))
  return database.transaction(async (tx) => {
    const kept = await mail.outgoing.insert(
      tx,
      {
        owner,
        from: owner.email,
        raw,
        examined,
        recipients,
        labels: [],
        send_at: null,
        created_by: null,
        trace: 'X-Signed: yes\r\n',
      },
      emailQueued,
    )
    for (const { seq, address } of kept.recipients) {
      const load: EmailLoad = { recipient_seq: seq, ...(sent.require_tls ? { require_tls: true } : {}) }
      const lane = domainToASCII(address.slice(address.lastIndexOf('@') + 1))
      const delivery_id = await queue.enqueue(tx, { kind: 'email', lane, load })
      await mail.outgoing.updateDelivery(tx, seq, { delivery_id })
    }
    return kept.email.id
  })
}
