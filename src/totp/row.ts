import type { TotpEntry } from './model.ts'

/** An entry, without its secret. */
export interface TotpRow extends TotpEntry {
  seq: number
  account_id: string
}

export function toTotpEntry(row: TotpRow): TotpEntry {
  const { id, identity_id, service_name, account_name, algorithm, digits, period, created_at } = row
  return { id, identity_id, service_name, account_name, algorithm, digits, period, created_at }
}
