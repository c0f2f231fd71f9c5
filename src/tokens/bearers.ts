import { type Database, type Reader, sql, type Transaction } from '../store/database.ts'

/** A living identity, as far as tokens speak of it. */
export interface Bearer {
  id: string
  account_id: string
  email: string
  status: 'active' | 'suspended'
  /** Tokens of any other generation are revoked. */
  generation: number
}

/** What of a bearer was proved, not only said. */
export interface Proofs {
  /** The DNS of the address's domain names this box. */
  email_domain_verified: boolean
  /** It has a number that a provider carries, not one of the loopback. */
  phone_number_verified: boolean
}

/** Those who can have tokens: the living identities, and which generation of tokens is theirs. */
export class Bearers {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Undefined for an identity that is deleted or never was. */
  find(id: string, reader: Reader = this.#database): Promise<Bearer | undefined> {
    return reader.get<Bearer>(
      sql`SELECT id, account_id, email, status, coalesce(generation, 0) AS generation FROM identities
        LEFT JOIN token_generations ON token_generations.identity_id = identities.id WHERE id = ${id} AND status <> 'deleted'`,
    )
  }

  /** What is proved of a bearer now. */
  async proofs({ id, email }: Bearer, reader: Reader): Promise<Proofs> {
    const domain = email.slice(email.lastIndexOf('@') + 1)
    const verified = await reader.get(sql`SELECT 1 FROM domains WHERE name = ${domain} AND status = 'verified'`)
    const number = await reader.get(
      sql`SELECT 1 FROM phone_numbers WHERE identity_id = ${id} AND status = 'active' AND provider <> 'loopback'`,
    )
    return { email_domain_verified: verified !== undefined, phone_number_verified: number !== undefined }
  }

  /** From here on every token that the identity had is revoked. */
  async revoke(tx: Transaction, id: string): Promise<void> {
    await tx.run(
      sql`INSERT INTO token_generations (identity_id, generation) VALUES (${id}, 1)
        ON CONFLICT (identity_id) DO UPDATE SET generation = token_generations.generation + 1`,
    )
  }

  /** What is kept for an identity that goes. */
  async forget(tx: Transaction, id: string): Promise<void> {
    await tx.run(sql`DELETE FROM token_generations WHERE identity_id = ${id}`)
  }
}
