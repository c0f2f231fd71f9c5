import type { FileHandle } from 'node:fs/promises'
import type { Log } from '../../core/log.ts'
import { isSyncFailure } from './failures.ts'
import { SqliteThread } from './thread.ts'

interface CheckpointDeps {
  file: string
  dataFile: FileHandle
  walFile: FileHandle
  log: Log
  /** Frames in the log above which writers wait for a full checkpoint, so that the log restarts from its beginning. */
  longLog: number
  /** Milliseconds from a write to the checkpoint that it starts. */
  delay: number
  /** Resolves when no group is between its BEGIN and its sync. */
  idle: () => Promise<void>
  /** Called when a sync failed: nothing more may be written. */
  broken: (error: unknown) => void
}

/** Copies the write-ahead log into the database file, in a thread of its own, while transactions go on. */
export class Checkpoints {
  readonly #deps: CheckpointDeps
  readonly #thread: SqliteThread
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #barrier: Promise<void> | undefined
  #stopped = false

  constructor(deps: CheckpointDeps) {
    this.#deps = deps
    this.#thread = new SqliteThread(deps.file)
  }

  /** No group may begin before it resolves; undefined when nothing is in the way. */
  get barrier(): Promise<void> | undefined {
    return this.#barrier
  }

  /** Called after a write: starts a checkpoint after the delay. */
  schedule(): void {
    if (this.#timer || this.#stopped) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#running ??= this.#run().finally(() => (this.#running = undefined))
    }, this.#deps.delay)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#running
    await this.#thread.stop()
  }

  async #run(): Promise<void> {
    const { dataFile, walFile, log, longLog, idle } = this.#deps
    try {
      // if the log was removed, every commit since the last checkpoint would be lost
      if ((await walFile.stat()).nlink === 0) return this.#deps.broken(new Error('The write-ahead log was removed.'))
      if ((await this.#thread.checkpoint()) < longLog) return
      // most of the database file is synced before writers have to wait for the rest
      await this.#sync(dataFile)
      let release!: () => void
      this.#barrier = new Promise((resolve) => (release = resolve))
      try {
        await idle()
        await this.#thread.checkpoint()
      } finally {
        this.#barrier = undefined
        release()
      }
    } catch (error) {
      // SQLite counts the copied pages as done: after a failed sync only reading the whole log again restores them
      if (isSyncFailure(error)) this.#deps.broken(error)
      else log.warn({ err: error }, 'checkpoint failed; retried with the next write')
    }
  }

  async #sync(file: FileHandle): Promise<void> {
    try {
      await file.datasync()
    } catch (error) {
      this.#deps.broken(error)
      throw error
    }
  }
}
