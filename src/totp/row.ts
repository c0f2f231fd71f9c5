import type { SealedColumn } from '../core/seal.ts'
import type { TotpEntry } from './model.ts'

export interface TotpRow extends TotpEntry {
  seq: number
  account_id: string
  secret: Uint8Array
}

export const sealedSecrets: SealedColumn = {
  table: 'totp_entries',
  column: 'secret',
  context: ({ id, identity_id }) => secretOf(String(id), String(identity_id)),
}

/** What binds a secret to its row. */
export function secretOf(id: string, identityId: string): string {
  return `totp ${id} ${identityId}`
}

export function shown(row: TotpRow): TotpEntry {
  const { id, identity_id, service_name, account_name, algorithm, digits, period, created_at } = row
  return { id, identity_id, service_name, account_name, algorithm, digits, period, created_at }
}
