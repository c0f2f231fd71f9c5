import { actors, type AuditEntry } from '../core/audit.ts'
import { type Clock, minute, second } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { lruMap } from '../core/memory.ts'
import type { Database } from '../store/database.ts'
import type { AuditLog } from './log.ts'

interface Deps {
  database: Database
  clock: Clock
  log: Log
  rows: AuditLog
}

/** Milliseconds from an entry to its row; after a failure, from one attempt to the next. */
const delay = { usual: second, failed: 10 * second }

/** The time within which a repeated action has one row more at most, with the number of repetitions. */
const window = minute

/** The rows that one actor, and one account, can have at once, and each minute. What is above is counted. */
const bounds = { actor: { burst: 1000, perMinute: 30 }, account: { burst: 5000, perMinute: 120 } }

/** Rows that wait while the disk cannot be written; entries that are remembered to find repetitions; counters of what was above the bounds, of all accounts and of one. */
const most = { waiting: 10_000, repeated: 10_000, counters: 5000, ofAccount: 20 }

/** Rows of one transaction, so that it does not block the event loop. */
const batchSize = 100

interface Row {
  entry: AuditEntry
  count: number
}

interface Repeated extends Row {
  /** Milliseconds since the Unix epoch. */
  until: number
}

/** Collects reads and refusals, and writes many in one transaction, so that a read costs no write of its own. */
export class Collector {
  readonly #deps: Deps
  readonly #allowances: { actor: Allowances; account: Allowances }
  #rows: Row[] = []
  /** By what makes two entries the same; the oldest first, which end first. */
  readonly #repeated = new Map<string, Repeated>()
  readonly #above = new Map<string, Row>()
  readonly #countersOf = new Map<string, number>()
  #aboveUntil = 0
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #stopped = false

  constructor(deps: Deps) {
    this.#deps = deps
    this.#allowances = { actor: new Allowances(deps.clock, bounds.actor), account: new Allowances(deps.clock, bounds.account) }
  }

  /** The entries that wait for their row. */
  get size(): number {
    return this.#rows.length + this.#repeated.size + this.#above.size
  }

  add(entry: AuditEntry): void {
    const now = this.#deps.clock.now()
    const key = JSON.stringify(entry)
    const before = this.#repeated.get(key)
    if (before && before.until > now) before.count += 1
    else if (this.#rows.length < most.waiting && this.#allowed(entry)) {
      if (before) this.#end(key, before)
      this.#rows.push({ entry, count: 1 })
      this.#repeated.set(key, { entry, count: 0, until: now + window })
      if (this.#repeated.size > most.repeated) this.#endFirst()
    } else this.#count(entry, now)
    this.#schedule(delay.usual)
  }

  /** Writes all that is due; resolves when it is on disk, or could not be written now. */
  async flush(): Promise<void> {
    this.#takeDue(this.#deps.clock.now())
    await this.#written()
    if (this.size > 0) this.#schedule(this.#rows.length > 0 ? delay.failed : delay.usual)
  }

  /** Undefined while nothing is being written. */
  get work(): Promise<void> | undefined {
    return this.#writing
  }

  /** Writes all there is, and takes no more. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#takeDue(Infinity)
    await this.#written()
  }

  #allowed({ account_id, actor }: AuditEntry): boolean {
    // strangers must not use up the rows of an account's own keys
    const account = actor === actors.anonymous ? `${account_id} ${actor}` : account_id
    return this.#allowances.actor.take(`${account} ${actor}`) && this.#allowances.account.take(account)
  }

  /** Counts what has no row of its own by actor and action, and when there are too many of these, by account. */
  #count(entry: AuditEntry, now: number): void {
    if (this.#above.size === 0) this.#aboveUntil = now + window
    const { account_id, actor, action } = entry
    const counted = { ...entry, target: null, identity_id: null, address: null, detail: { uncounted_targets: true } }
    const key = JSON.stringify([account_id, actor, action])
    const found = this.#above.get(key)
    if (found) return void (found.count += 1)
    const counters = this.#countersOf.get(account_id) ?? 0
    if (counters < most.ofAccount && this.#above.size < most.counters) {
      this.#countersOf.set(account_id, counters + 1)
      this.#above.set(key, { entry: counted, count: 1 })
      return
    }
    const rest = JSON.stringify([account_id])
    const row = this.#above.get(rest) ?? {
      entry: { ...counted, actor: 'several', client: null, action: 'several.done' },
      count: 0,
    }
    row.count += 1
    this.#above.set(rest, row)
  }

  #end(key: string, { entry, count }: Repeated): void {
    this.#repeated.delete(key)
    if (count > 0) this.#rows.push({ entry, count })
  }

  #endFirst(): void {
    for (const [key, repeated] of this.#repeated) return this.#end(key, repeated)
  }

  /** Repetitions and counts whose time is over get their rows. */
  #takeDue(now: number): void {
    if (this.#rows.length >= most.waiting && now !== Infinity) return
    for (const [key, repeated] of this.#repeated) {
      if (repeated.until > now) break
      this.#end(key, repeated)
    }
    if (this.#above.size === 0 || this.#aboveUntil > now) return
    this.#rows.push(...this.#above.values())
    this.#above.clear()
    this.#countersOf.clear()
  }

  /** One write at a time. */
  #written(): Promise<void> {
    const writing = (this.#writing ?? Promise.resolve()).then(() => this.#write())
    this.#writing = writing
    return writing.finally(() => {
      if (this.#writing === writing) this.#writing = undefined
    })
  }

  async #write(): Promise<void> {
    const { database, rows, log } = this.#deps
    while (this.#rows.length > 0) {
      const batch = this.#rows.slice(0, batchSize)
      try {
        await database.transaction(async (tx) => {
          for (const { entry, count } of batch) await rows.append(tx, entry, count)
        })
      } catch (error) {
        log.warn({ err: error, waiting: this.#rows.length }, 'audit log could not be written')
        return
      }
      this.#rows.splice(0, batch.length)
    }
  }

  #schedule(after: number): void {
    if (this.#stopped || this.#timer) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.flush()
    }, after).unref()
  }
}

interface Allowance {
  left: number
  /** Milliseconds since the Unix epoch. */
  filled: number
}

/** How many more rows each may have; it fills evenly. */
class Allowances {
  readonly #clock: Clock
  readonly #bounds: { burst: number; perMinute: number }
  readonly #of = lruMap<Allowance>(20_000)

  constructor(clock: Clock, limits: { burst: number; perMinute: number }) {
    this.#clock = clock
    this.#bounds = limits
  }

  take(who: string): boolean {
    const { burst, perMinute } = this.#bounds
    const now = this.#clock.now()
    const { left, filled } = this.#of.get(who) ?? { left: burst, filled: now }
    const full = Math.min(burst, left + (Math.max(0, now - filled) / minute) * perMinute)
    this.#of.set(who, { left: full >= 1 ? full - 1 : full, filled: now })
    return full >= 1
  }
}
