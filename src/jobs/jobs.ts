import { setTimeout as sleep } from 'node:timers/promises'
import type { Keys } from '../accounts/keys.ts'
import { type Clock, day, iso } from '../core/clock.ts'
import { isOfLiving } from '../identities/row.ts'
import { type Cursors, page } from '../store/page.ts'
import { sweep } from '../core/cron.ts'
import { conflict, Fault, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Log } from '../core/log.ts'
import { type Caller, insufficientScope, makerOf, may, type Scope } from '../core/scopes.ts'
import type { Page } from '../core/shapes.ts'
import { type Database, join, sql, type Sql, type Transaction } from '../store/database.ts'
import { batch, deleteSome, deleteSurplus, type Gone, JobFiles, type RemoveFile } from './deletion.ts'
import { columns, type JobRow, toJob, visible } from './job-rows.ts'
import type { Job, JobFilter, Progress, Result } from './model.ts'
import { alreadyRunning, cancelElsewhere, failInterrupted, findElsewhere } from './runs.ts'

/** Reports progress; omitted fields stay unchanged. */
export type ReportProgress = (progress: Partial<Progress>) => void

/** The work of a job. Its result is stored as JSON, or the message of a Fault it throws. It must observe the signal. */
type Work = (report: ReportProgress, signal: AbortSignal, id: string) => Promise<Record<string, unknown>>

interface JobRequest {
  /** The identity it belongs to: deleted with it. */
  identity_id?: string
  /** The scopes needed to see it, besides belonging to the account. */
  scopes?: readonly Scope[]
  /** One job of a kind runs at a time, in the whole box (the default) or in each account. */
  each?: 'box' | 'account'
}

interface Running {
  row: JobRow
  progress: Progress
  /** The time the progress was last stored, in milliseconds since the epoch. */
  written: number
  /** The expiry of the key that started it, in milliseconds since the epoch. */
  until: number
  stop: AbortController
  /** Undefined until it is stored. */
  ended: Promise<void> | undefined
}

/** Presents the stored result of a job to a caller who may see it. */
type Present = (caller: Caller, id: string, result: Result) => Result

/** What becomes of the row of a job when it ends. */
type End = Pick<JobRow, 'done' | 'total' | 'unit' | 'status' | 'result' | 'error' | 'error_code' | 'finished_at'>

/** The error of a job that was interrupted and not cancelled. */
const cutShort = {
  stopped: { error: 'The box was stopped before the job finished.', error_code: 'stopped' },
  expired: {
    error: 'The key that started the job expired before it finished. Start it again with a key that lasts longer.',
    error_code: 'key_expired',
  },
  lost: {
    error: 'The database did not answer the box for too long before the job finished. Start it again.',
    error_code: 'storage_unavailable',
  },
}

/** Between two writes of a job's progress, in milliseconds. */
const pause = 1000

/** Between two attempts to write how a job ended, in milliseconds. */
const longestWait = 5000

/** The most running jobs of the whole box; above `shared` an account may start one only if it has none running. */
const maxRunning = { shared: 8, all: 64 }

/** How long finished jobs are kept, in milliseconds. */
const retention = 7 * day

/** Long-running work, one of a kind at a time: started by a call, observed and cancelled by others. */
export class Jobs {
  readonly #database: Database
  readonly #clock: Clock
  readonly #cursors: Cursors
  readonly #log: Log
  readonly #origins: Keys['origins'] | undefined
  readonly #running = new Map<string, Running>()
  /** How jobs have ended whose rows still say that they run, because the disk was full. */
  readonly #unwritten = new Map<string, End>()
  readonly #files: JobFiles
  readonly #endedBy = new Map<string, readonly Scope[]>()
  readonly #presents = new Map<string, Present>()
  #stopping = false

  constructor(deps: { database: Database; clock: Clock; cursors: Cursors; log: Log; keys?: Pick<Keys, 'ends' | 'origins'> }) {
    this.#database = deps.database
    this.#clock = deps.clock
    this.#cursors = deps.cursors
    this.#log = deps.log
    this.#files = new JobFiles(deps.log)
    this.#origins = deps.keys?.origins
    const { run } = this.#database
    run.onLost(() => {
      for (const id of this.#running.keys()) void this.#abort(id, 'lost')
    })
    const beginAgain = (): void =>
      void this.beginAgain().catch((error: unknown) => this.#log.error({ err: error }, 'interrupted jobs could not be marked'))
    run.onEnded(beginAgain)
    this.#database.onUnsure(beginAgain)
    deps.keys?.ends('jobs', sql`SELECT id, created_by FROM jobs`, (tx, ids) => this.#endOf(tx, ids))
  }

  /**
   * Registers, before the first call, the scopes of which any one is needed to cancel or delete a job of this kind; account:write by
   * default.
   */
  endedBy(kind: string, anyOf: readonly Scope[]): void {
    this.#endedBy.set(kind, anyOf)
  }

  /** Registers, before the first call, how the results of this kind are presented; by default as stored. */
  presents(kind: string, present: Present): void {
    this.#presents.set(kind, present)
  }

  get counts(): Map<string, number> {
    const kinds = Map.groupBy(this.#running.values(), ({ row }) => row.kind)
    return new Map([...kinds].map(([kind, jobs]) => [kind, jobs.length]))
  }

  /** Resolves when the running jobs have ended; undefined when none runs. */
  get work(): Promise<unknown> | undefined {
    const work = [...this.#running.values()].flatMap(({ ended }) => ended ?? [])
    return work.length === 0 ? undefined : Promise.all(work)
  }

  /** Starts the work and returns at once. Throws Fault conflict `job_running` while another of its kind runs. */
  async start(caller: Caller, kind: string, work: Work, input: JobRequest = {}): Promise<Job> {
    this.requireFree(caller, kind, input.each)
    const row: JobRow = {
      id: newId('job'),
      account_id: caller.account_id,
      kind,
      seq: 0,
      identity_id: input.identity_id ?? null,
      status: 'running',
      done: 0,
      total: null,
      unit: 'steps',
      scopes: ` ${(input.scopes ?? []).join(' ')} `,
      result: null,
      error: null,
      error_code: null,
      created_at: iso(this.#clock.now()),
      created_by: makerOf(caller),
      finished_at: null,
      run_id: this.#database.run.id,
    }
    const running: Running = {
      row,
      progress: { done: 0, total: null, unit: 'steps' },
      written: this.#clock.now(),
      until: caller.until,
      stop: new AbortController(),
      ended: undefined,
    }
    // before the first await, so that two calls cannot both start
    this.#running.set(row.id, running)
    try {
      await this.#insert(caller, row, input.each ?? 'box')
    } catch (error) {
      this.#running.delete(row.id)
      throw error
    }
    // others may have taken it for interrupted since
    if (!this.#database.run.alive) running.stop.abort('lost')
    running.ended = this.#run(running, work)
    return toJob(row, running.progress)
  }

  /** Throws Fault conflict when a job of this kind cannot start now. */
  requireFree(caller: Caller, kind: string, each: JobRequest['each'] = 'box'): void {
    const same = [...this.#running.values()].find(
      ({ row }) => row.kind === kind && (each === 'box' || row.account_id === caller.account_id),
    )
    if (same) throw alreadyRunning(caller, kind, same.row)
    if (this.#running.size < maxRunning.shared) return
    const own = [...this.#running.values()].find(({ row }) => row.account_id === caller.account_id)
    if (!own && this.#running.size < maxRunning.all) return
    const when = own ? `when your job ${own.row.id} has ended, or later` : 'later'
    throw conflict(`The maximum number of jobs is running. Try again ${when}.`, { code: 'too_many_jobs', retryAfter: 10 })
  }

  async list(caller: Caller, filter: JobFilter): Promise<Page<Job>> {
    const { kind } = filter
    return page<JobRow, Job>(this.#database, this.#cursors, filter, {
      name: `jobs ${caller.account_id} ${caller.identity_id} ${filter.kind}`,
      from: sql`jobs`,
      account: caller.account_id,
      where: sql`account_id = ${caller.account_id}`,
      filters: [visible(caller), ...(kind === undefined ? [] : [sql`kind = ${kind}`])],
      octets: sql`coalesce(octet_length(result), 0) + coalesce(octet_length(error), 0)`,
      present: (row) => this.#shown(caller, row),
    })
  }

  async get(caller: Caller, id: string): Promise<Job> {
    return this.#shown(caller, await this.#row(caller, id))
  }

  /** Cancels a running job, and returns it; a finished one stays unchanged. Throws Fault forbidden to a caller who may only read it. */
  async cancel(caller: Caller, id: string): Promise<Job> {
    this.#requireEnding(caller, await this.#row(caller, id))
    await this.#abort(id, 'cancelled')
    await this.#cancelElsewhere(id)
    return this.get(caller, id)
  }

  /** Cancels and deletes it. Throws Fault forbidden to a caller who may only read it. */
  async remove(caller: Caller, id: string): Promise<{ id: string; deleted: true }> {
    this.#requireEnding(caller, await this.#row(caller, id))
    await this.#abort(id, 'cancelled')
    const gone = await this.#database.transaction((tx) => deleteSome(tx, sql`id = ${id}`))
    if (gone.length === 0) throw notFound('job')
    await this.#removeFiles(gone)
    return { id, deleted: true }
  }

  /** The number of finished jobs of a kind, about one identity, since a time in milliseconds. */
  async doneSince(kind: string, identityId: string, since: number): Promise<number> {
    const row = await this.#database.get<{ n: number }>(
      sql`SELECT count(*) AS n FROM jobs WHERE identity_id = ${identityId} AND kind = ${kind} AND status = 'done' AND finished_at > ${iso(since)}`,
    )
    return row!.n
  }

  /** True if there is such a job, in any account, and its identity, if it has one, is neither deleted nor has expired. */
  async knows(id: string): Promise<boolean> {
    const row = await this.#database.get(
      sql`SELECT 1 FROM jobs WHERE id = ${id} AND (identity_id IS NULL OR ${isOfLiving(sql`identity_id`, iso(this.#clock.now()))})`,
    )
    return row !== undefined
  }

  /** True if it is running in this process. */
  runs(id: string): boolean {
    return this.#running.has(id)
  }

  /** Registers, before `start`, how the files of this kind of job are removed. */
  keepsFiles(kind: string, remove: RemoveFile): void {
    this.#files.add(kind, remove)
  }

  /** Cancels the jobs of an identity in the transaction of its deletion, and deletes a batch of them. */
  async leave(tx: Transaction, identityId: string): Promise<void> {
    await this.leaveSome(tx, identityId)
    tx.afterCommit(() => {
      for (const { row } of this.#running.values()) if (row.identity_id === identityId) void this.#abort(row.id, 'cancelled')
    })
  }

  /** Deletes a batch of the jobs of a deleted identity, the newest first. Returns undefined when none is left. */
  async leaveSome(tx: Transaction, identityId: string): Promise<number | undefined> {
    const gone = await deleteSome(tx, sql`identity_id = ${identityId} ORDER BY seq DESC`)
    tx.afterCommit(() => void this.#removeFiles(gone))
    return gone.length < batch ? undefined : 0
  }

  /** Marks jobs whose run has ended as interrupted. */
  async beginAgain(): Promise<void> {
    const here = [...this.#running.keys(), ...this.#unwritten.keys()]
    await this.#database.transaction((tx) => failInterrupted(tx, this.#database.run, here, this.#now))
  }

  /** Deletes jobs that finished 7 days ago. */
  async sweep(signal?: AbortSignal): Promise<void> {
    const limit = iso(this.#clock.now() - retention)
    await sweep(async () => {
      const gone = await this.#database.transaction((tx) => deleteSome(tx, sql`finished_at < ${limit}`))
      await this.#removeFiles(gone)
      return gone.length === batch
    }, signal)
  }

  /** Aborts running jobs, and waits until they have ended. */
  async stop(): Promise<void> {
    this.#stopping = true
    await Promise.all([...this.#running.keys()].map((id) => this.#abort(id, 'stopped')))
  }

  /** Aborts the running jobs of a key that ended, and removes the files of its jobs; the rows stay visible to their owner. */
  async #endOf(tx: Transaction, ids: Sql): Promise<number> {
    const row = await tx.get<{ n: number }>(sql`SELECT count(*) AS n FROM jobs WHERE id IN (${ids})`)
    const kinds = join(['', ...this.#files.kinds])
    const ended = await tx.all<Gone>(
      sql`SELECT id, kind FROM jobs WHERE id IN (${ids}) AND (status = 'running' OR (status = 'done' AND kind IN (${kinds})))`,
    )
    await cancelElsewhere(tx, this.#database.run, sql`id IN (${ids})`, this.#now)
    tx.afterCommit(() => {
      for (const { id } of ended) void this.#abort(id, 'cancelled')
      void this.#removeFiles(ended)
    })
    return row!.n
  }

  async #cancelElsewhere(id: string): Promise<void> {
    const { run } = this.#database
    if (run.shared) await this.#database.transaction((tx) => cancelElsewhere(tx, run, sql`id = ${id}`, this.#now))
  }

  async #insert(caller: Caller, row: JobRow, each: 'box' | 'account'): Promise<void> {
    await this.#database.transaction(async (tx) => {
      const same = await findElsewhere(tx, this.#database.run, row, each)
      if (same) throw alreadyRunning(caller, row.kind, same)
      await this.#origins?.requireAdmitted(tx, caller)
      await this.#origins?.inherit(tx, row.id, caller)
      await tx.run(
        sql`INSERT INTO jobs (id, account_id, identity_id, kind, status, scopes, created_at, created_by, run_id) VALUES (${row.id}, ${row.account_id},
          ${row.identity_id}, ${row.kind}, ${row.status}, ${row.scopes}, ${row.created_at}, ${row.created_by}, ${row.run_id})`,
      )
      return row
    })
  }

  async #run(running: Running, work: Work): Promise<void> {
    const { row, stop, progress } = running
    const report: ReportProgress = (changed) => {
      Object.assign(progress, changed)
      if (running.until <= this.#clock.now()) stop.abort('expired')
      if (this.#clock.now() - running.written >= pause) void this.#write(running)
    }
    const outcome = await work(report, stop.signal, row.id).then(
      (result) => ({ status: 'done' as const, result: JSON.stringify(result) }),
      (error: unknown) => this.#failed(running, error),
    )
    const end = { result: null, error: null, error_code: null, ...progress, ...outcome, finished_at: iso(this.#clock.now()) }
    try {
      await this.#end(row, end)
    } catch (error) {
      this.#log.error({ job: row.id, err: error }, 'result of a job could not be written')
      this.#unwritten.set(row.id, end)
      void this.#endLater(row, end)
    } finally {
      this.#running.delete(row.id)
    }
  }

  #failed({ row, stop }: Running, error: unknown): Pick<End, 'status'> & Partial<End> {
    if (stop.signal.aborted) {
      const why = stop.signal.reason as 'cancelled' | keyof typeof cutShort
      return why === 'cancelled' ? { status: why } : { status: 'failed', ...cutShort[why] }
    }
    if (error instanceof Fault) return { status: 'failed', error: error.message, error_code: error.code ?? error.type }
    this.#log.error({ job: row.id, kind: row.kind, err: error }, 'job failed')
    return {
      status: 'failed',
      error: `Internal error; see the log for the reason (job ${row.id}).`,
      error_code: 'internal_error',
    }
  }

  async #write(running: Running): Promise<void> {
    running.written = this.#clock.now()
    try {
      const { changes } = await this.#database.transaction((tx) =>
        tx.run(sql`UPDATE jobs SET ${columns(running.progress)} WHERE id = ${running.row.id} AND status = 'running'`),
      )
      // deleted, or ended by another box
      if (changes === 0) running.stop.abort('cancelled')
    } catch (error) {
      this.#log.warn({ job: running.row.id, err: error }, 'progress of a job could not be written')
    }
  }

  async #end(row: JobRow, end: End): Promise<void> {
    const gone = await this.#database.transaction(async (tx) => {
      await tx.run(
        sql`UPDATE jobs SET ${columns(end)}, status = ${end.status}, result = ${end.result}, error = ${end.error},
          error_code = ${end.error_code}, finished_at = ${end.finished_at} WHERE id = ${row.id} AND status = 'running'`,
      )
      return deleteSurplus(tx, row.account_id)
    })
    await this.#removeFiles(gone)
    this.#log.info({ job: row.id, kind: row.kind, status: end.status }, 'job ended')
  }

  /** Writes how a job ended once the disk takes it; until then it is shown from memory. */
  async #endLater(row: JobRow, end: End): Promise<void> {
    for (let wait = 100; !this.#stopping; wait = Math.min(wait * 2, longestWait)) {
      await sleep(wait, undefined, { ref: false })
      try {
        await this.#end(row, end)
        this.#unwritten.delete(row.id)
        return
      } catch {
        // said when it failed first
      }
    }
  }

  async #abort(id: string, why: 'cancelled' | keyof typeof cutShort): Promise<void> {
    const running = this.#running.get(id)
    running?.stop.abort(why)
    await running?.ended
  }

  #requireEnding(caller: Caller, { kind }: JobRow): void {
    const anyOf = this.#endedBy.get(kind) ?? ['account:write']
    if (!may(caller, anyOf)) throw insufficientScope(anyOf, caller.person)
  }

  #shown(caller: Caller, row: JobRow): Job {
    const job = toJob({ ...row, ...this.#unwritten.get(row.id) }, this.#running.get(row.id)?.progress)
    const present = this.#presents.get(job.kind)
    return present && job.result !== null ? { ...job, result: present(caller, job.id, job.result) } : job
  }

  #removeFiles(jobs: readonly Gone[]): Promise<void> {
    return this.#files.remove(jobs, (id) => this.#running.get(id)?.ended)
  }

  get #now(): string {
    return iso(this.#clock.now())
  }

  async #row(caller: Caller, id: string): Promise<JobRow> {
    const row = await this.#database.get<JobRow>(sql`SELECT * FROM jobs WHERE id = ${id} AND ${visible(caller)}`)
    if (!row) throw notFound('job')
    return row
  }
}
