import { limitless } from './limitless.ts'
import { hash } from 'node:crypto'
import { join } from 'node:path'
import { openDatabase, openStore } from './open-store.ts'
import { deflateRawSync } from 'node:zlib'
import { emailQueued } from '../../src/outbound/model.ts'
import { type Clock, systemClock } from '../../src/core/clock.ts'
import { createLog } from '../../src/core/log.ts'
import { masterKey, Seal } from '../../src/core/seal/seal.ts'
import { EventLog } from '../../src/events/log.ts'
import type { IdentityRow } from '../../src/identities/identities.ts'
import { parse } from '../../src/message/parse.ts'
import type { RecipientRow } from '../../src/mail/deliveries.ts'
import { EmailStore } from '../../src/mail/email-store.ts'
import { OutgoingEmails } from '../../src/mail/outgoing.ts'
import { RawMessages } from '../../src/objects/raw-messages.ts'
import { uncheckedVerdict } from '../../src/mailauth/unchecked.ts'
import { ReturnPaths } from '../../src/outbound/return-path.ts'
import { sql, type Transaction } from '../../src/store/database.ts'
import { type Appliance, message } from './appliance.ts'

/** A message as it stands once couriers have taken it away: its id, octets, and the return path of each recipient in their order. */
export interface Sent {
  id: string
  raw: string
  message_id: string
  paths: string[]
}

/** Has an identity of the box send a message that is delivered (or what `status` says) to all; the box is restarted for it. */
export async function sent(
  box: Appliance,
  owner: { id: string; email: string },
  to: string[],
  { status = 'delivered', clock = systemClock }: { status?: RecipientRow['status']; clock?: Clock } = {},
): Promise<Sent> {
  const message_id = `<${to.length}.${Math.random().toString(36).slice(2)}@pillarbox.test>`
  const raw = message(
    { From: `Ada <${owner.email}>`, To: to.join(', '), Subject: 'Figures', 'Message-ID': message_id },
    'Hello\n',
  )
  const parsed = await parse(Buffer.from(raw))
  const { body_text, body_html, text } = parsed
  const bodies = Buffer.from(JSON.stringify({ body_text, body_html, text }))
  const examined = {
    parsed,
    verdict: uncheckedVerdict({ ...nobody, mail_from: owner.email, recipients: to }, 'pillarbox.test', 'own', 'none'),
    sha256: hash('sha256', raw),
    deflated: null,
    bodies: deflateRawSync(bodies),
    body_size: bodies.length,
  }
  return withStore(box, clock, async (tx, outgoing) => {
    const row = await tx.get<IdentityRow>(sql`SELECT * FROM identities WHERE id = ${owner.id}`)
    const { email, recipients } = await outgoing.insert(
      tx,
      {
        owner: row!,
        from: owner.email,
        raw: Buffer.from(raw),
        examined,
        recipients: to.map((address) => ({ field: 'to', address: { address, name: '' } })),
        labels: [],
        send_at: null,
        created_by: null,
        trace: '',
      },
      emailQueued,
    )
    for (const { seq } of recipients)
      await outgoing.updateDelivery(tx, seq, {
        status,
        attempts: 1,
        smtp_code: 250,
        response: '250 2.0.0 Ok',
        next_attempt_at: null,
      })
    const paths = new ReturnPaths(new Seal(masterKey(`${box.env['PILLARBOX_DATA_DIR']!}-keys`)).key('return paths'), clock)
    const domain = owner.email.split('@')[1]!
    return { id: email.id, raw, message_id, paths: recipients.map(({ seq }) => paths.addressFor(seq, domain, clock.now())) }
  })
}

/** Writes down how an attempt for one recipient of a message ended, as its courier does; the box is restarted for it. */
export function noted(box: Appliance, id: string, position: number, change: Partial<RecipientRow>): Promise<void> {
  return withStore(box, systemClock, async (tx, outgoing) => {
    const row = await tx.get<{ seq: number }>(
      sql`SELECT seq FROM email_recipients WHERE email_id = ${id} AND position = ${position}`,
    )
    await outgoing.updateDelivery(tx, row!.seq, change)
  })
}

/** What the box has on disk, while it runs. */
export function rows<Row = Record<string, unknown>>(box: Appliance, query: string): Row[] {
  const database = openStore(join(box.env['PILLARBOX_DATA_DIR']!, 'pillarbox.db'), { readOnly: true })
  try {
    return database.prepare(query).all() as Row[]
  } finally {
    database.close()
  }
}

const nobody = { remote_address: '127.0.0.1', helo: 'box.test', smtputf8: false, tls: null, session: 'test' }

async function withStore<Result>(
  box: Appliance,
  clock: Clock,
  work: (tx: Transaction, outgoing: OutgoingEmails) => Promise<Result>,
): Promise<Result> {
  await box.app.stop()
  const file = join(box.env['PILLARBOX_DATA_DIR']!, 'pillarbox.db')
  const database = await openDatabase(file, createLog('silent', { write: () => undefined }))
  const raw = new RawMessages({ database, clock, objects: undefined })
  const store = new EmailStore({ events: new EventLog(database, clock), plan: limitless(database, clock), raw })
  const outgoing = new OutgoingEmails({ database, clock, store, raw })
  const result = await database.transaction((tx) => work(tx, outgoing))
  await database.close()
  await box.restart()
  return result
}
