import type { SealedColumn } from '../../core/seal/seal.ts'
import { conflict } from '../../core/fault.ts'
import { newId } from '../../core/ids.ts'
import type { Role } from '../../core/scopes.ts'
import { type Database, type Reader, sql, type Transaction } from '../../store/database.ts'

/** A person of an account, and how they sign in. */
export interface LoginRow {
  seq: number
  id: string
  account_id: string
  role: Role
  email: string
  /** A PHC string. */
  password: string
  /** Encrypted; null without a second factor. */
  second_factor: Uint8Array | null
  /** Null while the second factor is not confirmed and therefore not required. */
  confirmed_at: string | null
  /** The time step of the last accepted code. */
  last_step: number
  created_at: string
  changed_at: string
}

/** What a person signs in with; `at` is the time of the change. */
interface Credentials {
  email: string
  /** A PHC string. */
  password: string
  at: string
}

export const sealedFactors: SealedColumn = {
  table: 'logins',
  column: 'second_factor',
  key: ['seq'],
  lost: 'UPDATE logins SET second_factor = NULL, confirmed_at = NULL, last_step = 0; DELETE FROM recovery_codes',
  context: ({ id }) => factorOf(String(id)),
}

/** The encryption context that binds a second factor to its person, as it was written when each account had one person (migration 0054). */
export function factorOf(personId: string): string {
  return `second factor ${personId.replace(/^person_/, 'acct_')}`
}

/** Spellings that differ only in case are one address, though a mail server may distinguish them. */
export function folded(email: string): string {
  return email.normalize('NFC').toLowerCase()
}

/** The rows of `logins`. */
export class Logins {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  of(id: string, reader: Reader = this.#database): Promise<LoginRow | undefined> {
    return reader.get<LoginRow>(sql`SELECT * FROM logins WHERE id = ${id}`)
  }

  /** The first owner of an account; undefined while nobody has set a password. */
  ofOwner(accountId: string, reader: Reader = this.#database): Promise<LoginRow | undefined> {
    return reader.get<LoginRow>(sql`SELECT * FROM logins WHERE account_id = ${accountId} AND role = 'owner' ORDER BY seq LIMIT 1`)
  }

  byEmail(email: string): Promise<LoginRow | undefined> {
    return this.#database.get<LoginRow>(sql`SELECT * FROM logins WHERE email_folded = ${folded(email)}`)
  }

  /** A new person. Throws Fault 409, code `email_taken`, when another one signs in with this address. */
  async insert(tx: Transaction, input: Credentials & Pick<LoginRow, 'account_id' | 'role'>): Promise<LoginRow> {
    const { account_id, role, email, password, at } = input
    await this.requireFree(email, '', tx)
    const row = await tx.get<LoginRow>(
      sql`INSERT INTO logins (id, account_id, role, email, email_folded, password, created_at, changed_at)
        VALUES (${newId('person')}, ${account_id}, ${role}, ${email}, ${folded(email)}, ${password}, ${at}, ${at}) RETURNING *`,
    )
    return row!
  }

  /** Throws as `insert` does. With another address, the links of digests that were mailed to the former one decide nothing more, and what is held is mailed anew. */
  async change(tx: Transaction, id: string, { email, password, at }: Credentials): Promise<LoginRow> {
    await this.requireFree(email, id, tx)
    if (!(await tx.get(sql`SELECT 1 FROM logins WHERE id = ${id} AND email_folded = ${folded(email)}`))) {
      await tx.run(sql`DELETE FROM hold_links WHERE person_id = ${id}`)
      await tx.run(sql`DELETE FROM hold_digests WHERE person_id = ${id}`)
    }
    const row = await tx.get<LoginRow>(
      sql`UPDATE logins SET email = ${email}, email_folded = ${folded(email)}, password = ${password}, changed_at = ${at}
        WHERE id = ${id} RETURNING *`,
    )
    return row!
  }

  /** Throws as `insert` does; `id` is the person who may have the address. */
  async requireFree(email: string, id: string, reader: Reader = this.#database): Promise<void> {
    const taken = await reader.get(sql`SELECT 1 FROM logins WHERE email_folded = ${folded(email)} AND id <> ${id}`)
    if (taken) {
      throw conflict('Another person of this box signs in with that e-mail address.', { code: 'email_taken', param: 'email' })
    }
  }

  /** Stores the same password as a hash with a higher cost. */
  async rehash(tx: Transaction, id: string, password: string): Promise<void> {
    await tx.run(sql`UPDATE logins SET password = ${password} WHERE id = ${id}`)
  }
}
