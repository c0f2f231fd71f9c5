import { systemClock } from '../../../src/core/clock.ts'
import { Metrics } from '../../../src/core/metrics.ts'
import type { Courier, Outcome } from '../../../src/queue/courier.ts'
import { Queue } from '../../../src/queue/queue.ts'
import type { Database, Transaction } from '../../../src/store/database.ts'
import { quiet } from '../opened.ts'

export interface TestLoad {
  lane: string
  text: string
}

/** Milliseconds of boxes in tests of several: a machine that has much else to do delays their beats. */
export const heartbeat = { beat: 100, lost: 2000, ended: 4000 }

/** The queue of one of several boxes on a database, with a courier that does as it is told. */
export class QueueOfBox implements Courier<TestLoad> {
  readonly kind = 'test'
  readonly schedule = [0, 3_600_000]
  readonly jitter = 0
  /** The attempts that were made, as `text number`. */
  readonly made: string[] = []
  readonly settled: [string, Outcome][] = []
  readonly queue: Queue
  readonly #database: Database
  #act: (load: TestLoad, signal: AbortSignal) => Promise<string>

  constructor(database: Database, act: (load: TestLoad, signal: AbortSignal) => Promise<string> = async () => 'thanks') {
    this.#database = database
    this.#act = act
    this.queue = new Queue({ database, clock: systemClock, log: quiet, metrics: new Metrics(), grace: 20 })
    this.queue.add(this)
  }

  deliver(load: TestLoad, attempt: number, signal: AbortSignal): Promise<string> {
    this.made.push(`${load.text} ${attempt}`)
    return this.#act(load, signal)
  }

  async settle(tx: Transaction, { text }: TestLoad, outcome: Outcome): Promise<void> {
    tx.afterCommit(() => this.settled.push([text, outcome]))
  }

  enqueue(text: string, lane: string): Promise<string> {
    return this.#database.transaction((tx) => this.queue.enqueue(tx, { kind: 'test', lane, load: { lane, text } }))
  }
}

/** An attempt that ends only when it is aborted. */
export function hangs(_load: TestLoad, signal: AbortSignal): Promise<string> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('cut')))
  })
}
