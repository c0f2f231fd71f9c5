import type { Seal, SealedColumn } from '../core/seal/seal.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import type { TotpEntry } from './model.ts'

/** An entry, without its secret. */
export interface TotpRow extends TotpEntry {
  seq: number
  account_id: string
}

export const sealedSecrets: SealedColumn = {
  table: 'totp_secrets',
  column: 'secret',
  key: ['totp_seq'],
  from: 'totp_secrets JOIN totp_entries ON totp_entries.seq = totp_seq',
  lost: 'DELETE FROM totp_secrets; DELETE FROM totp_entries',
  context: ({ id, identity_id }) => contextOf(String(id), String(identity_id)),
}

/** The encryption context that binds a secret to its entry. */
export function contextOf(id: string, identityId: string): string {
  return `totp ${id} ${identityId}`
}

/** The encrypted secrets of entries, in a separate table where each can be overwritten. */
export class Secrets {
  readonly #seal: Seal

  constructor(seal: Seal) {
    this.#seal = seal
  }

  async save(tx: Transaction, { seq, id, identity_id }: TotpRow, secret: Buffer): Promise<void> {
    const sealed = this.#seal.seal(secret, contextOf(id, identity_id))
    await tx.run(sql`INSERT INTO totp_secrets (totp_seq, secret) VALUES (${seq}, ${sealed})`)
  }

  async read(reader: Reader, { seq, id, identity_id }: TotpRow): Promise<Buffer> {
    const row = await reader.get<{ secret: Uint8Array }>(sql`SELECT secret FROM totp_secrets WHERE totp_seq = ${seq}`)
    return this.#seal.open(row!.secret, contextOf(id, identity_id))
  }

  /** Writes zeros of the same length, so that the bytes are overwritten in place: a deleted row can leave copies behind. */
  async erase(tx: Transaction, { seq }: Pick<TotpRow, 'seq'>): Promise<void> {
    const row = await tx.get<{ octets: number }>(sql`SELECT length(secret) AS octets FROM totp_secrets WHERE totp_seq = ${seq}`)
    await tx.run(sql`UPDATE totp_secrets SET secret = ${new Uint8Array(row!.octets)} WHERE totp_seq = ${seq}`)
  }
}
