import { keyHash } from '../../accounts/secret.ts'
import type { Clock } from '../../core/clock.ts'
import type { Scope } from '../../core/scopes.ts'
import type { Seal, SealedColumn } from '../../core/seal/seal.ts'
import { type Database, sql } from '../../store/database.ts'
import { type Codes, type IssuedCode, kept, type TakenCode } from './codes.ts'

export const sealedCodes: SealedColumn = {
  table: 'oauth_codes',
  column: 'sealed',
  key: ['hash'],
  context: ({ hash }) => contextOf(String(hash)),
}

/** The encryption context that binds what a code was issued for to its row. */
function contextOf(hash: string): string {
  return `oauth code ${hash}`
}

interface Deps {
  database: Database
  seal: Seal
  clock: Clock
}

/** The codes of several boxes, in their database: what one has issued is redeemed at any of them, once. */
export class SharedCodes implements Codes {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async add(code: string, issued: IssuedCode): Promise<void> {
    const { database, seal, clock } = this.#deps
    const [hash, now] = [keyHash(code), clock.now()]
    const { account_id } = issued.person
    const sealed = seal.seal(Buffer.from(textOf(issued)), contextOf(hash))
    await database.transaction(async (tx) => {
      await tx.run(
        sql`INSERT INTO oauth_codes (hash, account_id, sealed, issued_at) VALUES (${hash}, ${account_id}, ${sealed}, ${now})`,
      )
      await tx.run(
        sql`DELETE FROM oauth_codes WHERE issued_at < ${now - kept.lifetime} OR (account_id = ${account_id} AND hash NOT IN
          (SELECT hash FROM oauth_codes WHERE account_id = ${account_id} ORDER BY issued_at DESC, hash LIMIT ${kept.ofAccount}))`,
      )
    })
  }

  take(code: string): Promise<TakenCode | undefined> {
    const { database, seal } = this.#deps
    const hash = keyHash(code)
    return database.transaction(async (tx) => {
      const row = await tx.get<{ sealed: Uint8Array; used: number; key_id: string | null }>(
        sql`SELECT sealed, used, key_id FROM oauth_codes WHERE hash = ${hash}`,
      )
      if (!row) return undefined
      if (row.used === 1) {
        // the box that was first may not have made the key yet
        await tx.run(sql`UPDATE oauth_codes SET stolen = 1 WHERE hash = ${hash}`)
        return { key_id: row.key_id ?? undefined }
      }
      await tx.run(sql`UPDATE oauth_codes SET used = 1 WHERE hash = ${hash}`)
      return { issued: issuedOf(seal.open(row.sealed, contextOf(hash)).toString()) }
    })
  }

  async settle(code: string, keyId: string | undefined): Promise<boolean> {
    if (keyId === undefined) return true
    const row = await this.#deps.database.transaction((tx) =>
      tx.get<{ stolen: number }>(sql`UPDATE oauth_codes SET key_id = ${keyId} WHERE hash = ${keyHash(code)} RETURNING stolen`),
    )
    return row?.stolen !== 1
  }
}

/** JSON, which has no sets and no Infinity. */
function textOf({ person, ...issued }: IssuedCode): string {
  const { scopes, until, ...rest } = person
  return JSON.stringify({ ...issued, person: rest, held: [...scopes], end: Number.isFinite(until) ? until : null })
}

function issuedOf(text: string): IssuedCode {
  const { person, held, end, ...issued } = JSON.parse(text) as Omit<IssuedCode, 'person'> & {
    person: Omit<IssuedCode['person'], 'scopes' | 'until'>
    held: Scope[]
    end: number | null
  }
  return { ...issued, person: { ...person, scopes: new Set(held), until: end ?? Infinity } }
}
