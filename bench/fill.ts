import { randomBytes } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import { systemClock } from '../src/core/clock.ts'
import type { StoredBodies } from '../src/message/parsed.ts'
import type { Examiner } from '../src/mail/workers/examiner.ts'
import type { Examination } from '../src/mail/types.ts'
import { EmailStore } from '../src/mail/email-store.ts'
import { RawMessages } from '../src/objects/raw-messages.ts'
import { Inbox } from '../src/mail/inbox.ts'
import type { Envelope } from '../src/mail/model.ts'
import { SenderRulesStore } from '../src/mail/senders/rules.ts'
import { parse } from '../src/message/parse.ts'
import type { Screening } from '../src/mailauth/screening.ts'
import { uncheckedVerdict } from '../src/mailauth/unchecked.ts'
import type { Space } from '../src/store/space.ts'
import { boxDomain, seedIdentities, type Store } from './seed.ts'

/** In every message. */
export const commonWord = 'invoice'
/** In one message of a mailbox of a hundred, or so. */
export const rareWord = 'w777x'

const vocabulary = 5000
const wordsEach = 60
const together = 500

/**
 * Fills the store with messages spread evenly over the identities `1many`, `2many`, …, through the inbox itself; only the reading of the
 * octets, the same for all, is done once. Answers the identities' ids.
 */
export async function fill(store: Store, messages: number, identities: number, tell: (done: number) => void): Promise<string[]> {
  const ids = await seedIdentities(store, 'many', identities)
  let next!: Examination
  const inbox = new Inbox({
    ...store,
    clock: systemClock,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    examiner: { examine: async () => next } as unknown as Examiner,
    screening: { isSpam: async () => false } as unknown as Screening,
    space: { low: () => false } as unknown as Space,
    store: new EmailStore({ ...store, raw: new RawMessages({ ...store, clock: systemClock, objects: undefined }) }),
    quota: store.quota,
    rules: new SenderRulesStore({ ...store, clock: systemClock }),
    hosted: { receives: () => true },
    handlers: [],
    account: store.caller.account_id,
    settings: { hostname: boxDomain, domain: boxDomain, strict_temperror: false },
  })
  const like = await template()
  for (let done = 0; done < messages; done += together) {
    const batch: Promise<string>[] = []
    for (let number = done; number < Math.min(messages, done + together); number++) {
      const envelope = envelopeTo(`${(number % identities) + 1}many@${boxDomain}`, number)
      next = varied(like, number)
      batch.push(inbox.deliver(envelope, like.raw, () => {}, ''))
    }
    await Promise.all(batch)
    tell(Math.min(messages, done + together))
  }
  return ids
}

interface Template {
  raw: Buffer
  examination: Examination
}

async function template(): Promise<Template> {
  const head = `From: Billing <billing@shop.test>\r\nTo: you@${boxDomain}\r\nSubject: Your ${commonWord}\r\nMessage-ID: <0@shop.test>\r\n`
  const raw = Buffer.from(
    `${head}Date: Fri, 20 Nov 2026 10:00:00 +0000\r\n\r\n${words(0)}\r\n${'The usual small print. '.repeat(30)}\r\n`,
  )
  const parsed = await parse(raw)
  const verdict = uncheckedVerdict(envelopeTo(`you@${boxDomain}`, 0), boxDomain, 'not checked', 'none')
  return { raw, examination: { parsed, verdict, sha256: '', deflated: deflateRawSync(raw, { level: 1 }), ...packed(parsed) } }
}

function varied({ examination }: Template, number: number): Examination {
  const text = words(number)
  const parsed = {
    ...examination.parsed,
    subject: `Your ${commonWord} ${number}`,
    message_id: `<${number}@shop.test>`,
    body_text: `${text}\n${examination.parsed.text}`,
    text: `${text}\n${examination.parsed.text}`,
    snippet: text.slice(0, 200),
  }
  return { ...examination, parsed, ...packed(parsed), sha256: randomBytes(32).toString('hex') }
}

function packed({ body_text, body_html, text }: StoredBodies): Pick<Examination, 'bodies' | 'body_size'> {
  const plain = JSON.stringify({ body_text, body_html, text })
  return { bodies: deflateRawSync(plain, { level: 1 }), body_size: plain.length }
}

/** Words that look drawn at random but are the same for the same number. */
function words(number: number): string {
  const drawn = [commonWord]
  let state = (number * 2_654_435_761 + 12_345) % 2 ** 32
  for (let count = 0; count < wordsEach; count++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    drawn.push(`w${(state >>> 8) % vocabulary}x`)
  }
  return drawn.join(' ')
}

function envelopeTo(recipient: string, number: number): Envelope {
  return {
    remote_address: '127.0.0.1',
    helo: 'mail.shop.test',
    mail_from: 'billing@shop.test',
    recipients: [recipient],
    smtputf8: false,
    tls: null,
    session: `fill.${number}`,
  }
}
