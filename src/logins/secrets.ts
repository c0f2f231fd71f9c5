import type { Seal, SealedColumn } from '../core/seal/seal.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'

export const sealedSecrets: SealedColumn = {
  table: 'login_secrets',
  column: 'secret',
  key: ['slot'],
  from: 'stored_logins JOIN login_secrets ON slot IN (username_slot, secrets_slot)',
  lost: `UPDATE plan_use SET used = max(0, used - (SELECT coalesce(sum(octets), 0) FROM stored_logins WHERE account_id = plan_use.account_id))
    WHERE what = 'storage_bytes'; DELETE FROM login_secrets; DELETE FROM stored_logins`,
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
export interface Slot {
  slot: number
  octets: number
}

/** Sealed JSON in slots, each of which can be overwritten in place. */
export class Secrets {
  readonly #seal: Seal

  constructor(seal: Seal) {
    this.#seal = seal
  }

  async save(tx: Transaction, identityId: string, value: unknown): Promise<Slot> {
    const text = padded(JSON.stringify(value))
    const octets = text.length + sealing
    const slot = await this.#take(tx, octets)
    const sealed = this.#seal.seal(text, contextOf(slot, identityId))
    await tx.run(sql`UPDATE login_secrets SET free = 0, secret = ${sealed} WHERE slot = ${slot}`)
    return { slot, octets }
  }

  async read(reader: Reader, identityId: string, slot: number): Promise<unknown> {
    const row = await reader.get<{ secret: Uint8Array }>(sql`SELECT secret FROM login_secrets WHERE slot = ${slot}`)
    return this.open(row!.secret, identityId, slot)
  }

  open(sealed: Uint8Array, identityId: string, slot: number): unknown {
    return JSON.parse(this.#seal.open(sealed, contextOf(slot, identityId)).toString())
  }

  async erase(tx: Transaction, slot: number): Promise<void> {
    const row = await tx.get<Pick<Slot, 'octets'>>(sql`SELECT length(secret) AS octets FROM login_secrets WHERE slot = ${slot}`)
    await tx.run(sql`UPDATE login_secrets SET free = 1, secret = ${new Uint8Array(row!.octets)} WHERE slot = ${slot}`)
  }

  async #take(tx: Transaction, octets: number): Promise<number> {
    const used = await tx.get<Pick<Slot, 'slot'>>(
      sql`SELECT slot FROM login_secrets WHERE free = 1 AND length(secret) = ${octets} LIMIT 1`,
    )
    if (used) return used.slot
    const made = await tx.get<Pick<Slot, 'slot'>>(
      sql`INSERT INTO login_secrets (free, secret) VALUES (1, ${new Uint8Array(octets)}) RETURNING slot`,
    )
    return made!.slot
  }
}

/** With spaces behind it, which JSON permits. */
function padded(json: string): Buffer {
  const bytes = Buffer.from(json)
  return Buffer.concat([bytes, Buffer.alloc(Math.max(smallest, 2 ** Math.ceil(Math.log2(bytes.length))) - bytes.length, ' ')])
}
