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

/** Somebody's mailbox, and how much more it and its account may keep. */
export interface Recipient {
  owner: IdentityRow
  recipient: string
  /** Octets the owner may keep. */
  limit: number
  /** Octets the account may keep beyond what it does. */
  room: number
}

type Owner = Pick<IdentityRow, 'id' | 'account_id' | 'stored_bytes'>

/** How much mail fits into mailboxes and accounts; what was deleted makes way for it. */
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

  /** Octets one identity may keep from now on, the operator's own ten times as many; 0 is no limit. */
  reload(quota: number): void {
    this.#quota = quota
  }

  /** Octets that a mailbox and its account may keep. */
  async of(owner: IdentityRow, operator: boolean, reader: Reader): Promise<Pick<Recipient, 'limit' | 'room'>> {
    return { limit: this.#limitOf(operator), room: await this.#roomOf(owner, operator, reader) }
  }

  /** Throws the Refusal of a mailbox, or account, in which so many octets have no place even if the trash made way. Purges nothing. */
  async require(owner: Owner, operator: boolean, octets: number): Promise<void> {
    const { identity, account } = await this.#lacking(owner, operator, octets)
    if (identity > 0 && (await this.#trash.octetsOf({ identity_id: owner.id })) < identity) throw mailboxFull()
    if (account > 0 && (await this.#trash.octetsOf({ account_id: owner.account_id })) < account) throw accountFull()
  }

  /** Has the trash make way for so many octets, as far as it can. */
  async make(owner: Owner, operator: boolean, octets: number): Promise<void> {
    const { identity, account } = await this.#lacking(owner, operator, octets)
    if (identity > 0) await this.#trash.freeBytes({ identity_id: owner.id }, identity)
    if (account > 0) await this.#trash.freeBytes({ account_id: owner.account_id }, account - Math.max(0, identity))
  }

  /** Octets that are missing; none when it is not positive. */
  async #lacking(owner: Owner, operator: boolean, octets: number): Promise<{ identity: number; account: number }> {
    return {
      identity: owner.stored_bytes + octets - this.#limitOf(operator),
      account: octets - (await this.#roomOf(owner, operator, this.#database)),
    }
  }

  /** Nobody asks strangers to write to the operator, and they must be able to: yet not without end. */
  #limitOf(operator: boolean): number {
    if (this.#quota === 0) return Infinity
    return operator ? 10 * this.#quota : this.#quota
  }

  /** Octets that the account may yet keep; of the operator's, a mailbox for strangers, that is not asked. */
  async #roomOf({ account_id }: Owner, operator: boolean, reader: Reader): Promise<number> {
    return operator ? Infinity : this.#plan.available(reader, account_id)
  }
}

/**
 * One reply must do for all recipients. A mailbox that is full puts the message off for all: nothing is lost, and when the sender comes
 * again RCPT refuses that mailbox alone. One with some room, but too little, is overrun by this message if another has room for it: RCPT
 * may let it pass time and again, as not every sender declares a size, and the others would never have their copy. So with an account.
 */
export function requireQuota(owners: Recipient[], size: number): void {
  const [identities, accounts] = [new Map<string, number>(), new Map<string, number>()]
  for (const { owner } of owners) {
    identities.set(owner.id, (identities.get(owner.id) ?? owner.stored_bytes) + size)
    accounts.set(owner.account_id, (accounts.get(owner.account_id) ?? 0) + size)
  }
  if (owners.some(({ owner, limit }) => owner.stored_bytes >= limit)) throw mailboxFull()
  if (owners.some(({ room }) => room <= 0)) throw accountFull()
  const roomy = owners.filter(({ owner, limit }) => identities.get(owner.id)! <= limit)
  if (roomy.length === 0) throw mailboxFull()
  if (!roomy.some(({ owner, room }) => accounts.get(owner.account_id)! <= room)) throw accountFull()
}

/** Whether it says that a mailbox or account is full. */
export function isFull(error: unknown): boolean {
  return error instanceof Refusal && error.code === 452
}

function mailboxFull(): Refusal {
  return new Refusal(452, '4.2.2', 'This mailbox is full')
}

function accountFull(): Refusal {
  return new Refusal(452, '4.2.2', 'The account of this mailbox is full')
}
