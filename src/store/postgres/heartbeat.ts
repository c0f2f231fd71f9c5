import { randomUUID } from 'node:crypto'
import { type Clock, day, hour, systemClock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { type BoxReport, type KnownBox, type Run, type Sql, sql } from '../database.ts'
import { type Connection, KeptConnection } from './connections.ts'
import { describeTarget, type PostgresTarget } from './target.ts'

/** In milliseconds: from one beat to the next, until a run that cannot beat stops what it has under way, and until others take it for ended. */
export interface HeartbeatTimes {
  beat: number
  lost: number
  ended: number
}

const defaultTimes: HeartbeatTimes = { beat: 5000, lost: 20_000, ended: 30_000 }

/** The time of the server, in milliseconds since the epoch. */
const now = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/** Takes a lease that nobody has, or whose run has ended. */
const take = `INSERT INTO leases (name, run_id) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET run_id = excluded.run_id
  WHERE leases.run_id = excluded.run_id OR leases.run_id NOT IN (SELECT run_id FROM boxes)`

/** Milliseconds for which the process does nothing before it is told, and for which it is told. */
const delays = { least: 1000, told: hour }

/** The name of a box that was given none. */
const unnamed = 'unknown'

/** Milliseconds for which a box that was lost is known. */
const known = day

/** Removes the boxes that have not beaten for a while, and notes that they have not ended by themselves; those that run again are not lost. */
const remove = `WITH gone AS (DELETE FROM boxes WHERE seen_at < ${now} - $1::bigint RETURNING name, seen_at)
  INSERT INTO lost_boxes (name, seen_at) SELECT name, max(seen_at) FROM gone WHERE name IS NOT NULL
    AND name NOT IN (SELECT name FROM boxes WHERE name IS NOT NULL AND seen_at >= ${now} - $1::bigint) GROUP BY name
  ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at`

const listing = `SELECT name, run_id = $1 AS own, ${now} - seen_at AS since, 0 AS lost, clock_ahead AS ahead, delay,
    ${now} - delayed_at AS delayed, report FROM boxes
  UNION ALL SELECT name, false, ${now} - seen_at, 1, 0, 0, 0, NULL FROM lost_boxes WHERE seen_at > ${now} - $2::bigint ORDER BY since`

interface Deps {
  target: PostgresTarget
  log: Log
  times?: HeartbeatTimes | undefined
  /** Names the locked data directory, as long as the machine is not restarted: no other run of it is alive. */
  directory?: string | undefined
  /** The machine and the data directory, for people. */
  name?: string | undefined
  /** That of the box, which is compared with the server's. */
  clock?: Clock | undefined
}

/**
 * The run of a box among those on the same database. It beats in the table `boxes`, by the clock of the server and on a connection of its own, which waits
 * for no transaction. Its row is removed when it ends, or by the others when it has not beaten for a while: before that it stops by its own clock.
 */
export class Heartbeat implements Run {
  readonly shared = true
  readonly #deps: Deps
  readonly #times: HeartbeatTimes
  readonly #lost = new Set<() => void>()
  readonly #ended = new Set<() => void>()
  #id: string = randomUUID()
  readonly #connection: KeptConnection
  /** The names of what this run does for all. */
  readonly #leases = new Set<string>()
  /** The other runs at the last beat. */
  #others: ReadonlySet<string> = new Set()
  /** When the last beat with an answer was sent, in milliseconds. */
  #sent = -Infinity
  /** How far the clock is ahead of the server's, in milliseconds. */
  #ahead = 0
  /** The longest time lately in which the process did nothing, and when it was. */
  #delay = { length: 0, at: -Infinity }
  #report: BoxReport | undefined
  #isLost = false
  #closed = false
  #beating: Promise<void> = Promise.resolve()
  #asked: Promise<void> = Promise.resolve()
  #nextBeat: NodeJS.Timeout | undefined
  #deadline: NodeJS.Timeout | undefined
  #watch: NodeJS.Timeout | undefined
  #watched = 0

  constructor(deps: Deps) {
    this.#deps = deps
    this.#times = deps.times ?? defaultTimes
    // each beat is a transaction that conflicts with no other
    const session = { default_transaction_isolation: String.raw`read\ committed` }
    this.#connection = new KeptConnection(deps.target, { timeout: this.#times.lost / 2, session })
  }

  get id(): string {
    return this.#id
  }

  get name(): string {
    return this.#deps.name ?? unnamed
  }

  get alive(): boolean {
    return !this.#isLost && performance.now() - this.#sent < this.#times.lost
  }

  ended(column: Sql): Sql {
    return sql`(${column} IS NULL OR ${column} NOT IN (SELECT run_id FROM boxes))`
  }

  async leads(name: string): Promise<boolean> {
    const connection = this.#connection.current
    if (!this.alive || !connection) return false
    if (this.#leases.has(name)) return true
    const id = this.#id
    const { rowCount } = await this.#ask(connection, take, [name, id])
    if (rowCount !== 1 || id !== this.#id) return false
    this.#leases.add(name)
    return this.alive
  }

  async boxes(): Promise<KnownBox[]> {
    const connection = await this.#connection.open()
    const { rows } = await this.#ask(connection, listing, [this.#id, known])
    return (rows as BoxRow[]).map(({ name, own, since, lost, ahead, delay, delayed, report }) => ({
      name: name ?? unnamed,
      own: own === 1,
      since,
      lost: lost === 1,
      ahead,
      delay: delay > 0 && delayed < delays.told ? { length: delay, since: delayed } : undefined,
      report: report === null ? undefined : (JSON.parse(report) as BoxReport),
    }))
  }

  describe(report: BoxReport): void {
    this.#report = report
    const connection = this.#connection.current
    if (!connection) return
    const text = JSON.stringify(report)
    // a connection that is lost is made with the next beat, which is then of another run
    void this.#ask(connection, 'UPDATE boxes SET report = $2 WHERE run_id = $1', [this.#id, text]).catch(ignore)
  }

  async release(name: string): Promise<void> {
    const connection = this.#connection.current
    // without a connection it stays this run's, which is asked for it again or ends
    if (!connection || !this.#leases.delete(name)) return
    await this.#ask(connection, 'DELETE FROM leases WHERE name = $1 AND run_id = $2', [name, this.#id])
  }

  onLost(listener: () => void): void {
    this.#lost.add(listener)
  }

  onEnded(listener: () => void): void {
    this.#ended.add(listener)
  }

  /** Registers the run; earlier ones of the same directory have ended. */
  async begin(): Promise<void> {
    const sent = performance.now()
    const connection = await this.#connection.open()
    const { directory } = this.#deps
    if (directory !== undefined) await this.#ask(connection, 'DELETE FROM boxes WHERE directory = $1', [directory])
    await this.#register(connection)
    this.#others = await this.#readOthers(connection)
    this.#answered(sent)
    this.#watched = performance.now()
    this.#watch = setInterval(() => this.#noteDelay(), delays.least)
    this.#plan()
  }

  /** Ends the run: others may take up what it had under way. */
  async end(): Promise<void> {
    this.#closed = true
    clearInterval(this.#watch)
    clearTimeout(this.#nextBeat)
    clearTimeout(this.#deadline)
    await this.#beating
    const connection = this.#connection.current
    if (!connection) return
    await this.#ask(connection, 'DELETE FROM boxes WHERE run_id = $1', [this.#id]).catch(() => {})
    await this.#connection.end()
  }

  #plan(): void {
    if (this.#closed) return
    this.#nextBeat = setTimeout(() => {
      this.#beating = this.#beat()
        // the store logs that the server is away
        .catch(() => void this.#connection.end())
        .finally(() => this.#plan())
    }, this.#times.beat)
  }

  async #beat(): Promise<void> {
    const sent = performance.now()
    const connection = await this.#connection.open()
    const before = this.#clock()
    const { rows } = await this.#ask(
      connection,
      `UPDATE boxes SET seen_at = ${now}, clock_ahead = $2, delay = $3, delayed_at = ${now} - $4::bigint WHERE run_id = $1 RETURNING seen_at`,
      [this.#id, this.#ahead, ...this.#delayed()],
    )
    const seen = (rows as { seen_at: number }[])[0]
    if (seen) this.#compare(before, seen.seen_at)
    else {
      this.#lose('other boxes have taken this one for ended')
      this.#id = randomUUID()
      this.#leases.clear()
      await this.#register(connection)
    }
    await this.#ask(connection, remove, [this.#times.ended])
    const others = await this.#readOthers(connection)
    const gone = [...this.#others].filter((id) => !others.has(id))
    this.#others = others
    const wasLost = this.#isLost
    this.#answered(sent)
    if (wasLost) this.#deps.log.warn('deliveries and jobs begin again')
    if (gone.length > 0) this.#deps.log.info({ boxes: gone.length }, 'another box has ended')
    if (wasLost || gone.length > 0) this.#call(this.#ended)
  }

  async #register(connection: Connection): Promise<void> {
    const { directory, name } = this.#deps
    const report = this.#report === undefined ? null : JSON.stringify(this.#report)
    const before = this.#clock()
    const { rows } = await this.#ask(
      connection,
      `INSERT INTO boxes (run_id, directory, name, report, seen_at) VALUES ($1, $2, $3, $4, ${now}) RETURNING seen_at`,
      [this.#id, directory ?? null, name ?? null, report],
    )
    this.#compare(before, (rows as { seen_at: number }[])[0]!.seen_at)
    await this.#ask(connection, `DELETE FROM lost_boxes WHERE name = $1 OR seen_at < ${now} - $2::bigint`, [name ?? null, known])
  }

  #clock(): number {
    return Math.round((this.#deps.clock ?? systemClock).now())
  }

  /** The server's time is between those before and after it was asked, unless the clocks differ. */
  #compare(before: number, server: number): void {
    const after = this.#clock()
    this.#ahead = before > server ? before - server : after < server ? after - server : 0
  }

  /** Notes by how much the process came later to this than it should have, also while a beat is under way. */
  #noteDelay(): void {
    const at = performance.now()
    const length = at - this.#watched - delays.least
    this.#watched = at
    const { length: longest, at: before } = this.#delay
    if (length >= delays.least && (length >= longest || at - before > delays.told)) this.#delay = { length, at }
  }

  /** The delay to be told, and how long ago it was. */
  #delayed(): [number, number] {
    const { length, at } = this.#delay
    return length === 0 ? [0, 0] : [Math.round(length), Math.round(performance.now() - at)]
  }

  async #readOthers(connection: Connection): Promise<Set<string>> {
    const { rows } = await this.#ask(connection, 'SELECT run_id FROM boxes WHERE run_id <> $1', [this.#id])
    return new Set((rows as { run_id: string }[]).map(({ run_id }) => run_id))
  }

  /** Notes that others see the run at least until `sent` and the time after which they take it for ended. */
  #answered(sent: number): void {
    this.#sent = sent
    this.#isLost = false
    clearTimeout(this.#deadline)
    if (this.#closed) return
    const left = sent + this.#times.lost - performance.now()
    this.#deadline = setTimeout(() => this.#lose('the database server does not answer'), left)
  }

  #lose(why: string): void {
    if (this.#isLost) return
    this.#isLost = true
    const database = describeTarget(this.#deps.target)
    this.#deps.log.error({ database, why }, 'deliveries and jobs under way are stopped: another box may begin them again')
    this.#call(this.#lost)
  }

  #call(listeners: ReadonlySet<() => void>): void {
    for (const listener of listeners) {
      try {
        listener()
      } catch (error) {
        this.#deps.log.error({ err: error }, 'listener failed after a heartbeat')
      }
    }
  }

  /** Runs a statement after those before it: a lease may be asked for during a beat. */
  #ask(connection: Connection, text: string, values: unknown[]): Promise<{ rows: unknown[]; rowCount: number | null }> {
    const answer = this.#asked.then(() => connection.query(text, values))
    this.#asked = answer.then(ignore, ignore)
    return answer
  }
}

interface BoxRow {
  name: string | null
  own: number
  since: number
  lost: number
  ahead: number
  delay: number
  delayed: number
  report: string | null
}

function ignore(): void {}
