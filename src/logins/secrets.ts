import type { Seal, SealedColumn } from '../core/seal/seal.ts'
import type { Reader, Transaction } from '../store/database.ts'
import { Slots } from '../store/slots.ts'

export const sealedSecrets: SealedColumn = {
  table: 'login_secrets',
  column: 'secret',
  key: ['slot'],
  from: 'stored_logins JOIN login_secrets ON slot IN (username_slot, secrets_slot)',
  lost: `INSERT INTO plan_use (account_id, what, period, used) SELECT account_id, 'storage_bytes', '', -sum(octets) FROM stored_logins WHERE true
    GROUP BY account_id ON CONFLICT (account_id, what, period, shard) DO UPDATE SET used = plan_use.used + excluded.used; DELETE FROM login_secrets; DELETE FROM stored_logins`,
  context: ({ slot, identity_id }) => contextOf(Number(slot), String(identity_id)),
}

/** What a nonce and a tag add to a sealed text. */
const sealing = 28

/** Bytes of the smallest text; others have a power of two, so that their length tells little, and slots can be used again. */
const smallest = 64

/** The encryption context that binds a text to its slot and its identity. */
function contextOf(slot: number, identityId: string): string {
  return `login ${slot} ${identityId}`
}

/** Where a text is, and its size there. */
interface Slot {
  slot: number
  octets: number
}

/** Sealed JSON in slots. */
export class Secrets {
  readonly #slots = new Slots('login_secrets')
  readonly #seal: Seal

  constructor(seal: Seal) {
    this.#seal = seal
  }

  async save(tx: Transaction, identityId: string, value: unknown): Promise<Slot> {
    const text = padded(JSON.stringify(value))
    const octets = text.length + sealing
    const slot = await this.#slots.take(tx, octets)
    await this.#slots.write(tx, slot, this.#seal.seal(text, contextOf(slot, identityId)))
    return { slot, octets }
  }

  async read(reader: Reader, identityId: string, slot: number): Promise<unknown> {
    return this.open(await this.#slots.read(reader, slot), identityId, slot)
  }

  open(sealed: Uint8Array, identityId: string, slot: number): unknown {
    return JSON.parse(this.#seal.open(sealed, contextOf(slot, identityId)).toString())
  }

  erase(tx: Transaction, slot: number): Promise<void> {
    return this.#slots.erase(tx, slot)
  }
}

/** With spaces behind it, which JSON permits. */
function padded(json: string): Buffer {
  const bytes = Buffer.from(json)
  return Buffer.concat([bytes, Buffer.alloc(Math.max(smallest, 2 ** Math.ceil(Math.log2(bytes.length))) - bytes.length, ' ')])
}
