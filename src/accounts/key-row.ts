import type { ApiKey } from './model.ts'
import type { SecretEnds } from './origins.ts'

/** A row of `api_keys`. */
export interface KeyRow extends Omit<ApiKey, 'scopes' | 'rate_limit'>, SecretEnds {
  seq: number
  account_id: string
  scopes: string
  /** Null means the rate of the settings. */
  rate_limit: number | null
  hash: string
  previous_hash: string | null
}
