import type { PhoneNumber } from './model.ts'

export interface NumberRow {
  seq: number
  id: string
  account_id: string
  identity_id: string | null
  provider: string
  provider_id: string | null
  number: string | null
  country: string
  status: 'wanted' | 'active' | 'releasing' | 'released' | 'void'
  created_at: string
}

/** The kind of these deliveries in the queue; the lane is the provider. */
export const releaseKind = 'number-release'

export interface ReleaseLoad {
  phone_id: string
}

/** A number as events tell of it. */
export function told({ id, identity_id, number, country, provider }: NumberRow): PhoneNumber {
  return { id, identity_id, phone_number: number!, country, provider }
}
