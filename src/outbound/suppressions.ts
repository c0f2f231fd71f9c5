import type { Plan } from '../accounts/plan.ts'
import { type Clock, iso } from '../core/clock.ts'
import { type Cursors, page } from '../store/page.ts'
import { conflict, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import type { Page, Paging } from '../core/shapes.ts'
import { type Database, join, type Reader, sql, type Transaction } from '../store/database.ts'
import type { Suppression } from './model.ts'

interface SuppressionRow extends Suppression {
  seq: number
  account_id: string
}

/** Bytes of a reason that do not count against the storage quota. */
const uncountedBytes = 256

/** Addresses that an account must not send to: they bounced, complained, or opted out. */
export class Suppressions {
  readonly #database: Database
  readonly #clock: Clock
  readonly #cursors: Cursors
  readonly #plan: Plan

  constructor(deps: { database: Database; clock: Clock; cursors: Cursors; plan: Plan }) {
    this.#database = deps.database
    this.#clock = deps.clock
    this.#cursors = deps.cursors
    this.#plan = deps.plan
  }

  async list(caller: Caller, paging: Paging): Promise<Page<Suppression>> {
    requireAccountWide(caller)
    return page<SuppressionRow, Suppression>(this.#database, this.#cursors, paging, {
      name: `suppressions ${caller.account_id}`,
      from: sql`suppressions`,
      account: caller.account_id,
      where: sql`account_id = ${caller.account_id}`,
      present: toSuppression,
    })
  }

  /**
   * `email` is an address in its canonical form. Throws Fault conflict when it is there already, and `plan_limit_reached` for a long reason without
   * quota.
   */
  async create(caller: Caller, { email, reason }: { email: string; reason: string }): Promise<Suppression> {
    requireAccountWide(caller)
    return this.#database.transaction(async (tx) => {
      await this.#plan.require(tx, caller.account_id, 'storage_bytes', countedBytes(reason))
      const row = await this.#insert(tx, caller.account_id, { email, reason, source: 'manual', email_id: null })
      if (!row) throw conflict(`${email} is suppressed already.`, { param: 'email' })
      return toSuppression(row)
    })
  }

  async remove(caller: Caller, id: string): Promise<{ id: string; deleted: true }> {
    requireAccountWide(caller)
    return this.#database.transaction(async (tx) => {
      const gone = await tx.get<{ octets: number }>(
        sql`DELETE FROM suppressions WHERE id = ${id} AND account_id = ${caller.account_id} RETURNING octets`,
      )
      if (!gone) throw notFound('suppression')
      if (gone.octets > 0) await this.#plan.add(tx, caller.account_id, 'storage_bytes', -gone.octets)
      return { id, deleted: true }
    })
  }

  /** Adds an address in the transaction of its cause; an existing entry keeps its first reason. */
  async add(tx: Transaction, accountId: string, entry: Omit<Suppression, 'id' | 'created_at'>): Promise<void> {
    await this.#insert(tx, accountId, entry)
  }

  /** Which of these addresses are suppressed. */
  async among(reader: Reader, accountId: string, addresses: string[]): Promise<string[]> {
    if (addresses.length === 0) return []
    const keys = new Map(addresses.map((address) => [suppressionKey(address), address]))
    const rows = await reader.all<{ email: string }>(
      sql`SELECT email FROM suppressions WHERE account_id = ${accountId} AND email IN (${join([...keys.keys()])})`,
    )
    return rows.map(({ email }) => keys.get(email) ?? email)
  }

  async #insert(
    tx: Transaction,
    accountId: string,
    { email, reason, source, email_id }: Omit<Suppression, 'id' | 'created_at'>,
  ): Promise<SuppressionRow | undefined> {
    const octets = countedBytes(reason)
    const row = await tx.get<SuppressionRow>(
      sql`INSERT INTO suppressions (id, account_id, email, reason, source, email_id, created_at, octets) VALUES (${newId('sup')}, ${accountId},
        ${suppressionKey(email)}, ${reason}, ${source}, ${email_id}, ${iso(this.#clock.now())}, ${octets}) ON CONFLICT DO NOTHING RETURNING *`,
    )
    if (row && octets > 0) await this.#plan.add(tx, accountId, 'storage_bytes', octets)
    return row
  }
}

function countedBytes(reason: string): number {
  return Math.max(0, Buffer.byteLength(reason) - uncountedBytes)
}

/** A key bound to one identity cannot see data of the account. */
function requireAccountWide(caller: Caller): void {
  if (caller.identity_id !== null) throw notFound('suppression')
}

/** Local parts that differ in case are one mailbox almost everywhere; tags are kept, as they may be different people. */
function suppressionKey(address: string): string {
  return address.toLowerCase()
}

function toSuppression({ id, email, reason, source, email_id, created_at }: SuppressionRow): Suppression {
  return { id, email, reason, source, email_id, created_at }
}
