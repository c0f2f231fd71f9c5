import { AsyncLocalStorage } from 'node:async_hooks'
import type { Recording, Transaction } from './database.ts'

/** A queued transaction. */
export interface WaitingTransaction {
  work: (tx: Transaction) => Promise<unknown>
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
}

interface Mark {
  write: (tx: Transaction) => Promise<unknown>
  kept: boolean
}

interface OpenRecording {
  recording: Recording
  /** True while a transaction that has recorded it is not on disk. */
  pending: boolean
  /** False once the work has ended: what it left running is not part of it. */
  open: boolean
}

/** What an engine writes with the transactions of some work: `marking` and `recording` of `Database`. */
export class Marks {
  readonly #marks = new AsyncLocalStorage<Mark>()
  readonly #recordings = new AsyncLocalStorage<OpenRecording>()

  marking<T>(mark: (tx: Transaction) => Promise<unknown>, work: () => Promise<T>): Promise<T> {
    return this.#marks.run({ write: mark, kept: false }, work)
  }

  async recording<T>(recording: Recording, work: () => Promise<T>): Promise<T> {
    const opened: OpenRecording = { recording, pending: false, open: true }
    try {
      return await this.#recordings.run(opened, work)
    } finally {
      opened.open = false
    }
  }

  /** Adds the mark and the recording of the caller to its transaction. */
  add(plain: WaitingTransaction): WaitingTransaction {
    const mark = this.#marks.getStore()
    const recording = this.#recordings.getStore()
    const waiting = recording?.open && !recording.recording.recorded ? withRecord(recording, plain) : plain
    return mark === undefined || mark.kept ? waiting : withMark(mark, waiting)
  }

  /** Runs what serves all callers, without the mark and the recording of this one. */
  outside<T>(run: () => T): T {
    return this.#marks.exit(() => this.#recordings.exit(run))
  }
}

function withMark(mark: Mark, { work, resolve, reject }: WaitingTransaction): WaitingTransaction {
  return {
    work: (tx) => mark.write(tx).then(() => work(tx)),
    resolve: (value) => {
      mark.kept = true
      resolve(value)
    },
    reject,
  }
}

function withRecord(opened: OpenRecording, { work, resolve, reject }: WaitingTransaction): WaitingTransaction {
  const { recording } = opened
  let recorded = false
  return {
    work: async (tx) => {
      // a run that was rolled back recorded nothing
      if (recorded) recorded = opened.pending = false
      const before = tx.writes
      const result = await work(tx)
      if (opened.pending || recording.recorded || tx.writes === before) return result
      recorded = opened.pending = await recording.record(tx, result)
      return result
    },
    resolve: (value) => {
      if (recorded) recording.recorded = true
      resolve(value)
    },
    reject: (error) => {
      if (recorded) opened.pending = false
      reject(error)
    },
  }
}
