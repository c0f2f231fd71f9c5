import type { FileHandle } from 'node:fs/promises'
import type { Log } from '../../core/log.ts'
import { isSyncFailure } from './failures.ts'
import { SqliteThread } from './thread.ts'

export interface CheckpointDeps {
  file: string
  dataFile: FileHandle
  walFile: FileHandle
  log: Log
  /** Frames in the log above which writers wait for a whole checkpoint, so that it starts again from its beginning. */
  longLog: number
  /** Resolves when no group is between its BEGIN and its sync. */
  quiet: () => Promise<void>
  /** Called when the disk lost its word: nothing more may be written. */
  broken: (error: unknown) => void
}

/** Copies the write-ahead log into the database file, beside the writers, in a thread of its own. */
export class Checkpoints {
  readonly #parts: CheckpointDeps
  readonly #helper: SqliteThread
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #submissionAuth: Promise<void> | undefined
  #stopped = false

  constructor(parts: CheckpointDeps) {
    this.#parts = parts
    this.#helper = new SqliteThread(parts.file)
  }

  /** While it is there, no group may begin before it resolves. */
  get submissionAuth(): Promise<void> | undefined {
    return this.#submissionAuth
  }

  /** Something was written: a checkpoint follows within a quarter of a second. */
  schedule(): void {
    if (this.#timer || this.#stopped) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#running ??= this.#run().finally(() => (this.#running = undefined))
    }, 250)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#running
    await this.#helper.stop()
  }

  async #run(): Promise<void> {
    const { dataFile, walFile, log, longLog, quiet } = this.#parts
    try {
      // somebody who removes the log under us would take along every commit since the last checkpoint
      if ((await walFile.stat()).nlink === 0) return this.#parts.broken(new Error('The write-ahead log was removed.'))
      if ((await this.#helper.checkpoint()) < longLog) return
      // the bulk of the database file is forced to disk before anybody has to wait for the rest
      await this.#force(dataFile)
      let open!: () => void
      this.#submissionAuth = new Promise((resolve) => (open = resolve))
      try {
        await quiet()
        await this.#helper.checkpoint()
      } finally {
        this.#submissionAuth = undefined
        open()
      }
    } catch (error) {
      // the pages copied before are counted as done: after a failed sync only reading the whole log anew brings them back
      if (isSyncFailure(error)) this.#parts.broken(error)
      else log.warn({ err: error }, 'a checkpoint failed; the next write tries again')
    }
  }

  async #force(file: FileHandle): Promise<void> {
    try {
      await file.datasync()
    } catch (error) {
      this.#parts.broken(error)
      throw error
    }
  }
}
