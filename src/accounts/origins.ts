import { type Clock, iso } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import { type Caller, makerOf, noLongerAdmitted } from '../core/scopes.ts'
import { type Reader, sql, type Sql, type Transaction } from '../store/database.ts'

type Who = Pick<Caller, 'key_id' | 'session_id' | 'secret'>

/** What of a key says when its secrets end. */
export interface SecretEnds {
  expires_at: string | null
  /** The number of the secret that it has. */
  rotations: number
  previous_expires_at: string | null
  /** When the former secret ends with which the key was made, or one above it. */
  former_until: string | null
}

/** Keys and sessions that one key may end with, beside the one that made it. */
const most = 16

/** What ends with a key or session, beside what it made: keys that it gave a new secret, webhooks that it changed, and what those who held it made. */
export class Origins {
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Until when the key's secret or the session is good, in milliseconds since the epoch, as far as can be told now; undefined once it was revoked
   * or replaced, has expired or ended. The operator has neither.
   */
  async until(reader: Reader, { key_id, session_id, secret }: Who): Promise<number | undefined> {
    if (key_id === null) {
      if (session_id === null) return Infinity
      return (await reader.get(sql`SELECT 1 FROM sessions WHERE id = ${session_id}`)) === undefined ? undefined : Infinity
    }
    const row = await reader.get<SecretEnds>(sql`SELECT * FROM api_keys WHERE id = ${key_id} AND revoked_at IS NULL`)
    const end = row ? endOfSecret(row, secret) : 0
    return end > this.#clock.now() ? end : undefined
  }

  /**
   * In the transaction in which a caller makes what can act by itself: its end comes before or after, and finds it then. Answers when what is made
   * ends at the latest, in milliseconds since the epoch. Throws Fault 401.
   */
  async requireAdmitted(tx: Transaction, caller: Who): Promise<number> {
    const until = await this.until(tx, caller)
    if (until === undefined) throw noLongerAdmitted(caller)
    return until
  }

  /** Until when the secret of the caller works, in milliseconds since the epoch, if another replaced it; Infinity for the one the key has, and a person. */
  async graceOf(reader: Reader, { key_id, secret }: Who): Promise<number> {
    const row = await reader.get<SecretEnds>(sql`SELECT * FROM api_keys WHERE id = ${key_id}`)
    return !row || row.rotations === secret ? Infinity : endOfSecret(row, secret)
  }

  /**
   * Until when the former secret works, in milliseconds since the epoch, by which the caller was admitted or with which the caller's key was made
   * or one above it; Infinity where there is none.
   */
  async formerUntil(reader: Reader, caller: Who): Promise<number> {
    const row = await reader.get<SecretEnds>(sql`SELECT * FROM api_keys WHERE id = ${caller.key_id}`)
    const made = row?.former_until ? Date.parse(row.former_until) : Infinity
    return Math.min(made, await this.graceOf(reader, caller))
  }

  /**
   * What leaves by itself at a time (ISO 8601) must not outlive a former secret that the caller comes from. Throws Fault 403, code `beyond_own`,
   * with this parameter.
   */
  async requireInGrace(reader: Reader, caller: Who, at: string, param: string): Promise<void> {
    const until = await this.formerUntil(reader, caller)
    if (Date.parse(at) <= until) return
    throw new Fault(
      'forbidden',
      `This secret of the key was replaced, or the one with which the key was made: ${param} can be no later than that one works, which is until ${iso(until)}. Use the new one.`,
      { code: 'beyond_own', param },
    )
  }

  /** What the caller makes or changes ends also with those who know the caller's secret because they gave it. */
  async inherit(tx: Transaction, id: string, { key_id }: Pick<Who, 'key_id'>): Promise<void> {
    await tx.run(
      sql`INSERT INTO credential_origins (id, origin_id) SELECT ${id}, origin_id FROM credential_origins WHERE id = ${key_id} AND origin_id <> ${id}
        AND ${this.#live()} ON CONFLICT (id, origin_id) DO UPDATE SET until = NULL`,
    )
  }

  /** What the caller changed ends with the caller too. */
  async changed(tx: Transaction, id: string, caller: Who): Promise<void> {
    await tx.run(
      sql`INSERT INTO credential_origins (id, origin_id) SELECT ${id}, ${makerOf(caller)} WHERE ${makerOf(caller)} IS NOT NULL
        ON CONFLICT (id, origin_id) DO UPDATE SET until = NULL`,
    )
    await this.inherit(tx, id, caller)
  }

  /**
   * The caller gave another key a new secret, and the former one works until then. Those who knew that one are let go then, but not by a key that comes
   * from them or from the key itself. Throws Fault 403, code `too_many_rotators`.
   */
  async rotated(tx: Transaction, id: string, caller: Who, until: string): Promise<void> {
    const above = sql`WITH RECURSIVE above (id) AS (SELECT ${makerOf(caller)}
      UNION SELECT api_keys.created_by FROM above JOIN api_keys ON api_keys.id = above.id
      UNION SELECT origin_id FROM above JOIN credential_origins ON credential_origins.id = above.id WHERE ${this.#live()})
      SELECT id FROM above WHERE id IS NOT NULL`
    if (!(await tx.get(sql`SELECT 1 WHERE ${id} IN (${above})`))) {
      // the secret before the one that is replaced now works no more
      await tx.run(sql`DELETE FROM credential_origins WHERE id = ${id} AND until IS NOT NULL AND origin_id NOT IN (${above})`)
      await tx.run(
        sql`UPDATE credential_origins SET until = ${until} WHERE id = ${id} AND until IS NULL AND origin_id NOT IN (${above})`,
      )
    }
    await this.changed(tx, id, caller)
    const row = await tx.get<{ n: number }>(
      sql`SELECT count(*) AS n FROM credential_origins WHERE id = ${id} AND ${this.#live()}`,
    )
    if (row!.n > most) {
      throw new Fault(
        'forbidden',
        `${most} keys that come from one another gave this key a new secret already. Rotate it with itself, or with a key that none of them made.`,
        { code: 'too_many_rotators' },
      )
    }
  }

  /** A key gave itself a new secret: the one before that which is replaced now works no more, and who knew it is let go. */
  async renewed(tx: Transaction, id: string): Promise<void> {
    await tx.run(sql`DELETE FROM credential_origins WHERE id = ${id} AND until IS NOT NULL`)
  }

  /** The ids of a key and, through all generations, those that it made or gave a new secret; but not `but`, nor what only that one made. */
  madeWith(id: string, but: string | null): Sql {
    const others = but === null || but === id ? sql`` : sql` AND api_keys.id <> ${but}`
    return sql`WITH RECURSIVE made (id) AS (SELECT ${id}
      UNION SELECT api_keys.id FROM made JOIN api_keys ON api_keys.created_by = made.id${others}
      UNION SELECT api_keys.id FROM made JOIN credential_origins ON origin_id = made.id AND ${this.#live()}
        JOIN api_keys ON api_keys.id = credential_origins.id${others}) SELECT id FROM made`
  }

  #live(): Sql {
    return sql`(until IS NULL OR until > ${iso(this.#clock.now())})`
  }
}

/** When a secret of a key ends, in milliseconds since the epoch: with the key, the one before when its grace is over. 0 for older ones. */
export function endOfSecret({ expires_at, rotations, previous_expires_at }: SecretEnds, secret: number): number {
  const end = expires_at === null ? Infinity : Date.parse(expires_at)
  if (secret === rotations) return end
  return secret === rotations - 1 && previous_expires_at !== null ? Math.min(end, Date.parse(previous_expires_at)) : 0
}
