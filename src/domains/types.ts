import type { KeyObject } from 'node:crypto'

/** An active signing key of a domain. */
export interface DkimKey {
  selector: string
  algorithm: 'rsa-sha256' | 'ed25519-sha256'
  private_key: KeyObject
}

/** A row of `domains`. */
export interface DomainRow {
  seq: number
  id: string
  account_id: string
  name: string
  is_default: number
  status: 'pending' | 'verified'
  receives: number
  findings: string
  checks: number
  failing_since: string | null
  verified_at: string | null
  last_checked_at: string | null
  next_check_at: string | null
  /** The identity that receives mail to unknown addresses. */
  catch_all: string | null
  created_at: string
}

/** The public part of a key; `public_text` is the value of `p=`. */
export interface PublicKey {
  selector: string
  algorithm: DkimKey['algorithm']
  public_text: string
  state: 'active' | 'spare' | 'retired'
  retired_at: string | null
}
