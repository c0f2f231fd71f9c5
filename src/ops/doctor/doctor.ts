import { performance } from 'node:perf_hooks'
import type { Basis } from '../../basis.ts'
import { hour, iso, minute } from '../../core/clock.ts'
import { about, type Check, examine, type Pace, reasonOf } from './check.ts'
import { type DoctorChange, type DoctorLine, type DoctorReport, type Line, summary } from './model.ts'
import { writing } from './remedies.ts'
import { boxOf, StoredLines } from './stored-lines.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'log' | 'metrics' | 'account'> {
  dataDirectory: string
  /** The checks for the current settings; their names are unique. */
  checks: () => readonly Check[]
}

/** Milliseconds between two automatic runs of a check. */
const paces: Record<Pace, number> = { often: 5 * minute, usual: 15 * minute, seldom: 6 * hour }

/** A run this much early still counts, as timers are inexact. */
const slack = minute / 2

/** Checks the box, stores the results, and emits an event for changes. */
export class Doctor {
  readonly #deps: Deps
  readonly #lines: StoredLines
  readonly #ran = new Map<string, number>()
  #running: Promise<DoctorReport> | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    this.#lines = new StoredLines(deps)
    deps.metrics.gauge(
      'pillarbox_doctor_lines',
      'Last results of the doctor: lines by check and status (pass, warn, fail); of several boxes, those of its machine and of what all have',
      async (gauge) => {
        const counts = await this.#lines.counts()
        gauge.reset()
        for (const { name, status, count } of counts) gauge.labels(name, status).set(count)
      },
      ['name', 'status'],
    )
  }

  /** The last results; runs the checks if there are none of this box. */
  async report(): Promise<DoctorReport> {
    const { lines, whole } = await this.#lines.read()
    return whole ? toReport(lines) : this.run()
  }

  /** Runs all checks now; concurrent callers share a run. */
  run(): Promise<DoctorReport> {
    this.#running ??= this.#look(this.#deps.checks(), true).finally(() => (this.#running = undefined))
    return this.#running
  }

  /** Runs the checks whose time has come; those of what all boxes have only if this one `leads`. */
  async runDue(leads: boolean): Promise<void> {
    if (this.#running) return
    const now = performance.now()
    const due = this.#deps
      .checks()
      .filter((check) => (leads || !check.shared) && now - (this.#ran.get(check.name) ?? -Infinity) > paces[check.pace] - slack)
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
      this.#emit(await this.#lines.write(results, this.#deps.checks()))
      return toReport((await this.#lines.read()).lines)
    } catch (error) {
      // a failing store is itself one of the results
      this.#deps.log.error({ err: error }, 'results of the doctor could not be stored')
      const at = iso(this.#deps.clock.now())
      const lines = withFailedStore(this.#lines.unstored(results), this.#failedStore(error))
      return toReport(lines.map((line) => ({ ...line, since: at, checked_at: at })))
    }
  }

  #failedStore(error: unknown): Line {
    const box = boxOf(this.#deps.database)
    const line = about('store', 'writing').fail(
      `The store cannot write: ${reasonOf(error)}`,
      writing(error, this.#deps.dataDirectory),
    )
    return box === '' ? line : { ...line, box }
  }

  #emit(changes: readonly DoctorChange[]): void {
    for (const { name, subject, status, before, message, box } of changes) {
      const level = status === 'pass' ? 'info' : 'warn'
      this.#deps.log[level]({ name, subject, status, before, message, box }, 'result of a doctor check changed')
    }
  }
}

/** The lines with one about the store that cannot write. */
function withFailedStore(lines: readonly Line[], failed: Line): readonly Line[] {
  const isSame = ({ name, subject }: Line): boolean => name === failed.name && subject === failed.subject
  if (lines.some((line) => isSame(line) && line.status === 'fail')) return lines
  return [...lines.filter((line) => !isSame(line)), failed]
}

function toReport(lines: DoctorLine[]): DoctorReport {
  const checked_at = lines.map((line) => line.checked_at).toSorted((one, other) => other.localeCompare(one, 'en'))[0] ?? null
  return { ...summary(lines), checked_at, lines }
}
