import type { Plan } from '../accounts/plan.ts'
import { conflict, type Fault } from '../core/fault.ts'
import type { IdentityRow } from '../identities/identities.ts'
import type { Storage } from '../identities/model.ts'
import type { Trash } from '../ops/retention/trash.ts'
import type { Database, Reader } from '../store/database.ts'
import { Refusal } from '../smtp/replies.ts'

export interface QuotaSettings {
  /** The quota of one identity in bytes; the operator's mailbox has ten times as much; 0 for no limit. */
  quota: number
  /** The address of the operator's mailbox. */
  operator: string
}

interface Deps {
  database: Database
  plan: Plan
  trash: Trash
}

/** A recipient's mailbox with the limits of it and of its account. */
export interface Recipient {
  owner: IdentityRow
  recipient: string
  /** Storage quota of the identity in bytes; Infinity without one. */
  limit: number
  /** Bytes that the account may still store. */
  available: number
}

type Owner = Pick<IdentityRow, 'id' | 'account_id' | 'email' | 'stored_bytes'>

/** Storage quotas of mailboxes and accounts. The trash is purged to free space. */
export class Quota {
  readonly #deps: Deps
  #settings: QuotaSettings

  constructor(deps: Deps, settings: QuotaSettings) {
    this.#deps = deps
    this.#settings = settings
  }

  reload(settings: QuotaSettings): void {
    this.#settings = settings
  }

  /** The storage usage and quota of an identity. */
  readonly storageOf = ({
    email,
    stored_bytes,
    media_bytes,
    trash_bytes,
  }: Pick<IdentityRow, 'email' | 'stored_bytes' | 'media_bytes' | 'trash_bytes'>): Storage => {
    const limit = this.#limitOf(email)
    return { used: stored_bytes, limit: limit === Infinity ? null : limit, media: media_bytes, trash: trash_bytes }
  }

  /** The limits of a mailbox and its account in bytes. The operator's mailbox is not limited by its account, except for what it sends. */
  async limitsOf(owner: Owner, reader: Reader): Promise<Pick<Recipient, 'limit' | 'available'>> {
    return { limit: this.#limitOf(owner.email), available: await this.#availableBytes(owner, reader) }
  }

  /** Throws a Refusal when so many bytes do not fit into a mailbox or account even if the trash were purged. Purges nothing. */
  async require(owner: Owner, bytes: number): Promise<void> {
    const { identity, account } = await this.#missing(owner, bytes)
    if (identity > 0 && (await this.#deps.trash.octetsOf({ identity_id: owner.id })) < identity) throw mailboxFull()
    if (account > 0 && (await this.#deps.trash.octetsOf({ account_id: owner.account_id })) < account) throw accountFull()
  }

  /** Throws Fault conflict, code `mailbox_full`, when a message of so many bytes that an identity sends does not fit into its mailbox. */
  requireSent({ email, stored_bytes }: Owner, bytes: number): void {
    const limit = this.#limitOf(email)
    if (stored_bytes + bytes > limit) throw sentMailFull(email, stored_bytes, limit)
  }

  /** Purges the trash to free so many bytes, as far as possible, for a message received, or sent. */
  async freeSpace(owner: Owner, bytes: number, direction: 'received' | 'sent' = 'received'): Promise<void> {
    const { trash } = this.#deps
    const { identity, account } = await this.#missing(owner, bytes, direction === 'sent')
    if (identity > 0) await trash.freeBytes({ identity_id: owner.id }, identity)
    if (account > 0) await trash.freeBytes({ account_id: owner.account_id }, account - Math.max(0, identity))
  }

  /** Bytes that are missing; none if not positive. */
  async #missing(owner: Owner, bytes: number, sent = false): Promise<{ identity: number; account: number }> {
    return {
      identity: owner.stored_bytes + bytes - this.#limitOf(owner.email),
      account: bytes - (await this.#availableBytes(owner, this.#deps.database, sent)),
    }
  }

  /** The quota of a mailbox. The operator's is larger, as mail to postmaster must be accepted, but not without limit. */
  #limitOf(email: string): number {
    const { quota, operator } = this.#settings
    if (quota === 0) return Infinity
    return email === operator ? 10 * quota : quota
  }

  async #availableBytes({ email, account_id }: Owner, reader: Reader, sent = false): Promise<number> {
    return email === this.#settings.operator && !sent ? Infinity : this.#deps.plan.available(reader, account_id)
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

function sentMailFull(email: string, stored: number, limit: number): Fault {
  const why = `stores ${stored} bytes of mail, and this message would exceed ${limit} (mail.quota)`
  return conflict(`${email} ${why}; delete some of its e-mails first.`, { code: 'mailbox_full' })
}
