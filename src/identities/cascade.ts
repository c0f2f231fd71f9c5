import type { Basis } from '../basis.ts'
import type { EventHeader } from '../events/model.ts'
import type { Transaction } from '../store/database.ts'
import { identityDeleted } from './model.ts'

/**
 * Ends a batch of what a deleted identity had: rows after a position, in their order, 0 for the first. Returns the position to continue at;
 * undefined when none is left. A stop of the box can make it begin again.
 */
export type CascadeStep = (tx: Transaction, identityId: string, after: number) => Promise<number | undefined>

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

/** Ends what deleted identities had, in batches: each is a transaction of its own, so that other calls have their turn between them. */
export class Cascade {
  readonly #deps: Pick<Basis, 'events' | 'log'>
  readonly #steps: CascadeStep[] = []
  /** Where the present identity stands; in memory, as what has ended is passed over. */
  #reached = { event: 0, step: 0, after: 0 }
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
    this.#stop = events.follow('identities', (tx, batch) => this.#step(tx, batch[0]!), log, { types })
  }

  async stop(): Promise<void> {
    await this.#stop?.()
  }

  /** Runs one batch of one identity. Returns 1 when it was the last one. */
  async #step(tx: Transaction, { seq, identity_id }: EventHeader): Promise<number> {
    const { step, after } = this.#reached.event === seq ? this.#reached : { step: 0, after: 0 }
    const run = this.#steps[step]
    if (run === undefined || identity_id === null) return 1
    const next = await run(tx, identity_id, after)
    const reached = { event: seq, step: next === undefined ? step + 1 : step, after: next ?? 0 }
    tx.afterCommit(() => (this.#reached = reached))
    return reached.step === this.#steps.length ? 1 : 0
  }
}
