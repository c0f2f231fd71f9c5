import type { Courier, Outcome } from '../../src/queue/courier.ts'
import type { Transaction } from '../../src/store/database.ts'

export interface TestLoad {
  to: string
  text: string
}

const second = 1000
const hour = 3_600_000

/** A courier that does as it is told, and remembers. */
export class Runner implements Courier<TestLoad> {
  readonly kind = 'test'
  schedule = [0, 5 * second, hour]
  readonly jitter = 0.1
  readonly carried: string[] = []
  finished?: () => void
  readonly settled: [string, Outcome, string][] = []
  act: (load: TestLoad, attempt: number, signal: AbortSignal) => Promise<string> = async () => 'thanks'

  deliver(load: TestLoad, attempt: number, signal: AbortSignal): Promise<string> {
    this.carried.push(`${load.text} ${attempt}`)
    return this.act(load, attempt, signal)
  }

  async settle(tx: Transaction, load: TestLoad, outcome: Outcome, answer: string): Promise<void> {
    tx.afterCommit(() => this.settled.push([load.text, outcome, answer]))
  }
}

/** Does not end before it is aborted. */
export const hang = (_load: TestLoad, _attempt: number, signal: AbortSignal): Promise<string> =>
  new Promise((_resolve, reject) => {
    const cut = (): void => reject(new Error('cut'))
    if (signal.aborted) cut()
    else signal.addEventListener('abort', cut)
  })
