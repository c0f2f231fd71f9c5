import { type Clock, iso } from '../core/clock.ts'
import { isLiving } from '../identities/row.ts'
import { type Database, type Reader, sql, type Transaction } from '../store/database.ts'

/** The fields of an identity that tokens contain. */
interface Bearer {
  id: string
  account_id: string
  email: string
  status: 'active' | 'suspended'
  /** Tokens of any other generation are revoked. */
  generation: number
}

/** Verified facts about a bearer. */
interface Proofs {
  /** The DNS of the address's domain points to this box. */
  email_domain_verified: boolean
  /** It has a number of a real provider, not of the loopback. */
  phone_number_verified: boolean
}

/** Identities that can have tokens, and the current generation of their tokens. */
export class Bearers {
  readonly #database: Database
  readonly #clock: Clock

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** Undefined for a deleted or unknown identity. */
  find(id: string, reader: Reader = this.#database): Promise<Bearer | undefined> {
    return reader.get<Bearer>(
      sql`SELECT id, account_id, email, status, coalesce(generation, 0) AS generation FROM identities
        LEFT JOIN token_generations ON token_generations.identity_id = identities.id WHERE id = ${id} AND ${isLiving(iso(this.#clock.now()))}`,
    )
  }

  /** The current verified facts about a bearer. */
  async proofs({ id, email }: Bearer, reader: Reader): Promise<Proofs> {
    const domain = email.slice(email.lastIndexOf('@') + 1)
    const verified = await reader.get(sql`SELECT 1 FROM domains WHERE name = ${domain} AND receives = 1 AND status = 'verified'`)
    const number = await reader.get(
      sql`SELECT 1 FROM phone_numbers WHERE identity_id = ${id} AND status = 'active' AND provider <> 'loopback'`,
    )
    return { email_domain_verified: verified !== undefined, phone_number_verified: number !== undefined }
  }

  /** Revokes every token that the identity has had so far. */
  async revoke(tx: Transaction, id: string): Promise<void> {
    await tx.run(
      sql`INSERT INTO token_generations (identity_id, generation) VALUES (${id}, 1)
        ON CONFLICT (identity_id) DO UPDATE SET generation = token_generations.generation + 1`,
    )
  }

  /** Deletes the stored data of a deleted identity. */
  async forget(tx: Transaction, id: string): Promise<void> {
    await tx.run(sql`DELETE FROM token_generations WHERE identity_id = ${id}`)
  }
}
