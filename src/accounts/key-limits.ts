import { iso } from '../core/clock.ts'
import { conflict, Fault } from '../core/fault.ts'
import type { Caller, RateOf } from '../core/scopes.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import type { Bounds } from './granting.ts'
import type { KeyRow, Origins } from './key-ancestry.ts'

/** The longest chain of keys in which each was created by the one before: a call counts against all of them. */
const maxGenerations = 16

/** The most keys of one account, with those that were revoked and on which something depends. */
const maxOfAccount = 10_000

/** Rules for changes to keys that depend on the existing keys and their creators. */
export class KeyLimits {
  readonly #origins: Origins
  readonly #defaultRate: () => number

  constructor(origins: Origins, defaultRate: () => number) {
    this.#origins = origins
    this.#defaultRate = defaultRate
  }

  /** The limits, and defaults, of a key that this caller creates. Throws Fault 401 when the caller is no longer admitted. */
  async bounds(tx: Transaction, caller: Caller): Promise<Bounds> {
    const until = await this.#origins.requireAdmitted(tx, caller)
    if (caller.session_id !== null) return { rate_limit: 0, expires_at: null, usualRate: null }
    const maker = await tx.get<Pick<KeyRow, 'rate_limit'>>(sql`SELECT rate_limit FROM api_keys WHERE id = ${caller.key_id}`)
    const own = maker?.rate_limit ?? null
    const usual = this.#defaultRate() === 0 ? Infinity : this.#defaultRate()
    const usualRate = own === null || own === 0 ? null : Math.min(own, usual)
    return { rate_limit: own ?? this.#defaultRate(), expires_at: until === Infinity ? null : iso(until), usualRate }
  }

  /** A caller with a replaced secret must neither prolong that secret nor lock out the holder of the new one. */
  async requireCurrent(tx: Transaction, caller: Caller): Promise<void> {
    const until = await this.#origins.graceOf(tx, caller)
    if (until === Infinity) return
    throw new Fault(
      'forbidden',
      `This secret of the key was replaced: it works until ${iso(until)}, and cannot rotate or revoke keys. Use the new secret.`,
      { code: 'former_secret' },
    )
  }

  /** A key that was created with a former secret may revoke only itself and what it created. */
  async requireOwn(tx: Transaction, caller: Caller, id: string): Promise<void> {
    if ((await this.#origins.formerUntil(tx, caller)) === Infinity) return
    if ((await this.#origins.madeWith(tx, caller.key_id!, null)).includes(id)) return
    throw new Fault(
      'forbidden',
      'This key, or a key above it, was created with a secret that has since been replaced: it can revoke only itself and the keys it created. Use the new secret.',
      { code: 'former_secret' },
    )
  }

  /** Throws Fault 409, code `last_key`, when the account would have no permanent key left that can create others. */
  async requireAnother(tx: Transaction, { id, account_id }: Pick<KeyRow, 'id' | 'account_id'>, keep: boolean): Promise<void> {
    const other = await tx.get(
      sql`SELECT 1 FROM api_keys WHERE account_id = ${account_id} AND id <> ${id} AND revoked_at IS NULL AND ${makesOthers} LIMIT 1`,
    )
    if (other) return
    const otherwise = keep ? '' : ' If this key created one, keep it with ?keep=true.'
    throw conflict(`No key with account:write and without expiry would be left to create others. Create one first.${otherwise}`, {
      code: 'last_key',
    })
  }

  /** Throws Fault 409, code `too_many_keys`, at the limit of an account: one revocation can end all of its keys. */
  async requireFew(tx: Transaction, accountId: string): Promise<void> {
    const last = await tx.get(sql`SELECT 1 FROM api_keys WHERE account_id = ${accountId} LIMIT 1 OFFSET ${maxOfAccount - 1}`)
    if (!last) return
    throw conflict(
      `An account has at most ${maxOfAccount} API keys. Revoke those that are not needed; expired ones count until they are revoked, and revoked ones while a key or webhook that was created with them is kept.`,
      { code: 'too_many_keys' },
    )
  }

  /** Throws Fault 403, code `too_many_generations`. */
  async requireGeneration(tx: Transaction, { key_id }: Caller): Promise<void> {
    if (key_id === null || (await this.line(tx, key_id)).length < maxGenerations) return
    throw new Fault(
      'forbidden',
      `This key is ${maxGenerations} generations below the first one and cannot create keys. Create the key with one above it.`,
      { code: 'too_many_generations' },
    )
  }

  /** The chain of creators of a key, starting with the key itself. */
  line(reader: Reader, id: string): Promise<RateOf[]> {
    return reader.all<RateOf>(
      sql`WITH RECURSIVE line (key_id, rate_limit, created_by, depth) AS (
        SELECT id, rate_limit, created_by, 0 FROM api_keys WHERE id = ${id} UNION ALL
        SELECT api_keys.id, api_keys.rate_limit, api_keys.created_by, depth + 1 FROM line JOIN api_keys ON api_keys.id = line.created_by
        WHERE depth < ${maxGenerations}) SELECT key_id, rate_limit FROM line ORDER BY depth`,
    )
  }
}

/** The condition of keys that do not expire and can create keys for the whole account. */
export const makesOthers = sql`identity_id IS NULL AND expires_at IS NULL AND instr(scopes, '"account:write"') > 0`
