import { type Clock, day, hour, iso } from '../../core/clock.ts'
import { Fault, invalid } from '../../core/fault.ts'
import { type Reader, sql, type Transaction } from '../../store/database.ts'
import { mailboxKey } from './recipients.ts'

interface LimitSettings {
  /** Recipients an hour; 0 is no limit. */
  rate_per_identity: number
  rate_per_domain: number
  /** Automatic messages in one thread to one address within 24 h. */
  automatic_replies: number
  warm_up?: { first_day: number; growth: number; days: number } | undefined
}

/** A message, as the rate limits count it. */
export interface SendCount {
  identity_id: string
  domain: string
  recipients: number
  /** Recipients not on this box: only they count for the domain. */
  outside: number
  /** The time it is sent, in milliseconds since the Unix epoch. */
  at: number
}

/** Rate limits of sending: hourly for each identity and domain, daily for a new domain (warm-up), and for automatic replies. */
export class SendLimits {
  readonly #clock: Clock
  #settings: LimitSettings

  constructor(clock: Clock, settings: LimitSettings) {
    this.#clock = clock
    this.#settings = settings
  }

  reload(settings: LimitSettings): void {
    this.#settings = settings
  }

  /** Throws Fault rate_limited with the time to wait when the message exceeds a limit. */
  async require(reader: Reader, load: SendCount): Promise<void> {
    const { rate_per_identity, rate_per_domain } = this.#settings
    await this.#requireHour(reader, load, {
      subject: load.identity_id,
      added: load.recipients,
      max: rate_per_identity,
      setting: 'outbound.rate_per_identity',
      subjectName: 'One identity',
    })
    if (load.outside === 0) return
    const subjectName = `${load.domain}, all identities together,`
    const domain = { subject: load.domain, added: load.outside, subjectName }
    await this.#requireHour(reader, load, { ...domain, max: rate_per_domain, setting: 'outbound.rate_per_domain' })
    await this.#requireWarm(reader, load)
  }

  /** Checks and counts a message in the transaction that stores it. */
  async count(tx: Transaction, load: SendCount): Promise<void> {
    await this.require(tx, load)
    await add(tx, load.identity_id, load.at, load.recipients)
    if (load.outside > 0) await add(tx, load.domain, load.at, load.outside)
  }

  /** Takes back the count of a message that is cancelled or rescheduled. */
  async giveBack(tx: Transaction, load: SendCount): Promise<void> {
    await add(tx, load.identity_id, load.at, -load.recipients)
    if (load.outside > 0) await add(tx, load.domain, load.at, -load.outside)
  }

  /**
   * Throws Fault rate_limited, `automatic_replies`, when one of these addresses has had the maximum of automatic replies in the conversation:
   * two programs may be answering each other. The thread is that of the messages referred to.
   */
  async requireAutomatic(reader: Reader, identityId: string, referred: string[], addresses: string[]): Promise<void> {
    const thread =
      referred.length > 0 &&
      (await reader.get<{ thread_id: string }>(
        // only the last message of each Message-ID: others can send any number with the same
        sql`SELECT thread_id FROM (
            SELECT (SELECT seq FROM emails WHERE identity_id = ${identityId} AND message_id = ids.value ORDER BY seq DESC LIMIT 1) AS seq
            FROM json_each(${JSON.stringify(referred.slice(-50))}) AS ids
          ) AS named JOIN emails ON emails.seq = named.seq ORDER BY emails.seq DESC LIMIT 1`,
      ))
    if (!thread) return
    const since = iso(this.#clock.now() - day)
    // the conditions of the index emails_automatic
    const rows = await reader.all<{ address: string; n: number; first: string }>(
      sql`SELECT address, count(*) AS n, min(received_at) AS first FROM emails
        JOIN email_recipients ON email_recipients.email_id = emails.id
        WHERE emails.thread_id = ${thread.thread_id} AND direction = 'outbound' AND automated = 1 AND received_at > ${since}
        GROUP BY address`,
    )
    const max = this.#settings.automatic_replies
    const had = Map.groupBy(rows, ({ address }) => mailboxKey(address))
    const timesOf = (address: string) => had.get(mailboxKey(address)) ?? []
    const full = addresses.find((address) => timesOf(address).reduce((sum, { n }) => sum + n, 0) >= max)
    if (full === undefined) return
    const first = timesOf(full)
      .map((row) => row.first)
      .toSorted()[0]
    throw new Fault(
      'rate_limited',
      `${full} has had ${max} automatic replies in this conversation within a day; this may be a mail loop between two programs.`,
      { code: 'automatic_replies', retryAfter: seconds(first === undefined ? day : Date.parse(first) + day - this.#clock.now()) },
    )
  }

  /** Removes counts that no limit needs any more. */
  async clear(tx: Transaction): Promise<void> {
    const now = this.#clock.now()
    await tx.run(
      sql`DELETE FROM sent_counts WHERE subject >= 'ident_' AND subject < 'ident~' AND hour < ${hourOf(now - 2 * day)}`,
    )
    // a domain that sent nothing for so long is new to its receivers
    await tx.run(sql`DELETE FROM sent_counts WHERE hour < ${hourOf(now - 400 * day)}`)
  }

  async #requireHour(
    reader: Reader,
    { at }: SendCount,
    {
      subject,
      added,
      max,
      setting,
      subjectName,
    }: { subject: string; added: number; max: number; setting: string; subjectName: string },
  ): Promise<void> {
    if (max === 0) return
    if (added > max)
      throw invalid('to', `${subjectName} may send to ${max} recipients an hour (${setting}), and this message has ${added}.`)
    const sent = await sentIn(reader, subject, hourOf(at), hourOf(at + hour))
    if (sent + added <= max) return
    const sentence = `${subjectName} may send to ${max} recipients an hour (${setting}).${this.#another(at)}`
    throw new Fault('rate_limited', sentence, {
      code: 'send_rate',
      retryAfter: seconds(hour - (at % hour)),
    })
  }

  /** What a caller can do besides waiting, for a message that is scheduled. */
  #another(at: number): string {
    return at > this.#clock.now() ? ' Choose another send_at.' : ''
  }

  async #requireWarm(reader: Reader, { domain, outside, at }: SendCount): Promise<void> {
    const ramp = this.#settings.warm_up
    if (!ramp) return
    const row = await reader.get<{ first: string | null }>(
      sql`SELECT min(hour) AS first FROM sent_counts WHERE subject = ${domain} AND recipients > 0`,
    )
    const today = Math.floor(at / day)
    const age = row?.first ? Math.max(0, today - Math.floor(Date.parse(`${row.first}:00Z`) / day)) : 0
    if (age >= ramp.days) return
    const max = Math.floor(ramp.first_day * ramp.growth ** age)
    const sent = await sentIn(reader, domain, hourOf(today * day), hourOf((today + 1) * day))
    if (sent + outside <= max) return
    const which = at > this.#clock.now() ? 'that day' : 'today'
    const sentence = `${domain} is new: it may send to ${max} recipients ${which} (outbound.warm_up).${this.#another(at)}`
    throw new Fault('rate_limited', sentence, {
      code: 'warm_up',
      retryAfter: seconds(day - (at % day)),
    })
  }
}

async function sentIn(reader: Reader, subject: string, from: string, before: string): Promise<number> {
  const row = await reader.get<{ n: number | null }>(
    sql`SELECT sum(recipients) AS n FROM sent_counts WHERE subject = ${subject} AND hour >= ${from} AND hour < ${before}`,
  )
  return row?.n ?? 0
}

async function add(tx: Transaction, subject: string, at: number, recipients: number): Promise<void> {
  await tx.run(
    sql`INSERT INTO sent_counts (subject, hour, recipients) VALUES (${subject}, ${hourOf(at)}, ${Math.max(0, recipients)})
      ON CONFLICT (subject, hour) DO UPDATE
        SET recipients = CASE WHEN sent_counts.recipients + ${recipients} > 0 THEN sent_counts.recipients + ${recipients} ELSE 0 END`,
  )
}

/** `2026-11-20T10` */
function hourOf(time: number): string {
  return iso(time).slice(0, 13)
}

function seconds(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / 1000))
}
