import { type Clock, iso } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import { accountStopped, type Caller, makerOf, noLongerAdmitted } from '../core/scopes.ts'
import { isOfLiving } from '../identities/row.ts'
import { empty, type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import type { ApiKey } from './model.ts'

export interface KeyRow extends Omit<ApiKey, 'scopes' | 'rate_limit'>, SecretEnds {
  seq: number
  account_id: string
  scopes: string
  /** Null means the rate of the settings. */
  rate_limit: number | null
  hash: string
}

type Who = Pick<Caller, 'key_id' | 'session_id' | 'secret'>

/** The fields of a key that determine when its secrets end. */
interface SecretEnds {
  expires_at: string | null
  /** The number of its current secret. */
  rotations: number
  previous_expires_at: string | null
  /** The end of the former secret that created this key, or a key above it. */
  former_until: string | null
}

export const isStopped = sql`EXISTS (SELECT 1 FROM stopped_accounts WHERE stopped_accounts.account_id = api_keys.account_id)`

/**
 * Two rows, for the two ways from a key to others: 1 is by who created it, 2 by `credential_origins`. A recursive query takes both in one term, as
 * PostgreSQL has no more than one.
 */
export const ways = sql`(SELECT 1 AS way UNION ALL SELECT 2) AS ways`

/** The most keys and sessions that one key may end with, besides its creator: each key that it creates ends with them too. */
const maxHolders = 4

/**
 * Records what ends with a key or session besides what it created: keys it rotated, webhooks it changed, and what the holders of those
 * created (keys, webhooks, jobs and scheduled e-mails).
 */
export class Origins {
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * The end of the key's secret or of the session, in milliseconds since the epoch, as known now; undefined once it was revoked or replaced,
   * has expired or ended, also by the end of its identity. The operator is neither and has no end. Throws Fault 403, code `account_stopped`, for a key of a stopped account.
   */
  async until(reader: Reader, { key_id, session_id, secret }: Who): Promise<number | undefined> {
    if (key_id === null) {
      if (session_id === null) return Infinity
      return (await reader.get(sql`SELECT 1 FROM sessions WHERE id = ${session_id}`)) === undefined ? undefined : Infinity
    }
    const row = await reader.get<SecretEnds & { stopped: number }>(
      sql`SELECT *, ${isStopped} AS stopped FROM api_keys WHERE id = ${key_id} AND revoked_at IS NULL
        AND (identity_id IS NULL OR ${isOfLiving(sql`identity_id`, iso(this.#clock.now()))})`,
    )
    if (row?.stopped === 1) throw accountStopped()
    const end = row ? endOfSecret(row, secret) : 0
    return end > this.#clock.now() ? end : undefined
  }

  /**
   * Checks the caller in the transaction that creates something which can act by itself, so that a revocation before or after finds it.
   * Returns the latest end of the new object, in milliseconds since the epoch. Throws Fault 401.
   */
  async requireAdmitted(tx: Transaction, caller: Who): Promise<number> {
    const until = await this.until(tx, caller)
    if (until === undefined) throw noLongerAdmitted(caller)
    return until
  }

  /** The end of the caller's replaced secret, in milliseconds since the epoch; Infinity for the current secret and for a person. */
  async graceOf(reader: Reader, { key_id, secret }: Who): Promise<number> {
    const row = await reader.get<SecretEnds>(sql`SELECT * FROM api_keys WHERE id = ${key_id}`)
    return !row || row.rotations === secret ? Infinity : endOfSecret(row, secret)
  }

  /**
   * The end of the former secret that admitted the caller, or that created the caller's key or a key above it, in milliseconds since the
   * epoch; Infinity where there is none.
   */
  async formerUntil(reader: Reader, caller: Who): Promise<number> {
    const row = await reader.get<SecretEnds>(sql`SELECT * FROM api_keys WHERE id = ${caller.key_id}`)
    const made = row?.former_until ? Date.parse(row.former_until) : Infinity
    return Math.min(made, await this.graceOf(reader, caller))
  }

  /**
   * What is sent at `send_at` (ISO 8601) must not outlive a former secret that the caller comes from. Throws Fault 403, code `beyond_own`.
   */
  async requireInGrace(reader: Reader, caller: Who, sendAt: string): Promise<void> {
    const until = await this.formerUntil(reader, caller)
    if (Date.parse(sendAt) <= until) return
    throw new Fault(
      'forbidden',
      `This secret of the key was replaced, or the secret that created the key was: send_at can be no later than its end at ${iso(until)}. Use the new secret.`,
      { code: 'beyond_own', param: 'send_at' },
    )
  }

  /** Objects that the caller creates or changes also end with the keys that rotated it, as their owners know its secret. */
  async inherit(tx: Transaction, id: string, { key_id }: Pick<Who, 'key_id'>): Promise<void> {
    await tx.run(
      sql`INSERT INTO credential_origins (id, origin_id) SELECT ${id}, origin_id FROM credential_origins WHERE id = ${key_id} AND origin_id <> ${id}
        AND ${this.live()} ON CONFLICT (id, origin_id) DO UPDATE SET until = NULL`,
    )
  }

  /** Objects that the caller changed also end with the caller. */
  async changed(tx: Transaction, id: string, caller: Who): Promise<void> {
    const maker = makerOf(caller)
    if (maker !== null) {
      await tx.run(
        sql`INSERT INTO credential_origins (id, origin_id) VALUES (${id}, ${maker}) ON CONFLICT (id, origin_id) DO UPDATE SET until = NULL`,
      )
    }
    await this.inherit(tx, id, caller)
  }

  /**
   * The caller rotated another key, whose former secret stays valid until then. Keys that knew that secret are dropped at that time, but not by their
   * own descendants or those of the key. Throws Fault 403, code `too_many_rotators`.
   */
  async rotated(tx: Transaction, id: string, caller: Who, until: string): Promise<void> {
    const above = sql`WITH RECURSIVE above (id) AS (SELECT ${makerOf(caller)}
      UNION SELECT coalesce(api_keys.created_by, origin_id) FROM above CROSS JOIN ${ways}
        LEFT JOIN api_keys ON way = 1 AND api_keys.id = above.id
        LEFT JOIN credential_origins ON way = 2 AND credential_origins.id = above.id AND ${this.live()})
      SELECT id FROM above WHERE id IS NOT NULL`
    if (!(await tx.get(sql`SELECT 1 WHERE ${id} IN (${above})`))) {
      // the secret before the one that is replaced now is no longer valid
      await tx.run(sql`DELETE FROM credential_origins WHERE id = ${id} AND until IS NOT NULL AND origin_id NOT IN (${above})`)
      await tx.run(
        sql`UPDATE credential_origins SET until = ${until} WHERE id = ${id} AND until IS NULL AND origin_id NOT IN (${above})`,
      )
    }
    await this.changed(tx, id, caller)
    const row = await tx.get<{ n: number }>(sql`SELECT count(*) AS n FROM credential_origins WHERE id = ${id} AND ${this.live()}`)
    if (row!.n > maxHolders) {
      throw new Fault(
        'forbidden',
        `${maxHolders} related keys have rotated this key already. Rotate it with itself, or with a key that none of them created.`,
        { code: 'too_many_rotators' },
      )
    }
  }

  /** A key rotated itself: the secret before the replaced one is no longer valid, and the keys that knew it are dropped. */
  async renewed(tx: Transaction, id: string): Promise<void> {
    await tx.run(sql`DELETE FROM credential_origins WHERE id = ${id} AND until IS NOT NULL`)
  }

  /** The ids of a key and, through all generations, of the keys it created or rotated; without `but` and what only that one created. */
  async madeWith(reader: Reader, id: string, but: string | null): Promise<string[]> {
    const others = but === null || but === id ? empty : sql` WHERE api_keys.id <> ${but}`
    const rows = await reader.all<{ id: string }>(sql`WITH RECURSIVE made (id) AS (SELECT ${id}
      UNION SELECT api_keys.id FROM made CROSS JOIN ${ways}
        LEFT JOIN credential_origins ON way = 2 AND origin_id = made.id AND ${this.live()}
        JOIN api_keys ON api_keys.created_by = CASE way WHEN 1 THEN made.id END OR api_keys.id = credential_origins.id${others})
      SELECT id FROM made`)
    return rows.map((row) => row.id)
  }

  /** The condition of rows of `credential_origins` that still hold. */
  live(): Sql {
    return sql`(until IS NULL OR until > ${iso(this.#clock.now())})`
  }
}

/** Objects that were deleted or are done end with no key any more. */
export async function dropOrigins(tx: Transaction, ids: readonly string[]): Promise<void> {
  await tx.run(sql`DELETE FROM credential_origins WHERE id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`)
}

/**
 * The ids of objects (a query of `id` and `created_by`) that end with these keys (a subquery of ids): those that the keys created, and those that were
 * created or changed with a secret that the keys knew; some ids occur twice.
 */
export function endingWith(keys: Sql, objects: Sql): Sql {
  return sql`SELECT id FROM (${objects}) AS object WHERE created_by IN (${keys})
    UNION ALL SELECT id FROM (${objects}) AS object WHERE id IN (SELECT id FROM credential_origins WHERE origin_id IN (${keys}))`
}

/**
 * The end of a secret of a key, in milliseconds since the epoch: the current one with the key, the previous one after its grace period. 0
 * for older ones.
 */
export function endOfSecret({ expires_at, rotations, previous_expires_at }: SecretEnds, secret: number): number {
  const end = expires_at === null ? Infinity : Date.parse(expires_at)
  if (secret === rotations) return end
  return secret === rotations - 1 && previous_expires_at !== null ? Math.min(end, Date.parse(previous_expires_at)) : 0
}

/** Counts the active keys of an account: neither revoked nor expired, nor bound to a deleted identity. */
export function keyCount(clock: Clock): (accountId: string) => Sql {
  return (accountId) =>
    sql`SELECT count(*) AS n FROM api_keys WHERE account_id = ${accountId} AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > ${iso(clock.now())}) AND (identity_id IS NULL OR EXISTS
      (SELECT 1 FROM identities WHERE identities.id = api_keys.identity_id AND identities.status <> 'deleted'))`
}
