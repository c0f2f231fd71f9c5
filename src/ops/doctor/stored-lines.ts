import type { Basis } from '../../basis.ts'
import { day, hour, iso } from '../../core/clock.ts'
import { type Database, sql, type Transaction } from '../../store/database.ts'
import { about, type Check, type Finding } from './check.ts'
import { type DoctorChange, doctorChanged, type DoctorLine, type Line, type Status } from './model.ts'

/** `box` is empty for what all boxes have. */
type Row = Omit<DoctorLine, 'box'> & { box: string; check_name: string; place: number }

/** The lines while they are being replaced in a transaction; those that `known` still has may be gone. */
interface Update {
  tx: Transaction
  known: Map<string, Row>
  now: number
}

/** Milliseconds after its last check for which a line of a box that does not run is stored. */
const remembered = day

/** The name under which a box has lines of its machine; empty for one that has the database alone. */
export function boxOf({ several, run }: Pick<Database, 'several' | 'run'>): string {
  return several ? run.name : ''
}

/** True if the check of this name passed within the last hour at another box. */
export async function passesElsewhere(database: Database, name: string, now: number): Promise<boolean> {
  if (!database.several) return false
  const row = await database.get(
    sql`SELECT 1 FROM doctor_lines WHERE name = ${name} AND status = 'pass' AND checked_at > ${iso(now - hour)} AND box NOT IN ('', ${database.run.name})`,
  )
  return row !== undefined
}

/** The lines of the last checks. Of several boxes on a database each has its own of what is about its machine. */
export class StoredLines {
  readonly #deps: Pick<Basis, 'database' | 'events' | 'clock' | 'account'>
  /** The name of this box, and that which it had when it was one of several, or alone. */
  readonly #own: string
  readonly #former: string

  constructor(deps: Pick<Basis, 'database' | 'events' | 'clock' | 'account'>) {
    this.#deps = deps
    this.#own = boxOf(deps.database)
    this.#former = this.#own === '' ? deps.database.run.name : ''
  }

  /** The lines of all boxes that run, or were lost within a day; `whole` if this one has made its checks. */
  async read(): Promise<{ lines: DoctorLine[]; whole: boolean }> {
    const boxes = await this.#boxes()
    const rows = await this.#deps.database.all<Row>(sql`SELECT * FROM doctor_lines ORDER BY place, name, subject, box`)
    const lines = rows.filter(({ box }) => boxes.has(box)).map(({ box, ...line }) => ({ ...line, ...named(box) }))
    return { lines, whole: rows.some(({ box }) => box === this.#own) }
  }

  /** Lines of this box that could not be stored. */
  unstored(results: readonly Finding[]): Line[] {
    return results.flatMap(({ check, lines }) => lines.map((line) => ({ ...line, ...named(this.#boxFor(check)) })))
  }

  /** How many lines of this box and of what all have there are. */
  counts(): Promise<{ name: string; status: Status; count: number }[]> {
    return this.#deps.database.all(
      sql`SELECT name, status, count(*) AS count FROM doctor_lines WHERE box IN ('', ${this.#own}) GROUP BY name, status`,
    )
  }

  /** Stores what these of all `checks` found. Returns the lines whose status changed. */
  async write(results: readonly Finding[], checks: readonly Check[]): Promise<DoctorChange[]> {
    const boxes = await this.#boxes()
    return this.#deps.database.transaction(async (tx) => {
      const now = this.#deps.clock.now()
      const known = new Map((await tx.all<Row>(sql`SELECT * FROM doctor_lines`)).map((row) => [keyOf(row.box, row), row]))
      const update: Update = { tx, known, now }
      const changes: DoctorChange[] = []
      const order = new Map(checks.map(({ name }, index) => [name, index]))
      for (const result of results) changes.push(...(await this.#replace(update, result, order.get(result.check.name)! * 10_000)))
      for (const row of known.values()) {
        if (boxes.has(row.box) || now - Date.parse(row.checked_at) < remembered) continue
        changes.push(...(await remove(update, row, 'The box has not run for a day.')))
      }
      for (const data of changes) {
        await this.#deps.events.append(tx, doctorChanged, { account_id: this.#deps.account, identity_id: null, data })
      }
      return changes
    })
  }

  /** Replaces the lines of one check, and removes them from `known`. */
  async #replace(update: Update, { check, lines, error }: Finding, place: number): Promise<DoctorChange[]> {
    const { tx, known } = update
    const now = iso(update.now)
    const box = this.#boxFor(check)
    const former = check.shared ? box : this.#former
    const changes: DoctorChange[] = []
    for (const [index, line] of lines.entries()) {
      const [before, earlier] = [known.get(keyOf(box, line)), known.get(keyOf(former, line))]
      for (const row of [before, earlier]) if (row) known.delete(keyOf(row.box, row))
      if (earlier && earlier !== before) await deleteRow(tx, earlier)
      const last = before ?? earlier
      const since = last?.status === line.status ? last.since : now
      await insertRow(tx, { ...line, box, check_name: check.name, place: place + index, since, checked_at: now })
      if (last ? last.status !== line.status : line.status !== 'pass') {
        changes.push({ ...line, ...named(box), before: last?.status ?? null, since })
      }
    }
    // checks that could not run keep their status
    if (error !== undefined) return changes
    for (const row of known.values()) {
      if (row.check_name !== check.name || (row.box !== box && row.box !== former)) continue
      known.delete(keyOf(row.box, row))
      changes.push(...(await remove(update, row, 'This subject no longer exists.')))
    }
    return changes
  }

  /** The names of this box and of the others; that of what all have is among them. */
  async #boxes(): Promise<Set<string>> {
    const { database } = this.#deps
    const others = database.several ? await database.run.boxes() : []
    return new Set(['', this.#own, ...others.map(({ name }) => name)])
  }

  #boxFor({ shared }: Check): string {
    return shared ? '' : this.#own
  }
}

function named(box: string): { box?: string } {
  return box === '' ? {} : { box }
}

/** Equal for two lines of one box about the same. */
function keyOf(box: string, { name, subject }: Pick<Line, 'name' | 'subject'>): string {
  return JSON.stringify([box, name, subject])
}

async function insertRow(
  tx: Transaction,
  { box, name, subject, check_name, place, status, message, fix, since, checked_at }: Row,
): Promise<void> {
  await tx.run(
    sql`INSERT INTO doctor_lines (box, name, subject, check_name, place, status, message, fix, since, checked_at) VALUES (${box}, ${name}, ${subject},
      ${check_name}, ${place}, ${status}, ${message}, ${fix}, ${since}, ${checked_at}) ON CONFLICT (box, name, subject) DO UPDATE SET
      check_name = excluded.check_name, place = excluded.place, status = excluded.status, message = excluded.message, fix = excluded.fix,
      since = excluded.since, checked_at = excluded.checked_at`,
  )
}

async function remove({ tx, now }: Update, row: Row, message: string): Promise<DoctorChange[]> {
  await deleteRow(tx, row)
  const { name, subject, status: before, box } = row
  return before === 'pass' ? [] : [{ ...about(name, subject).pass(message), ...named(box), before, since: iso(now) }]
}

async function deleteRow(tx: Transaction, { box, name, subject }: Row): Promise<void> {
  await tx.run(sql`DELETE FROM doctor_lines WHERE box = ${box} AND name = ${name} AND subject = ${subject}`)
}
