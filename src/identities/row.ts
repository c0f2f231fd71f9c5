import type { Identity } from './model.ts'

/** A row of `identities`. */
export interface IdentityRow {
  seq: number
  id: string
  account_id: string
  name: string
  email: string
  phone_number: string | null
  date_of_birth: string
  status: 'active' | 'suspended' | 'deleted'
  metadata: string
  /** Octets of e-mail that are kept, and of text messages with what came with them. */
  stored_bytes: number
  media_bytes: number
  created_at: string
  updated_at: string
}

/** What lists show of an identity. */
export type Reduced = Pick<Identity, 'id' | 'name' | 'email' | 'phone_number' | 'status' | 'created_at'>

/** The identity as callers see it. */
export function shown(row: IdentityRow): Identity {
  const { date_of_birth, updated_at } = row
  return { ...reduced(row), date_of_birth, metadata: JSON.parse(row.metadata) as Identity['metadata'], updated_at }
}

/** The identity as lists show it. */
export function reduced(row: IdentityRow): Reduced {
  const { id, name, email, phone_number, created_at } = row
  return {
    id,
    name,
    email,
    ...(phone_number === null ? {} : { phone_number }),
    status: row.status as Identity['status'],
    created_at,
  }
}
