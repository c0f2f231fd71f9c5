import { randomUUID } from 'node:crypto'
import { type Caches, type KnownBox, type Run, type Sql, sql } from '../database.ts'

/** The run of the only box on a database: its data directory is locked, so that every other run has ended. */
export class OnlyRun implements Run {
  readonly id = randomUUID()
  readonly name = ''
  readonly shared = false
  readonly alive = true

  ended(): Sql {
    return sql`1 = 1`
  }

  async leads(): Promise<boolean> {
    return true
  }

  async release(): Promise<void> {}

  async boxes(): Promise<KnownBox[]> {
    return []
  }

  /** There is nobody to tell. */
  describe(): void {}

  /** Never: nobody else looks. */
  onLost(): void {}

  /** Never: there is no other. */
  onEnded(): void {}
}

/** What the only box has cached: nobody else changes the rows. */
export const onlyCaches: Caches = { valid: true, invalidate: async () => {}, onInvalid: () => {} }
