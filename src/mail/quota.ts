import type { Plan } from '../accounts/plan.ts'
import type { IdentityRow } from '../identities/identities.ts'
import type { Trash } from '../ops/retention/trash.ts'
import type { Database, Reader } from '../store/database.ts'
import { Refusal } from '../smtp/replies.ts'

interface Deps {
  database: Database
  plan: Plan
  trash: Trash
}

/** A recipient's mailbox with the limits of it and of its account. */
export interface Recipient {
  owner: IdentityRow
  recipient: string
  /** Storage quota of the identity in bytes. */
  limit: number
  /** Bytes that the account may still store. */
  available: number
}

type Owner = Pick<IdentityRow, 'id' | 'account_id' | 'stored_bytes'>

/** Storage quotas of mailboxes and accounts. The trash is purged to free space. */
export class Quota {
  readonly #database: Database
  readonly #plan: Plan
  readonly #trash: Trash
  #quota: number

  constructor({ database, plan, trash }: Deps, quota: number) {
    this.#database = database
    this.#plan = plan
    this.#trash = trash
    this.#quota = quota
  }

  /** Sets the quota of one identity in bytes; the operator's mailbox has ten times as much; 0 for no limit. */
  reload(quota: number): void {
    this.#quota = quota
  }

  /** The limits of a mailbox and its account in bytes. */
  async limitsOf(owner: IdentityRow, operator: boolean, reader: Reader): Promise<Pick<Recipient, 'limit' | 'available'>> {
    return { limit: this.#limitOf(operator), available: await this.#availableBytes(owner, operator, reader) }
  }

  /** Throws a Refusal when so many bytes do not fit into a mailbox or account even if the trash were purged. Purges nothing. */
  async require(owner: Owner, operator: boolean, bytes: number): Promise<void> {
    const { identity, account } = await this.#missing(owner, operator, bytes)
    if (identity > 0 && (await this.#trash.octetsOf({ identity_id: owner.id })) < identity) throw mailboxFull()
    if (account > 0 && (await this.#trash.octetsOf({ account_id: owner.account_id })) < account) throw accountFull()
  }

  /** Purges the trash to free so many bytes, as far as possible. */
  async freeSpace(owner: Owner, operator: boolean, bytes: number): Promise<void> {
    const { identity, account } = await this.#missing(owner, operator, bytes)
    if (identity > 0) await this.#trash.freeBytes({ identity_id: owner.id }, identity)
    if (account > 0) await this.#trash.freeBytes({ account_id: owner.account_id }, account - Math.max(0, identity))
  }

  /** Bytes that are missing; none if not positive. */
  async #missing(owner: Owner, operator: boolean, bytes: number): Promise<{ identity: number; account: number }> {
    return {
      identity: owner.stored_bytes + bytes - this.#limitOf(operator),
      account: bytes - (await this.#availableBytes(owner, operator, this.#database)),
    }
  }

  /** The quota of a mailbox. The operator's is larger, as mail to postmaster must be accepted, but not without limit. */
  #limitOf(operator: boolean): number {
    if (this.#quota === 0) return Infinity
    return operator ? 10 * this.#quota : this.#quota
  }

  /** Bytes that the account may still store. The operator's mailbox is not limited by its account. */
  async #availableBytes({ account_id }: Owner, operator: boolean, reader: Reader): Promise<number> {
    return operator ? Infinity : this.#plan.available(reader, account_id)
  }
}

/**
 * Checks the limits of all recipients, since one reply must do for all. A full mailbox defers the message for all: when the sender tries
 * again, RCPT refuses that mailbox alone. A mailbox with too little space left is exceeded by this message if it fits into another one:
 * RCPT may accept it each time, as not every sender declares a size, and the others would never get their copy. Likewise for accounts.
 */
export function requireQuota(owners: Recipient[], size: number): void {
  const [identities, accounts] = [new Map<string, number>(), new Map<string, number>()]
  for (const { owner } of owners) {
    identities.set(owner.id, (identities.get(owner.id) ?? owner.stored_bytes) + size)
    accounts.set(owner.account_id, (accounts.get(owner.account_id) ?? 0) + size)
  }
  if (owners.some(({ owner, limit }) => owner.stored_bytes >= limit)) throw mailboxFull()
  if (owners.some(({ available }) => available <= 0)) throw accountFull()
  const fitting = owners.filter(({ owner, limit }) => identities.get(owner.id)! <= limit)
  if (fitting.length === 0) throw mailboxFull()
  if (!fitting.some(({ owner, available }) => accounts.get(owner.account_id)! <= available)) throw accountFull()
}

/** True if an error means that a mailbox or account is full. */
export function isFull(error: unknown): boolean {
  return error instanceof Refusal && error.code === 452
}

function mailboxFull(): Refusal {
  return new Refusal(452, '4.2.2', 'This mailbox is full')
}

function accountFull(): Refusal {
  return new Refusal(452, '4.2.2', 'The account of this mailbox is full')
}
