import type { KeyObject } from 'node:crypto'
import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { conflict } from '../core/fault.ts'
import type { SealedColumn } from '../core/seal/seal.ts'
import { sql, type Transaction } from '../store/database.ts'
import { asPublished, freshKey, type FreshKey, privateKeyOf, sign } from './jose.ts'
import { leeway, longestSignature, publicationAge, type PublishedKey, type TokenSigner } from './model.ts'

interface Row {
  kid: string
  public_key: string
  private_key: Uint8Array | null
  created_at: string
}

interface Deps extends Pick<Basis, 'database' | 'clock' | 'seal' | 'log'> {
  /** Milliseconds that a key signs for. */
  rotateEvery: () => number
}

/**
 * The Ed25519 keys of the box. One is active; the next is published long before it signs, so that no verifier misses it; retired keys stay
 * published until all their signatures have expired.
 */
export class SigningKeys implements TokenSigner {
  readonly #deps: Deps
  #active: Promise<{ kid: string; key: KeyObject }> | undefined
  #making: Promise<void> | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    deps.database.caches.onInvalid('signing_keys', () => (this.#active = undefined))
  }

  async sign(claims: Record<string, unknown>, typ = 'JWT'): Promise<string> {
    const { exp } = claims
    // a later expiry could outlive the published key
    if (typeof exp !== 'number' || exp * 1000 > this.#deps.clock.now() + longestSignature) {
      throw new Error('A signature must expire before its key is deleted.')
    }
    const { kid, key } = await this.#signing()
    // VC-JOSE-COSE 3.1.1: the payload is a credential
    return sign(JSON.stringify(claims), { kid, typ, ...(typ === 'vc+jwt' ? { cty: 'vc' } : {}) }, key)
  }

  async published(): Promise<PublishedKey[]> {
    await this.ensure()
    const rows = await this.#deps.database.all<Row>(
      sql`SELECT kid, public_key FROM signing_keys WHERE state <> 'retired' OR published_until > ${this.#now()}
        ORDER BY CASE state WHEN 'active' THEN 0 WHEN 'next' THEN 1 ELSE 2 END, seq DESC`,
    )
    return rows.map((row) => asPublished(row.kid, row.public_key))
  }

  /** The `x` of the published key of this name, also of a retired one; undefined when there is none. */
  async find(kid: string): Promise<string | undefined> {
    const row = await this.#deps.database.get<Row>(
      sql`SELECT public_key FROM signing_keys WHERE kid = ${kid} AND state <> 'next' AND (state = 'active' OR published_until > ${this.#now()})`,
    )
    return row?.public_key
  }

  /** Creates the first keys of a box that has none. */
  async ensure(): Promise<void> {
    this.#making ??= this.#endow().catch((error: unknown) => {
      this.#making = undefined
      throw error
    })
    await this.#making
  }

  /** Rotates when the active key has signed for long enough, and deletes keys whose signatures have all expired. */
  async tend(): Promise<void> {
    await this.ensure()
    const { database, clock, rotateEvery, log } = this.#deps
    const { changes } = await database.transaction((tx) =>
      tx.run(sql`DELETE FROM signing_keys WHERE state = 'retired' AND published_until <= ${this.#now()}`),
    )
    if (changes > 0) log.info({ keys: changes }, 'retired signing keys are no longer published')
    const due = iso(clock.now() - rotateEvery())
    const row = await database.get(sql`SELECT 1 FROM signing_keys WHERE state = 'active' AND activated_at <= ${due}`)
    if (row) await this.rotate()
  }

  /** Activates the next key and returns its name. Throws Fault conflict while it has not been published for long enough. */
  async rotate(): Promise<string> {
    await this.ensure()
    const { clock, database, log } = this.#deps
    const fresh = await freshKey()
    const kid = await database.transaction(async (tx) => {
      const next = await tx.get<Row>(sql`SELECT kid, created_at FROM signing_keys WHERE state = 'next'`)
      const age = clock.now() - Date.parse(next!.created_at)
      if (age < publicationAge) {
        const minutes = Math.ceil((publicationAge - age) / 60_000)
        throw conflict(
          `The next signing key was published too recently for other servers to know it: it can be used in ${minutes} min. ` +
            'With now (--now) all keys are replaced immediately, and everything they signed becomes invalid.',
          { code: 'signing_key_too_new' },
        )
      }
      const until = iso(clock.now() + longestSignature + leeway)
      await tx.run(
        sql`UPDATE signing_keys SET state = 'retired', published_until = ${until}, private_key = NULL WHERE state = 'active'`,
      )
      await tx.run(sql`UPDATE signing_keys SET state = 'active', activated_at = ${this.#now()} WHERE state = 'next'`)
      await this.#insert(tx, fresh, 'next')
      await database.caches.invalidate(tx, 'signing_keys')
      return next!.kid
    })
    this.#active = undefined
    log.info({ kid }, 'signing key rotated')
    return kid
  }

  /** For compromised keys: replaces all of them; their signatures no longer verify. Returns the name of the active key. */
  async replaceAll(): Promise<string> {
    await this.ensure()
    const { database, log } = this.#deps
    const [active, next] = [await freshKey(), await freshKey()]
    await database.transaction(async (tx) => {
      await tx.run(sql`DELETE FROM signing_keys`)
      await database.caches.invalidate(tx, 'signing_keys')
      await this.#insert(tx, active, 'active')
      await this.#insert(tx, next, 'next')
    })
    this.#active = undefined
    log.warn({ kid: active.kid }, 'all signing keys were replaced')
    return active.kid
  }

  #signing(): Promise<{ kid: string; key: KeyObject }> {
    if (this.#active && this.#deps.database.caches.valid) return this.#active
    const opening = this.#open()
    this.#active = opening
    opening.catch(() => this.#active === opening && (this.#active = undefined))
    return opening
  }

  async #open(): Promise<{ kid: string; key: KeyObject }> {
    await this.ensure()
    const { database, seal } = this.#deps
    const row = await database.get<Row>(sql`SELECT kid, private_key FROM signing_keys WHERE state = 'active'`)
    return { kid: row!.kid, key: privateKeyOf(seal.open(row!.private_key!, placeOf(row!.kid))) }
  }

  async #endow(): Promise<void> {
    const { database } = this.#deps
    if (await database.get(sql`SELECT 1 FROM signing_keys WHERE state = 'active'`)) return
    const [active, next] = [await freshKey(), await freshKey()]
    await database.transaction(async (tx) => {
      // another box may have made them meanwhile
      if (await tx.get(sql`SELECT 1 FROM signing_keys WHERE state = 'active'`)) return
      await this.#insert(tx, active, 'active')
      await this.#insert(tx, next, 'next')
    })
  }

  async #insert(tx: Transaction, { kid, public_key, secret }: FreshKey, state: 'active' | 'next'): Promise<void> {
    const now = this.#now()
    const sealed = this.#deps.seal.seal(secret, placeOf(kid))
    await tx.run(
      sql`INSERT INTO signing_keys (kid, public_key, private_key, state, created_at, activated_at)
        VALUES (${kid}, ${public_key}, ${sealed}, ${state}, ${now}, ${state === 'active' ? now : null})`,
    )
  }

  #now(): string {
    return iso(this.#deps.clock.now())
  }
}

/** The private signing keys, each bound to its name. */
export const sealedKeys: SealedColumn = {
  table: 'signing_keys',
  column: 'private_key',
  key: ['seq'],
  // existing signatures no longer verify; the next token creates new keys
  lost: 'DELETE FROM signing_keys WHERE private_key IS NOT NULL',
  context: ({ kid }) => placeOf(String(kid)),
}

/** The encryption context of a signing key. */
export function placeOf(kid: string): string {
  return `signing key ${kid}`
}
