import { type Database, sql, type Transaction } from '../store/database.ts'

interface EventRow {
  id: string
  type: string
  account_id: string
  identity_id: string | null
  created_at: string
  data: string
  resource_id: string | null
  blob_id: number | null
  annotation: string | null
  octets: number
}

/** Inserts an event. Returns its position in the log; a negative number where it gets one after the commit. */
export async function insertEvent(tx: Transaction, database: Pick<Database, 'placesEvents'>, row: EventRow): Promise<number> {
  const { id, type, account_id, identity_id, created_at, data, resource_id, blob_id, annotation, octets } = row
  const inserted = await tx.get<{ seq: number }>(
    database.placesEvents
      ? sql`INSERT INTO events (seq, id, type, account_id, identity_id, created_at, data, resource_id, blob_id, remark, octets)
          VALUES (-nextval(pg_get_serial_sequence('events', 'seq')), ${id}, ${type}, ${account_id}, ${identity_id}, ${created_at}, ${data},
          ${resource_id}, ${blob_id}, ${annotation}, ${octets}) RETURNING seq`
      : sql`INSERT INTO events (id, type, account_id, identity_id, created_at, data, resource_id, blob_id, remark, octets)
          VALUES (${id}, ${type}, ${account_id}, ${identity_id}, ${created_at}, ${data}, ${resource_id}, ${blob_id}, ${annotation}, ${octets})
          RETURNING seq`,
  )
  return inserted!.seq
}
