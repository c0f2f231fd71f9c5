import type { Seal, SealedColumn } from '../core/seal/seal.ts'
import type { Reader, Transaction } from '../store/database.ts'
import { Slots } from '../store/slots.ts'
import type { TotpEntry } from './model.ts'

/** An entry, without its secret. */
export interface TotpRow extends TotpEntry {
  seq: number
  account_id: string
  secret_slot: number
}

export const sealedSecrets: SealedColumn = {
  table: 'totp_secrets',
  column: 'secret',
  key: ['slot'],
  from: 'totp_secrets JOIN totp_entries ON secret_slot = slot',
  lost: 'DELETE FROM totp_secrets; DELETE FROM totp_entries',
  context: ({ id, identity_id }) => contextOf(String(id), String(identity_id)),
}

/** The encryption context that binds a secret to its entry. */
export function contextOf(id: string, identityId: string): string {
  return `totp ${id} ${identityId}`
}

/** The encrypted secrets of entries, in slots. */
export class Secrets {
  readonly #slots = new Slots('totp_secrets')
  readonly #seal: Seal

  constructor(seal: Seal) {
    this.#seal = seal
  }

  /** Returns the slot. */
  async save(tx: Transaction, { id, identity_id }: Pick<TotpEntry, 'id' | 'identity_id'>, secret: Buffer): Promise<number> {
    const sealed = this.#seal.seal(secret, contextOf(id, identity_id))
    const slot = await this.#slots.take(tx, sealed.length)
    await this.#slots.write(tx, slot, sealed)
    return slot
  }

  async read(reader: Reader, { secret_slot, id, identity_id }: TotpRow): Promise<Buffer> {
    return this.#seal.open(await this.#slots.read(reader, secret_slot), contextOf(id, identity_id))
  }

  erase(tx: Transaction, { secret_slot }: Pick<TotpRow, 'secret_slot'>): Promise<void> {
    return this.#slots.erase(tx, secret_slot)
  }
}
