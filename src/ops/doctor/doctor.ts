import { performance } from 'node:perf_hooks'
import type { Basis } from '../../basis.ts'
import { hour, iso, minute } from '../../core/clock.ts'
import { sql, type Transaction } from '../../store/database.ts'
import { about, type Check, examine, type Finding, type Pace, reasonOf } from './check.ts'
import { type DoctorChange, doctorChanged, type DoctorLine, type DoctorReport, type Line, summary } from './model.ts'
import { writing } from './remedies.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'log' | 'metrics' | 'account'> {
  dataDirectory: string
  /** The checks for the current settings; their names are unique. */
  checks: () => readonly Check[]
}

type Row = DoctorLine & { check_name: string; place: number }

/** Milliseconds between two automatic runs of a check. */
const paces: Record<Pace, number> = { often: 5 * minute, usual: 15 * minute, seldom: 6 * hour }

/** A run this much early still counts, as timers are inexact. */
const slack = minute / 2

/** Checks the box, stores the results, and emits an event for changes. */
export class Doctor {
  readonly #deps: Deps
  readonly #ran = new Map<string, number>()
  #running: Promise<DoctorReport> | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    deps.metrics.gauge(
      'pillarbox_doctor_lines',
      'Last results of the doctor: lines by check and status (pass, warn, fail)',
      async (gauge) => {
        const rows = await deps.database.all<{ name: string; status: string; count: number }>(
          sql`SELECT name, status, count(*) AS count FROM doctor_lines GROUP BY name, status`,
        )
        gauge.reset()
        for (const { name, status, count } of rows) gauge.labels(name, status).set(count)
      },
      ['name', 'status'],
    )
  }

  /** The last results; runs the checks if there are none. */
  async report(): Promise<DoctorReport> {
    const rows = await this.#rows()
    return rows.length === 0 ? this.run() : this.#toReport(rows)
  }

  /** Runs all checks now; concurrent callers share a run. */
  run(): Promise<DoctorReport> {
    this.#running ??= this.#look(this.#deps.checks(), true).finally(() => (this.#running = undefined))
    return this.#running
  }

  async runDue(): Promise<void> {
    if (this.#running) return
    const now = performance.now()
    const due = this.#deps.checks().filter((check) => now - (this.#ran.get(check.name) ?? -Infinity) > paces[check.pace] - slack)
    if (due.length > 0) await this.#look(due, false)
  }

  async #look(checks: readonly Check[], asked: boolean): Promise<DoctorReport> {
    const results = await Promise.all(checks.map((check) => examine(check, asked)))
    const now = performance.now()
    for (const { check, error } of results) {
      this.#ran.set(check.name, now)
      if (error !== undefined) this.#deps.log.error({ check: check.name, err: error }, 'a check of the doctor failed')
    }
    try {
      this.#emit(await this.#deps.database.transaction((tx) => this.#write(tx, results)))
      return this.#toReport(await this.#rows())
    } catch (error) {
      // a failing store is itself one of the results
      this.#deps.log.error({ err: error }, 'results of the doctor could not be stored')
      const at = iso(this.#deps.clock.now())
      const store = about('store', 'writing').fail(
        `The store cannot write: ${reasonOf(error)}`,
        writing(error, this.#deps.dataDirectory),
      )
      const lines = results.flatMap((result) => result.lines)
      const known = lines.some((line) => keyOf(line) === keyOf(store) && line.status === 'fail')
      const others = known ? lines : [...lines.filter((line) => keyOf(line) !== keyOf(store)), store]
      return this.#toReport(others.map((line) => ({ ...line, since: at, checked_at: at })))
    }
  }

  #emit(changes: readonly DoctorChange[]): void {
    for (const { name, subject, status, before, message } of changes) {
      const level = status === 'pass' ? 'info' : 'warn'
      this.#deps.log[level]({ name, subject, status, before, message }, 'result of a doctor check changed')
    }
  }

  async #write(tx: Transaction, results: readonly Finding[]): Promise<DoctorChange[]> {
    const now = iso(this.#deps.clock.now())
    const known = new Map((await tx.all<Row>(sql`SELECT * FROM doctor_lines`)).map((row) => [keyOf(row), row]))
    const changes: DoctorChange[] = []
    const order = new Map(this.#deps.checks().map(({ name }, index) => [name, index]))
    for (const { check, lines, error } of results) {
      for (const [index, line] of lines.entries()) {
        const before = known.get(keyOf(line))
        known.delete(keyOf(line))
        const since = before?.status === line.status ? before.since : now
        await this.#keep(tx, line, { check: check.name, place: order.get(check.name)! * 10_000 + index, since, now })
        if (before ? before.status !== line.status : line.status !== 'pass') {
          changes.push({ ...line, before: before?.status ?? null, since })
        }
      }
      // checks that could not run keep their status
      if (error !== undefined) continue
      for (const row of [...known.values()].filter(({ check_name }) => check_name === check.name)) {
        known.delete(keyOf(row))
        await tx.run(sql`DELETE FROM doctor_lines WHERE name = ${row.name} AND subject = ${row.subject}`)
        if (row.status === 'pass') continue
        const { name, subject, status: before } = row
        changes.push({ ...about(name, subject).pass('This subject no longer exists.'), before, since: now })
      }
    }
    for (const data of changes) {
      await this.#deps.events.append(tx, doctorChanged, { account_id: this.#deps.account, identity_id: null, data })
    }
    return changes
  }

  async #keep(
    tx: Transaction,
    { name, subject, status, message, fix }: Line,
    { check, place, since, now }: { check: string; place: number; since: string; now: string },
  ): Promise<void> {
    await tx.run(
      sql`INSERT INTO doctor_lines (name, subject, check_name, place, status, message, fix, since, checked_at) VALUES (${name}, ${subject},
        ${check}, ${place}, ${status}, ${message}, ${fix}, ${since}, ${now}) ON CONFLICT (name, subject) DO UPDATE SET
        check_name = excluded.check_name, place = excluded.place, status = excluded.status, message = excluded.message, fix = excluded.fix,
        since = excluded.since, checked_at = excluded.checked_at`,
    )
  }

  #rows(): Promise<Row[]> {
    return this.#deps.database.all<Row>(sql`SELECT * FROM doctor_lines ORDER BY place, name, subject`)
  }

  #toReport(rows: DoctorLine[]): DoctorReport {
    const checked_at = rows.map((row) => row.checked_at).toSorted((one, other) => other.localeCompare(one, 'en'))[0] ?? null
    return { ...summary(rows), checked_at, lines: rows }
  }
}

function keyOf({ name, subject }: Pick<Line, 'name' | 'subject'>): string {
  return `${name} ${subject}`
}
