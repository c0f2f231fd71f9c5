import type { SealedColumn } from '../../core/seal/seal.ts'
import { conflict } from '../../core/fault.ts'
import { type Database, type Reader, sql, type Transaction } from '../../store/database.ts'

/** The login of an account. */
export interface LoginRow {
  account_id: string
  email: string
  /** A PHC string. */
  password: string
  /** Encrypted; null without a second factor. */
  second_factor: Uint8Array | null
  /** Null while the second factor is not confirmed and therefore not required. */
  confirmed_at: string | null
  /** The time step of the last accepted code. */
  last_step: number
  changed_at: string
}

export const sealedFactors: SealedColumn = {
  table: 'logins',
  column: 'second_factor',
  lost: 'UPDATE logins SET second_factor = NULL, confirmed_at = NULL, last_step = 0; DELETE FROM recovery_codes',
  context: ({ account_id }) => factorOf(String(account_id)),
}

/** The encryption context that binds a second factor to its account. */
export function factorOf(accountId: string): string {
  return `second factor ${accountId}`
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

  of(accountId: string, reader: Reader = this.#database): Promise<LoginRow | undefined> {
    return reader.get<LoginRow>(sql`SELECT * FROM logins WHERE account_id = ${accountId}`)
  }

  byEmail(email: string): Promise<LoginRow | undefined> {
    return this.#database.get<LoginRow>(sql`SELECT * FROM logins WHERE email_folded = ${folded(email)}`)
  }

  /** Throws Fault 409, code `email_taken`, when another account signs in with this address. */
  async write(tx: Transaction, row: Pick<LoginRow, 'account_id' | 'email' | 'password' | 'changed_at'>): Promise<void> {
    const { account_id, email, password, changed_at } = row
    await this.requireFree(email, account_id, tx)
    await tx.run(
      sql`INSERT INTO logins (account_id, email, email_folded, password, changed_at)
        VALUES (${account_id}, ${email}, ${folded(email)}, ${password}, ${changed_at})
        ON CONFLICT (account_id) DO UPDATE SET email = ${email}, email_folded = ${folded(email)}, password = ${password},
        changed_at = ${changed_at}`,
    )
  }

  /** Throws as `write` does. */
  async requireFree(email: string, accountId: string, reader: Reader = this.#database): Promise<void> {
    const taken = await reader.get(sql`SELECT 1 FROM logins WHERE email_folded = ${folded(email)} AND account_id <> ${accountId}`)
    if (taken)
      throw conflict('Another account of this box signs in with that e-mail address.', { code: 'email_taken', param: 'email' })
  }

  /** Stores the same password as a hash with a higher cost. */
  async rehash(tx: Transaction, accountId: string, password: string): Promise<void> {
    await tx.run(sql`UPDATE logins SET password = ${password} WHERE account_id = ${accountId}`)
  }
}
