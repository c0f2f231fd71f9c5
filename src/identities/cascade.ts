import type { Basis } from '../basis.ts'
import type { EventHeader } from '../events/model.ts'
import type { Transaction } from '../store/database.ts'
import { identityDeleted } from './model.ts'

/**
 * Ends a batch of what a deleted identity had: rows after a position, in their order, 0 for the first. Returns the position to continue at;
 * undefined when none is left. A stop of the box can make it begin again.
 */
type CascadeStep = (tx: Transaction, identityId: string, after: number) => Promise<number | undefined>

/** The most rows that a batch reads. */
export const window = 500

/** Rows, and what belongs to them, after which a batch ends. */
const enough = 50

/** Ends some of these rows; `end` returns how many it changed. Returns where to continue, and undefined without rows. */
export async function endSome<Row extends { seq: number }>(
  rows: Row[],
  end: (row: Row) => Promise<number>,
): Promise<number | undefined> {
  let changed = 0
  for (const row of rows) {
    changed += await end(row)
    if (changed >= enough) return row.seq
  }
  return rows.at(-1)?.seq
}

/** The place of a step in their order, and the position at which it continues. */
interface Progress {
  step: number
  after: number
}

/** Ends what deleted identities had, in batches: each is a transaction of its own, so that other calls have their turn between them. */
export class Cascade {
  readonly #deps: Pick<Basis, 'events' | 'log'>
  readonly #steps: CascadeStep[] = []
  /** The progress with each identity, by the position of its event; in memory, as what has ended is passed over. */
  readonly #reached = new Map<number, Progress>()
  /** The account that was served last. */
  #served = ''
  #stop: (() => Promise<void>) | undefined

  constructor(deps: Pick<Basis, 'events' | 'log'>) {
    this.#deps = deps
  }

  /** Registers, before `start`, what ends soon after the deletion of an identity, in this order. */
  add(step: CascadeStep): void {
    this.#steps.push(step)
  }

  start(): void {
    const { events, log } = this.#deps
    const types = [identityDeleted.name]
    this.#stop = events.follow('identities', (tx, batch) => this.#step(tx, batch), log, { types })
  }

  async stop(): Promise<void> {
    await this.#stop?.()
  }

  /** Runs one batch of one identity: accounts take turns. Returns how many identities, from the first, have ended. */
  async #step(tx: Transaction, events: EventHeader[]): Promise<number> {
    const left = events.filter((event) => !this.#isOver(event))
    const accounts = [...new Set(left.map(({ account_id }) => account_id))].toSorted()
    const account = accounts.find((one) => one > this.#served) ?? accounts[0]
    const event = left.find(({ account_id }) => account_id === account)
    const reached = event && (await this.#run(tx, event))
    const first = events.findIndex((one) => !this.#isOver(one, one === event ? reached : undefined))
    const ended = first === -1 ? events : events.slice(0, first)
    tx.afterCommit(() => {
      if (event && reached) this.#reached.set(event.seq, reached)
      this.#served = account ?? ''
      for (const { seq } of ended) this.#reached.delete(seq)
    })
    return ended.length
  }

  async #run(tx: Transaction, { seq, identity_id }: EventHeader): Promise<Progress> {
    const { step, after } = this.#reached.get(seq) ?? { step: 0, after: 0 }
    const next = await this.#steps[step]!(tx, identity_id!, after)
    return { step: next === undefined ? step + 1 : step, after: next ?? 0 }
  }

  #isOver({ seq, identity_id }: EventHeader, reached: Progress | undefined = this.#reached.get(seq)): boolean {
    return identity_id === null || (reached?.step ?? 0) >= this.#steps.length
  }
}
