import { createHash } from 'node:crypto'
import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { sql, type Transaction } from '../store/database.ts'
import { dayOf, dueTime, type Kind, type ReportSubject } from './days.ts'

export interface Result {
  kind: Kind
  /** The reported domain, lower-case A-labels. */
  domain: string
  /** The domain's policy in the report; the last one of a day counts. */
  policy: unknown
  /** The row of the report: equal ones are counted together. */
  record: unknown
}

/** The limits of stored results for one day and kind, as outside senders choose domains and addresses. */
interface Bounds {
  domains: number
  rows: number
  rows_of_domain: number
  /** The most distinct results in memory, and the characters of their texts. */
  pending: number
  pending_text: number
}

const usualBounds: Bounds = {
  domains: 2000,
  rows: 20_000,
  rows_of_domain: 1000,
  pending: 5000,
  pending_text: 16 * 1024 * 1024,
}

interface Deps extends Pick<Basis, 'database' | 'clock' | 'log'> {
  tally: (kind: Kind, what: 'counted' | 'dropped', count: number) => void
  bounds?: Bounds
}

interface Pending extends ReportSubject {
  key: Buffer
  policy: string
  record: string
  count: number
}

/** The results in memory that trigger a write, and those of one transaction. */
const many = 1000
const batch = 100

/** Counts results by day, domain and record. They are written once a minute: a crash loses those since the last write. */
export class ReportCounts {
  readonly #deps: Deps
  readonly #bounds: Bounds
  #pending = new Map<string, Pending>()
  #pendingText = 0
  #writing: Promise<void> | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    this.#bounds = deps.bounds ?? usualBounds
  }

  /** Never throws. */
  add({ kind, domain, policy, record }: Result): void {
    const day = dayOf(this.#deps.clock.now())
    const text = JSON.stringify(record)
    const policyText = JSON.stringify(policy)
    const key = createHash('sha256').update(text).digest()
    const id = `${kind} ${day} ${domain} ${key.toString('base64')}`
    const known = this.#pending.get(id)
    if (known) {
      known.count += 1
      known.policy = policyText
      return
    }
    const length = text.length + policyText.length
    if (this.#pending.size >= this.#bounds.pending || this.#pendingText + length > this.#bounds.pending_text)
      return this.#deps.tally(kind, 'dropped', 1)
    this.#pendingText += length
    this.#pending.set(id, { kind, day, domain, key, policy: policyText, record: text, count: 1 })
    if (this.#pending.size === many) void this.write()
  }

  /** Writes the counts since the last time; never rejects. */
  async write(): Promise<void> {
    await this.#writing
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined))
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    const entries = [...this.#pending.values()]
    this.#pending = new Map()
    this.#pendingText = 0
    const { database, log, tally } = this.#deps
    for (let at = 0; at < entries.length; at += batch) {
      const some = entries.slice(at, at + batch)
      try {
        const kept = await database.transaction((tx) => this.#writeSome(tx, some))
        for (const [index, entry] of some.entries()) tally(entry.kind, kept[index] ? 'counted' : 'dropped', entry.count)
      } catch (error) {
        for (const { kind, count } of some) tally(kind, 'dropped', count)
        log.warn({ err: error, results: some.length }, 'results for reports could not be written')
      }
    }
  }

  /** Returns for each whether it was counted. */
  async #writeSome(tx: Transaction, entries: readonly Pending[]): Promise<boolean[]> {
    const totals = new Map<string, { domains: number; rows: number }>()
    const kept: boolean[] = []
    for (const entry of entries) {
      const key = `${entry.kind} ${entry.day}`
      const total = totals.get(key) ?? (await totalOf(tx, entry))
      totals.set(key, total)
      kept.push(await this.#writeOne(tx, entry, total))
    }
    return kept
  }

  async #writeOne(tx: Transaction, entry: Pending, total: { domains: number; rows: number }): Promise<boolean> {
    const { kind, day, domain, key, policy, record, count } = entry
    const one = sql`kind = ${kind} AND day = ${day} AND domain = ${domain}`
    const report = await tx.get<{ rows: number; done_at: string | null }>(
      sql`SELECT rows, done_at FROM outbound_reports WHERE ${one}`,
    )
    if (!report) {
      if (total.domains >= this.#bounds.domains || total.rows >= this.#bounds.rows) return false
      const due = iso(dueTime({ kind, day, domain }))
      await tx.run(
        sql`INSERT INTO outbound_reports (kind, day, domain, policy, due_at) VALUES (${kind}, ${day}, ${domain}, ${policy}, ${due})`,
      )
      total.domains += 1
    } else if (report.done_at !== null) {
      return false
    } else {
      const { changes } = await tx.run(
        sql`UPDATE outbound_report_counts SET count = count + ${count} WHERE ${one} AND key = ${key}`,
      )
      if (changes > 0) {
        await tx.run(sql`UPDATE outbound_reports SET policy = ${policy} WHERE ${one} AND policy <> ${policy}`)
        return true
      }
      if (report.rows >= this.#bounds.rows_of_domain || total.rows >= this.#bounds.rows) {
        await tx.run(sql`UPDATE outbound_reports SET dropped = dropped + ${count} WHERE ${one}`)
        return false
      }
    }
    await tx.run(
      sql`INSERT INTO outbound_report_counts (kind, day, domain, key, record, count) VALUES (${kind}, ${day}, ${domain}, ${key}, ${record},
        ${count})`,
    )
    await tx.run(sql`UPDATE outbound_reports SET rows = rows + 1, policy = ${policy} WHERE ${one}`)
    total.rows += 1
    return true
  }
}

async function totalOf(tx: Transaction, { kind, day }: ReportSubject): Promise<{ domains: number; rows: number }> {
  const row = await tx.get<{ domains: number; rows: number }>(
    sql`SELECT count(*) AS domains, coalesce(sum(rows), 0) AS rows FROM outbound_reports WHERE kind = ${kind} AND day = ${day}`,
  )
  return row!
}
