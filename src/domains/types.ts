import type { KeyObject } from 'node:crypto'
import type { Domain } from './model.ts'

/** An active signing key of a domain. */
export interface DkimKey {
  selector: string
  algorithm: 'rsa-sha256' | 'ed25519-sha256'
  private_key: KeyObject
}

export interface DomainRow extends Omit<Domain, 'default' | 'dns_records'> {
  seq: number
  account_id: string
  is_default: number
  receives: number
  /** JSON of what the DNS answered about each record (`RecordFindings`). */
  findings: string
  /** Checks since its status changed. */
  checks: number
  failing_since: string | null
  next_check_at: string | null
}

/** The public part of a key; `public_text` is the value of `p=`. */
export interface PublicKey {
  selector: string
  algorithm: DkimKey['algorithm']
  public_text: string
  state: 'active' | 'spare' | 'retired'
}
