import { randomUUID } from 'node:crypto'
import { type Cached, type Caches, type Run, sql, type Transaction } from '../database.ts'

/** Milliseconds after a look for changes for which what is cached holds. */
const validity = 500

/** Milliseconds for which the changes of a run that has ended are kept, and after which a box that has not looked takes all for changed. */
const kept = { ended: 86_400_000, unseen: 3_600_000 }

/** A kind and the run that changed it, with what differs after each change. */
interface CacheChange {
  kind: Cached
  run_id: string
  mark: string
}

function changesIn(text: string): CacheChange[] {
  if (text === '') return []
  return text.split(',').map((change) => {
    const [kind, run_id, mark] = change.split(' ') as [Cached, string, string]
    return { kind, run_id, mark }
  })
}

/**
 * What this box has cached of rows that other boxes change too. Each run has a row of its own for each kind, so that no two of them write the same one:
 * a change writes another mark into it, in its transaction. The boxes look for marks that they have not seen.
 */
export class SharedCaches implements Caches {
  readonly #run: Run
  readonly #listeners = new Map<Cached, (() => void | Promise<void>)[]>()
  #seen: ReadonlyMap<string, string> = new Map()
  /** What the last look found. */
  #changes = ''
  /** When the last look was begun, in milliseconds. */
  #looked = -Infinity

  constructor(run: Run) {
    this.#run = run
  }

  get valid(): boolean {
    return performance.now() - this.#looked < validity
  }

  async invalidate(tx: Transaction, kind: Cached): Promise<void> {
    await tx.run(
      sql`INSERT INTO cache_changes (kind, run_id, mark, changed_at) VALUES (${kind}, ${this.#run.id}, ${randomUUID()}, ${Date.now()})
        ON CONFLICT (kind, run_id) DO UPDATE SET mark = excluded.mark, changed_at = excluded.changed_at`,
    )
  }

  onInvalid(kind: Cached, listener: () => void | Promise<void>): void {
    this.#listeners.set(kind, [...(this.#listeners.get(kind) ?? []), listener])
  }

  /**
   * Notes all changes (`kind run mark`, with commas between) that a look found which was begun at `looked`. What is cached is valid again once all
   * listeners have dropped theirs.
   */
  async note(looked: number, changes: string): Promise<void> {
    const unseen = looked - this.#looked > kept.unseen
    if (unseen) await this.#drop(this.#listeners.keys())
    if (changes !== this.#changes) await this.#compare(changes, unseen)
    this.#changes = changes
    this.#looked = looked
  }

  async #compare(changes: string, dropped: boolean): Promise<void> {
    const others = changesIn(changes).filter(({ run_id }) => run_id !== this.#run.id)
    const marks = new Map(others.map(({ kind, run_id, mark }) => [`${kind} ${run_id}`, mark]))
    const changed = others.filter(({ kind, run_id, mark }) => this.#seen.get(`${kind} ${run_id}`) !== mark)
    if (!dropped) await this.#drop(new Set(changed.map(({ kind }) => kind)))
    this.#seen = marks
  }

  /** Drops all: what a transaction of this box changed is not known. */
  async dropAll(): Promise<void> {
    await this.#drop(this.#listeners.keys())
  }

  /** Removes the changes of runs that have ended long ago. */
  async removeOld(tx: Transaction): Promise<void> {
    await tx.run(sql`DELETE FROM cache_changes WHERE changed_at < ${Date.now() - kept.ended} AND ${this.#run.ended(sql`run_id`)}`)
  }

  async #drop(kinds: Iterable<Cached>): Promise<void> {
    for (const kind of kinds) for (const listener of this.#listeners.get(kind) ?? []) await listener()
  }
}

/** What the only box on a database has cached: nobody else changes the rows. */
export class OwnCaches implements Caches {
  readonly valid = true
  readonly #listeners = new Set<() => void | Promise<void>>()

  async invalidate(): Promise<void> {}

  onInvalid(_kind: Cached, listener: () => void | Promise<void>): void {
    this.#listeners.add(listener)
  }

  async dropAll(): Promise<void> {
    for (const listener of this.#listeners) await listener()
  }
}
