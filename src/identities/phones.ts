import type { Transaction } from '../store/database.ts'

/** A number that is nobody's yet. */
export interface Acquired {
  number: string
  /** Makes it the identity's, in the transaction that makes the identity. */
  assign(tx: Transaction, identityId: string): Promise<void>
  giveBack(): Promise<void>
}

/** Where numbers come from. */
export interface PhoneNumbers {
  acquire(accountId: string, country: string | undefined): Promise<Acquired>
}
