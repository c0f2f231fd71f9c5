import type { Basis } from '../basis.ts'
import { lruMapOfBytes } from '../core/memory.ts'
import { sql } from '../store/database.ts'

/** Milliseconds for which they are remembered: a wait without `since` searches as far back. */
export const lookBack = 120_000

/** The most bytes of remembered answers: of 100,000 keys with one each. */
const remembered = 32 * 1024 * 1024

/** The messages that each holder got by waiting, by position in the log, so that a wait without `since` does not return them again. */
export interface GivenMessages {
  /** The positions, with the time of each. */
  of(holder: string, identityId: string): Promise<ReadonlyMap<number, number> | undefined>
  note(holder: string, identityId: string, seq: number): Promise<void>
}

type Deps = Pick<Basis, 'database' | 'clock'>

export function givenMessages(deps: Deps): GivenMessages {
  return deps.database.several ? new SharedGivenMessages(deps) : new OwnGivenMessages(deps)
}

/** Those of one box, in memory. */
class OwnGivenMessages implements GivenMessages {
  readonly #clock: Deps['clock']
  readonly #given = lruMapOfBytes<Map<number, number>>(remembered, ({ size }) => 250 + 50 * size)

  constructor({ clock }: Deps) {
    this.#clock = clock
  }

  async of(holder: string, identityId: string): Promise<ReadonlyMap<number, number> | undefined> {
    return this.#given.get(`${holder} ${identityId}`)
  }

  async note(holder: string, identityId: string, seq: number): Promise<void> {
    const key = `${holder} ${identityId}`
    const now = this.#clock.now()
    const given = [...(this.#given.get(key) ?? [])].filter(([, at]) => at > now - lookBack)
    this.#given.set(key, new Map([...given, [seq, now]]))
  }
}

/** Notes after which those of all holders are swept. */
const notesToSweep = 100

/** Those of several boxes, in their database: the next call may come to another one. */
class SharedGivenMessages implements GivenMessages {
  readonly #deps: Deps
  #notes = 0

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async of(holder: string, identityId: string): Promise<ReadonlyMap<number, number>> {
    const { database, clock } = this.#deps
    const rows = await database.all<{ seq: number; given_at: number }>(
      sql`SELECT seq, given_at FROM given_messages
        WHERE holder = ${holder} AND identity_id = ${identityId} AND given_at > ${clock.now() - lookBack}`,
    )
    return new Map(rows.map(({ seq, given_at }) => [seq, given_at]))
  }

  async note(holder: string, identityId: string, seq: number): Promise<void> {
    const { database, clock } = this.#deps
    const now = clock.now()
    this.#notes += 1
    const sweeps = this.#notes % notesToSweep === 0
    await database.transaction(async (tx) => {
      await tx.run(
        sql`INSERT INTO given_messages (holder, identity_id, seq, given_at) VALUES (${holder}, ${identityId}, ${seq}, ${now})
          ON CONFLICT (holder, identity_id, seq) DO UPDATE SET given_at = excluded.given_at`,
      )
      if (sweeps) await tx.run(sql`DELETE FROM given_messages WHERE given_at <= ${now - lookBack}`)
    })
  }
}
