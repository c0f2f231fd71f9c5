import { raw, type Reader, type Sql, sql, type Transaction } from './database.ts'

/**
 * Sealed values in a table of slots. A row never changes its size or place, and is never removed, so that no copy of a value is left behind in the file: it is
 * overwritten with zeros, and used again for a value of its size.
 */
export class Slots {
  readonly #table: Sql

  constructor(table: string) {
    this.#table = raw(table)
  }

  /** A slot of so many bytes, for `write`. */
  async take(tx: Transaction, octets: number): Promise<number> {
    const free = await tx.get<{ slot: number }>(
      sql`SELECT slot FROM ${this.#table} WHERE free = 1 AND length(secret) = ${octets} LIMIT 1`,
    )
    if (free) return free.slot
    const made = await tx.get<{ slot: number }>(
      sql`INSERT INTO ${this.#table} (free, secret) VALUES (1, ${new Uint8Array(octets)}) RETURNING slot`,
    )
    return made!.slot
  }

  async write(tx: Transaction, slot: number, secret: Uint8Array): Promise<void> {
    await tx.run(sql`UPDATE ${this.#table} SET free = 0, secret = ${secret} WHERE slot = ${slot}`)
  }

  async read(reader: Reader, slot: number): Promise<Uint8Array> {
    const row = await reader.get<{ secret: Uint8Array }>(sql`SELECT secret FROM ${this.#table} WHERE slot = ${slot}`)
    return row!.secret
  }

  async erase(tx: Transaction, slot: number): Promise<void> {
    const { length } = await this.read(tx, slot)
    await tx.run(sql`UPDATE ${this.#table} SET free = 1, secret = ${new Uint8Array(length)} WHERE slot = ${slot}`)
  }
}
