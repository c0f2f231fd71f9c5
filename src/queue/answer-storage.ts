import type { StorageBudget } from '../events/log.ts'
import { sql, type Sql, type Transaction } from '../store/database.ts'
import type { ClaimedDelivery } from './in-flight.ts'

/** What counts the storage of an account. */
export type StorageCounter = Pick<StorageBudget, 'add'>

/** Bytes of each answer that do not count: what servers usually say. */
const uncounted = 256

/** Counts the stored answers of other servers, which callers may choose, as storage of their account. */
export class AnswerStorage {
  readonly #storage: StorageCounter | undefined

  /** Without `storage` nothing is counted. */
  constructor(storage: StorageCounter | undefined) {
    this.#storage = storage
  }

  /** Counts an answer, unless its delivery was removed meanwhile. */
  async add(tx: Transaction, { seq, account_id }: Pick<ClaimedDelivery, 'seq' | 'account_id'>, answer: string): Promise<void> {
    const octets = Buffer.byteLength(answer) - uncounted
    if (octets <= 0 || account_id === '') return
    const { changes } = await tx.run(sql`UPDATE deliveries_queue SET octets = octets + ${octets} WHERE seq = ${seq}`)
    if (changes === 1) await this.#storage?.add(tx, account_id, 'storage_bytes', octets)
  }

  /** Releases the storage of removed deliveries. */
  async release(tx: Transaction, removed: readonly { account_id: string; octets: number }[]): Promise<void> {
    for (const [account, rows] of Map.groupBy(removed, (row) => row.account_id)) {
      const octets = rows.reduce((sum, row) => sum + row.octets, 0)
      if (octets > 0) await this.#storage?.add(tx, account, 'storage_bytes', -octets)
    }
  }

  /** Removes the attempts of a delivery up to a number, and releases their storage. */
  async removeAttempts(tx: Transaction, { seq, account_id }: { seq: number; account_id: string }, last: number): Promise<void> {
    if (last < 1) return
    const removed = await tx.all<{ octets: number | null }>(
      sql`SELECT octet_length(first_answer) AS octets FROM deliveries_queue WHERE seq = ${seq}
        UNION ALL SELECT octet_length(answer) FROM delivery_attempts WHERE delivery_seq = ${seq} AND number <= ${last}`,
    )
    await tx.run(
      sql`UPDATE deliveries_queue SET first_started_at = NULL, first_ended_at = NULL, first_outcome = NULL, first_answer = NULL WHERE seq = ${seq}`,
    )
    await tx.run(sql`DELETE FROM delivery_attempts WHERE delivery_seq = ${seq} AND number <= ${last}`)
    const sum = counted(removed)
    if (sum === 0) return
    // answers from before they counted were not added
    const row = await tx.get<{ octets: number }>(sql`SELECT octets FROM deliveries_queue WHERE seq = ${seq}`)
    const released = Math.min(sum, row!.octets)
    await tx.run(sql`UPDATE deliveries_queue SET octets = octets - ${released} WHERE seq = ${seq}`)
    if (released > 0) await this.#storage?.add(tx, account_id, 'storage_bytes', -released)
  }

  /** Removes the body of the stored answers of the deliveries that the condition selects, and releases its storage. */
  async removeBodies(tx: Transaction, which: Sql): Promise<void> {
    const rows = await tx.all<{ seq: number; account_id: string; octets: number }>(
      sql`SELECT seq, account_id, octets FROM deliveries_queue WHERE ${which}`,
    )
    for (const { seq, account_id, octets } of rows) {
      await tx.run(
        sql`UPDATE deliveries_queue SET first_answer = json_set(first_answer, '$.body', NULL) WHERE seq = ${seq} AND json_valid(first_answer)`,
      )
      await tx.run(
        sql`UPDATE delivery_attempts SET answer = json_set(answer, '$.body', NULL) WHERE delivery_seq = ${seq} AND json_valid(answer)`,
      )
      if (octets === 0) continue
      const rest = await tx.all<{ octets: number | null }>(
        sql`SELECT octet_length(first_answer) AS octets FROM deliveries_queue WHERE seq = ${seq}
          UNION ALL SELECT octet_length(answer) FROM delivery_attempts WHERE delivery_seq = ${seq}`,
      )
      const released = Math.max(0, octets - counted(rest))
      await tx.run(sql`UPDATE deliveries_queue SET octets = octets - ${released} WHERE seq = ${seq}`)
      if (released > 0) await this.#storage?.add(tx, account_id, 'storage_bytes', -released)
    }
  }
}

/** The bytes that count of answers of these lengths. */
function counted(answers: readonly { octets: number | null }[]): number {
  return answers.reduce((sum, { octets }) => sum + Math.max(0, (octets ?? 0) - uncounted), 0)
}
