import { type Reader, sql, type Transaction } from '../store/database.ts'

/** Encrypted data of a card; earlier versions stored some as the text that the client sent. */
type Secret = Uint8Array | string

/** Stores the secret of a card in a slot, and returns its number. One of the same size that is free is overwritten in place. */
export async function saveSecret(tx: Transaction, secret: Uint8Array): Promise<number> {
  const free = await tx.get<{ slot: number }>(
    sql`SELECT slot FROM card_slots_free WHERE octets = ${Buffer.byteLength(secret)} LIMIT 1`,
  )
  if (free) {
    await tx.run(sql`DELETE FROM card_slots_free WHERE slot = ${free.slot}`)
    await tx.run(sql`UPDATE card_secrets SET encrypted_data = ${secret} WHERE slot = ${free.slot}`)
    return free.slot
  }
  const made = await tx.get<{ slot: number }>(sql`INSERT INTO card_secrets (encrypted_data) VALUES (${secret}) RETURNING slot`)
  return made!.slot
}

export async function readSecret(reader: Reader, slot: number): Promise<Secret> {
  const row = await reader.get<{ encrypted_data: Secret }>(sql`SELECT encrypted_data FROM card_secrets WHERE slot = ${slot}`)
  return row!.encrypted_data
}

/** Overwrites the secret in this slot with zeros; the slot is free. */
export async function eraseSecret(tx: Transaction, slot: number): Promise<void> {
  const octets = Buffer.byteLength(await readSecret(tx, slot))
  await tx.run(sql`UPDATE card_secrets SET encrypted_data = ${Buffer.alloc(octets)} WHERE slot = ${slot}`)
  await tx.run(sql`INSERT INTO card_slots_free (slot, octets) VALUES (${slot}, ${octets})`)
}
