import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { Fault, notFound } from '../core/fault.ts'
import { type PlanLimits, planned, type Planned } from '../core/planned.ts'
import type { Caller } from '../core/scopes.ts'
import { type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import type { Subscription } from './model.ts'

/** Amounts that are too expensive to count each time: a row holds the sum. */
type Summed = 'storage_bytes' | Sent

/** Amounts that reset each month. */
type Sent = 'emails_sent' | 'sms_sent'

/** Amounts that are counted anew each time by the module that owns them. */
type Counted = Exclude<Planned, Summed>

/** Selects `n`, the current count of an account. */
type Count = (accountId: string) => Sql

interface Deps extends Pick<Basis, 'database' | 'clock'> {
  /** The limits of every account. */
  limits: PlanLimits
  /** The limits of one account, which take precedence; undefined when there are none. */
  limitsOf: (accountId: string) => PlanLimits | undefined
}

/** The most rows of one sum: of two boxes that choose the same, transactions fail and run again. */
const shards = 64

/** Limits and usage of each account. Lowering a limit below the usage deletes nothing. */
export class Plan {
  readonly #deps: Deps
  readonly #counts = new Map<Planned, Count>()
  #limits: PlanLimits

  constructor(deps: Deps) {
    this.#deps = deps
    this.#limits = deps.limits
  }

  reload(limits: PlanLimits): void {
    this.#limits = limits
  }

  /** Registers how something is counted; before the first call. */
  counts(what: Counted, count: Count): void {
    this.#counts.set(what, count)
  }

  /**
   * Throws Fault forbidden, code `plan_limit_reached`, when this many more exceed the limit. Valid within the transaction that creates
   * them. `at` (milliseconds since the Unix epoch) is when they are used.
   */
  async require(reader: Reader, accountId: string, what: Planned, more = 1, at = this.#deps.clock.now()): Promise<void> {
    const limit = this.#limit(accountId, what)
    if (limit === null) return
    const used = await this.#used(reader, accountId, what, at)
    if (used + more > limit) throw reached({ what, most: limit, used, more, month: monthOf(at) })
  }

  /** Requires one more, and counts it. */
  async take(tx: Transaction, accountId: string, what: Sent, at = this.#deps.clock.now()): Promise<void> {
    await this.require(tx, accountId, what, 1, at)
    await this.add(tx, accountId, what, 1, at)
  }

  /** Moves what was scheduled for one time to another. */
  async move(tx: Transaction, accountId: string, what: Sent, from: number, to: number): Promise<void> {
    if (monthOf(from) === monthOf(to)) return
    await this.add(tx, accountId, what, -1, from)
    await this.take(tx, accountId, what, to)
  }

  /** Adds to the usage; negative amounts reduce it. */
  async add(tx: Transaction, accountId: string, what: Summed, more: number, at = this.#deps.clock.now()): Promise<void> {
    await tx.run(
      sql`INSERT INTO plan_use (account_id, what, period, used, shard) VALUES (${accountId}, ${what}, ${periodOf(what, at)}, ${more}, ${this.#shard})
        ON CONFLICT (account_id, what, period, shard) DO UPDATE SET used = plan_use.used + excluded.used`,
    )
  }

  /** The bytes left of the account's quota; negative above the quota, Infinity without one. */
  async available(reader: Reader, accountId: string): Promise<number> {
    const limit = this.#limit(accountId, 'storage_bytes')
    return limit === null ? Infinity : limit - (await this.#used(reader, accountId, 'storage_bytes', this.#deps.clock.now()))
  }

  async subscription(caller: Caller): Promise<Subscription> {
    // a key bound to one identity cannot see account data
    if (caller.identity_id !== null) throw notFound('subscription')
    const { database, clock } = this.#deps
    const now = clock.now()
    const { account_id } = caller
    const usage = await Promise.all(
      planned.map(async (what) => [what, await this.#used(database, account_id, what, now)] as const),
    )
    const date = new Date(now)
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
    return {
      plan: 'self_hosted',
      status: 'active',
      limits: ofEach(planned.map((what) => [what, this.#limit(account_id, what)])),
      usage: ofEach(usage),
      current_period_start: iso(Date.UTC(year, month)),
      current_period_end: iso(Date.UTC(year, month + 1)),
    }
  }

  /** The row to which this box adds: if several changed the same one all the time, their transactions would fail and run again, one at a time. */
  get #shard(): number {
    const { several, run } = this.#deps.database
    // the id is random
    return several ? Number.parseInt(run.id.slice(0, 4), 16) % shards : 0
  }

  #limit(accountId: string, what: Planned): number | null {
    const own = this.#deps.limitsOf(accountId)?.[what]
    return own === undefined ? (this.#limits[what] ?? null) : own
  }

  async #used(reader: Reader, accountId: string, what: Planned, at: number): Promise<number> {
    const row = await reader.get<{ n: number | null }>(
      isSummed(what)
        ? sql`SELECT sum(used) AS n FROM plan_use WHERE account_id = ${accountId} AND what = ${what} AND period = ${periodOf(what, at)}`
        : this.#count(what)(accountId),
    )
    // should more have been taken off than was added
    return Math.max(0, row?.n ?? 0)
  }

  #count(what: Counted): Count {
    const count = this.#counts.get(what)
    if (!count) throw new Error(`No counter is registered for ${what}.`)
    return count
  }
}

function isSummed(what: Planned): what is Summed {
  return what === 'storage_bytes' || what === 'emails_sent' || what === 'sms_sent'
}

function periodOf(what: Summed, at: number): string {
  return what === 'storage_bytes' ? '' : monthOf(at)
}

/** `2026-11` */
function monthOf(time: number): string {
  return iso(time).slice(0, 7)
}

function ofEach<Value>(pairs: (readonly [Planned, Value])[]): Record<Planned, Value> {
  return Object.fromEntries(pairs) as Record<Planned, Value>
}

interface Reached {
  what: Planned
  most: number
  used: number
  more: number
  /** The month of the count: `2026-11`. */
  month: string
}

/** Singular and plural of each limit, and how to get below it. */
const words: Record<Exclude<Planned, 'storage_bytes'>, [one: string, many: string, less: string]> = {
  identities: ['identity', 'identities', 'delete one'],
  domains: ['domain', 'domains', 'delete one'],
  aliases: ['alias', 'aliases', 'delete one'],
  webhooks: ['webhook', 'webhooks', 'delete one'],
  api_keys: ['API key', 'API keys', 'revoke one'],
  phone_numbers: ['phone number', 'phone numbers', 'release one'],
  cards: ['card', 'cards', 'cancel one'],
  totp_entries: ['one-time password', 'one-time passwords', 'delete one'],
  agents: ['agent', 'agents', 'delete one'],
  emails_sent: ['e-mail', 'e-mails', 'wait for the next'],
  sms_sent: ['text message', 'text messages', 'wait for the next'],
}

/** Fault forbidden, code `plan_limit_reached`: names the limit, the usage and a remedy. */
function reached(met: Reached): Fault {
  return new Fault('forbidden', `${sentence(met)}, or ask the operator to raise limits.${met.what}.`, {
    code: 'plan_limit_reached',
  })
}

function sentence({ what, most, used, more, month }: Reached): string {
  if (what === 'storage_bytes') {
    return `This account may store ${most} bytes of messages and long texts, stores ${used}, and this needs ${more} more: delete some messages`
  }
  const [one, many, less] = words[what]
  const allowed = `${most} ${most === 1 ? one : many}`
  if (what === 'emails_sent' || what === 'sms_sent') {
    return `This account may send ${allowed} in a month, and ${used} ${used === 1 ? 'is' : 'are'} counted for ${month} (UTC): ${less}`
  }
  return `This account may have ${allowed}, and has ${used}: ${less}`
}
