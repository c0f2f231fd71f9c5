import { type Clock, iso } from '../core/clock.ts'
import { notFound } from '../core/fault.ts'
import { type PlanLimits, planned, type Planned } from '../core/planned.ts'
import type { Caller } from '../core/scopes.ts'
import { type Database, type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import type { Subscription } from './model.ts'
import { reached } from './plan-reached.ts'

/** What is too much to be counted each time: a row holds the sum. */
type Summed = 'storage_bytes' | Sent

/** What begins again at 0 with each month. */
type Sent = 'emails_sent' | 'sms_sent'

/** What there is of something, counted anew each time by whoever has it. */
type Counted = Exclude<Planned, Summed>

/** Asks for `n`, how many of something an account has now. */
type Count = (accountId: string) => Sql

interface Deps {
  database: Database
  clock: Clock
  /** What every account may have. */
  limits: PlanLimits
  /** What is said of one account, and goes before that; undefined when nothing is. */
  limitsOf: (accountId: string) => PlanLimits | undefined
}

/** How much each account may have and use, and does. A limit below what there is takes nothing away. */
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

  /** How something is counted; before the first call. */
  counts(what: Counted, count: Count): void {
    this.#counts.set(what, count)
  }

  /**
   * Throws Fault forbidden, code `plan_limit_reached`, when so many more are too many. It holds for whoever makes them in the same
   * transaction. `at` (milliseconds since the Unix epoch) is when they are used.
   */
  async require(reader: Reader, accountId: string, what: Planned, more = 1, at = this.#deps.clock.now()): Promise<void> {
    const most = this.#limit(accountId, what)
    if (most === null) return
    const used = await this.#used(reader, accountId, what, at)
    if (used + more > most) throw reached({ what, most, used, more, month: monthOf(at) })
  }

  /** Requires one more, and counts it. */
  async take(tx: Transaction, accountId: string, what: Sent, at = this.#deps.clock.now()): Promise<void> {
    await this.require(tx, accountId, what, 1, at)
    await this.add(tx, accountId, what, 1, at)
  }

  /** What was to leave at one time leaves at another. */
  async move(tx: Transaction, accountId: string, what: Sent, from: number, to: number): Promise<void> {
    if (monthOf(from) === monthOf(to)) return
    await this.add(tx, accountId, what, -1, from)
    await this.take(tx, accountId, what, to)
  }

  /** Adds to what was used, or takes from it. */
  async add(tx: Transaction, accountId: string, what: Summed, more: number, at = this.#deps.clock.now()): Promise<void> {
    await tx.run(
      sql`INSERT INTO plan_use (account_id, what, period, used) VALUES (${accountId}, ${what}, ${periodOf(what, at)}, ${Math.max(0, more)})
        ON CONFLICT (account_id, what, period) DO UPDATE SET used = max(0, used + ${more})`,
    )
  }

  /** Octets that the account may keep beyond what it does; negative when it keeps more than it may, Infinity when there is no limit. */
  async available(reader: Reader, accountId: string): Promise<number> {
    const most = this.#limit(accountId, 'storage_bytes')
    return most === null ? Infinity : most - (await this.#used(reader, accountId, 'storage_bytes', this.#deps.clock.now()))
  }

  async subscription(caller: Caller): Promise<Subscription> {
    // a key bound to one identity sees nothing of what is the account's
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

  #limit(accountId: string, what: Planned): number | null {
    const own = this.#deps.limitsOf(accountId)?.[what]
    return own === undefined ? (this.#limits[what] ?? null) : own
  }

  async #used(reader: Reader, accountId: string, what: Planned, at: number): Promise<number> {
    const row = await reader.get<{ n: number }>(
      isSummed(what)
        ? sql`SELECT used AS n FROM plan_use WHERE account_id = ${accountId} AND what = ${what} AND period = ${periodOf(what, at)}`
        : this.#count(what)(accountId),
    )
    return row?.n ?? 0
  }

  #count(what: Counted): Count {
    const count = this.#counts.get(what)
    if (!count) throw new Error(`Nobody counts ${what}.`)
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
