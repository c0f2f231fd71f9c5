import { type Clock, day, hour, iso } from '../../core/clock.ts'
import { Fault, invalid } from '../../core/fault.ts'
import { type Reader, sql, type Transaction } from '../../store/database.ts'
import { sameMailbox } from './recipients.ts'

export interface LimitSettings {
  /** Recipients an hour; 0 is no limit. */
  rate_per_identity: number
  rate_per_domain: number
  /** Automatic messages in one thread to one address within 24 h. */
  automatic_replies: number
  warm_up?: { first_day: number; growth: number; days: number } | undefined
}

/** A message, as the rates count it. */
export interface SendCount {
  identity_id: string
  domain: string
  recipients: number
  /** Those of them that are not on this box: only they count for the domain. */
  outside: number
  /** Milliseconds since the Unix epoch at which it leaves. */
  at: number
}


/** How much may be sent: by the hour for each identity and domain, by the day for a new domain, and how often a program may answer. */
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

  /** Throws Fault rate_limited with the time to wait when the message is one too many. */
  async require(reader: Reader, load: SendCount): Promise<void> {
    const { rate_per_identity, rate_per_domain } = this.#settings
    await this.#requireHour(reader, load, {
      subject: load.identity_id,
      more: load.recipients,
      most: rate_per_identity,
      setting: 'outbound.rate_per_identity',
      who: 'One identity',
    })
    if (load.outside === 0) return
    const who = `${load.domain}, all identities together,`
    const domain = { subject: load.domain, more: load.outside, who }
    await this.#requireHour(reader, load, { ...domain, most: rate_per_domain, setting: 'outbound.rate_per_domain' })
    await this.#requireWarm(reader, load)
  }

  /** Checks, and counts, in the transaction that keeps the message. */
  async count(tx: Transaction, load: SendCount): Promise<void> {
    await this.require(tx, load)
    await add(tx, load.identity_id, load.at, load.recipients)
    if (load.outside > 0) await add(tx, load.domain, load.at, load.outside)
  }

  /** A message that does not leave, or leaves at another time, is given back. */
  async giveBack(tx: Transaction, load: SendCount): Promise<void> {
    await add(tx, load.identity_id, load.at, -load.recipients)
    if (load.outside > 0) await add(tx, load.domain, load.at, -load.outside)
  }

  /**
   * Throws Fault rate_limited, `automatic_replies`, when programs have answered one of these addresses often enough in the conversation: they
   * may be answering each other. The thread is that of the messages referred to.
   */
  async requireAutomatic(reader: Reader, identityId: string, referred: string[], addresses: string[]): Promise<void> {
    const thread =
      referred.length > 0 &&
      (await reader.get<{ thread_id: string }>(
        // of each Message-ID the last alone: strangers can send any number under one
        sql`SELECT thread_id FROM (
            SELECT (SELECT seq FROM emails WHERE identity_id = ${identityId} AND message_id = ids.value ORDER BY seq DESC LIMIT 1) AS seq
            FROM json_each(${JSON.stringify(referred.slice(-50))}) AS ids
          ) AS named JOIN emails ON emails.seq = named.seq ORDER BY emails.seq DESC LIMIT 1`,
      ))
    if (!thread) return
    const since = iso(this.#clock.now() - day)
    const rows = await reader.all<{ address: string; n: number; first: string }>(
      sql`SELECT address, count(*) AS n, min(received_at) AS first FROM emails
        JOIN email_recipients ON email_recipients.email_id = emails.id
        WHERE emails.thread_id = ${thread.thread_id} AND direction = 'outbound' AND automated = 1 AND received_at > ${since}
        GROUP BY address`,
    )
    const most = this.#settings.automatic_replies
    const had = addresses.map((address) => ({ address, times: rows.filter((row) => sameMailbox(row.address, address)) }))
    const full = had.find(({ times }) => times.reduce((sum, { n }) => sum + n, 0) >= most)
    if (!full) return
    const who = full.address
    const first = full.times.map((row) => row.first).toSorted()[0]
    throw new Fault(
      'rate_limited',
      `${who} has had ${most} automatic replies in this conversation within a day; two programs may be answering each other.`,
      { code: 'automatic_replies', retryAfter: seconds(first === undefined ? day : Date.parse(first) + day - this.#clock.now()) },
    )
  }

  /** Forgets what no limit asks for any more. */
  async clear(tx: Transaction): Promise<void> {
    const now = this.#clock.now()
    await tx.run(
      sql`DELETE FROM sent_counts WHERE subject >= 'ident_' AND subject < 'ident~' AND hour < ${hourOf(now - 2 * day)}`,
    )
    // a domain that was silent for so long is new to its receivers
    await tx.run(sql`DELETE FROM sent_counts WHERE hour < ${hourOf(now - 400 * day)}`)
  }

  async #requireHour(
    reader: Reader,
    { at }: SendCount,
    { subject, more, most, setting, who }: { subject: string; more: number; most: number; setting: string; who: string },
  ): Promise<void> {
    if (most === 0) return
    if (more > most) throw invalid('to', `${who} may send to ${most} recipients an hour (${setting}), and here are ${more}.`)
    const sent = await sentIn(reader, subject, hourOf(at), hourOf(at + hour))
    if (sent + more <= most) return
    throw new Fault('rate_limited', `${who} may send to ${most} recipients an hour (${setting}).`, {
      code: 'send_rate',
      retryAfter: seconds(hour - (at % hour)),
    })
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
    const most = Math.floor(ramp.first_day * ramp.growth ** age)
    const sent = await sentIn(reader, domain, hourOf(today * day), hourOf((today + 1) * day))
    if (sent + outside <= most) return
    throw new Fault('rate_limited', `${domain} is new: it may send to ${most} recipients today (outbound.warm_up).`, {
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
      ON CONFLICT (subject, hour) DO UPDATE SET recipients = max(0, recipients + ${recipients})`,
  )
}

/** `2026-11-20T10` */
function hourOf(time: number): string {
  return iso(time).slice(0, 13)
}

function seconds(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / 1000))
}
