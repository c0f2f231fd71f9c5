import type { Plan } from '../account/plan.ts'
import { iso } from '../core/clock.ts'
import type { Clock } from '../core/clock.ts'
import type { Cursors } from '../core/cursor.ts'
import { conflict, invalid, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller, Scope } from '../core/scopes.ts'
import type { Paging } from '../core/shapes.ts'
import { Unreachable } from '../delivery/outside.ts'
import type { Outside } from '../delivery/outside.ts'
import type { Queue } from '../delivery/queue.ts'
import { sql } from '../store/database.ts'
import type { Database, Reader } from '../store/database.ts'
import { page } from '../store/page.ts'
import type { EventNames } from './event-names.ts'
import type { NewWebhook, Webhook, WebhookChange } from './model.ts'
import { kind, rowOf, sealHeaders, shown } from './row.ts'
import type { WebhookRow } from './row.ts'
import { newSecret } from './secret.ts'
import type { Sealed } from './secret.ts'

/** How long after a rotation the former secret still signs beside the new one, in milliseconds. */
const overlap = 24 * 60 * 60 * 1000

interface Parts {
  database: Database
  clock: Clock
  cursors: Cursors
  names: EventNames
  outside: Outside
  queue: Queue
  sealed: Sealed
  plan: Plan
}

/** Where events are sent: the webhooks of every account. */
export class Webhooks {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
    parts.plan.counts('webhooks', (accountId) => sql`SELECT count(*) AS n FROM webhooks WHERE account_id = ${accountId}`)
  }

  async create(caller: Caller, wish: NewWebhook): Promise<Webhook & { secret: string }> {
    const { database, names, sealed, plan } = this.#parts
    names.require(caller, wish.events)
    const identityId = wish.identity_id ?? caller.identity_id
    await this.#requireIdentity(database, caller, identityId)
    await this.#requireUrl(wish.url)
    const id = newId('whk')
    const secret = wish.secret ?? newSecret()
    const now = this.#now()
    const row = await database.transaction(async (tx) => {
      await this.#requireIdentity(tx, caller, identityId)
      await plan.require(tx, caller.account_id, 'webhooks')
      return tx.get<WebhookRow>(
        sql`INSERT INTO webhooks (id, account_id, identity_id, url, events, scopes, active, description, headers, secret, after_seq,
          created_at, updated_at) SELECT ${id}, ${caller.account_id}, ${identityId}, ${wish.url}, ${JSON.stringify(wish.events)},
          ${JSON.stringify([...caller.scopes])}, ${Number(wish.active)}, ${wish.description ?? null},
          ${sealHeaders(sealed, id, wish.headers ?? {})}, ${sealed.write(id, secret)}, coalesce(max(seq), 0), ${now}, ${now}
          FROM events RETURNING *`,
      )
    })
    return { ...shown(row!, sealed), secret }
  }

  list(caller: Caller, paging: Paging): Promise<{ data: Webhook[]; has_more: boolean; next_cursor: string | null }> {
    const { database, cursors, sealed } = this.#parts
    const own = caller.identity_id === null ? sql`` : sql` AND identity_id = ${caller.identity_id}`
    return page<WebhookRow, Webhook>(database, cursors, paging, {
      name: `webhooks ${caller.account_id} ${caller.identity_id ?? ''}`,
      select: sql`SELECT * FROM webhooks`,
      where: sql`account_id = ${caller.account_id}${own}`,
      order: 'seq',
      present: (row) => shown(row, sealed),
    })
  }

  async get(caller: Caller, id: string): Promise<Webhook> {
    return shown(await rowOf(this.#parts.database, caller, id), this.#parts.sealed)
  }

  /** Switching it on again forgets why it was off. Needs the scopes of all that the webhook hears, before and after. */
  async update(caller: Caller, id: string, change: WebhookChange): Promise<Webhook> {
    const { database, names, sealed } = this.#parts
    await rowOf(database, caller, id)
    if (change.events) names.require(caller, change.events)
    if (change.url !== undefined) await this.#requireUrl(change.url)
    return database.transaction(async (tx) => {
      const before = await rowOf(tx, caller, id)
      this.#requireScopes(caller, before)
      const identityId = change.identity_id === undefined ? before.identity_id : change.identity_id
      if (caller.identity_id !== null && identityId !== caller.identity_id) throw notFound('identity')
      const on = change.active === true
      // one whose identity is gone has nothing left to hear
      if (on || change.identity_id !== undefined) await this.#requireIdentity(tx, caller, identityId)
      const after: WebhookRow = {
        ...before,
        url: change.url ?? before.url,
        events: change.events ? JSON.stringify(change.events) : before.events,
        scopes: change.events ? JSON.stringify([...caller.scopes]) : before.scopes,
        active: change.active === undefined ? before.active : Number(change.active),
        identity_id: identityId,
        description: change.description === undefined ? before.description : change.description,
        headers: change.headers ? sealHeaders(sealed, id, change.headers) : before.headers,
        failing_since: on ? null : before.failing_since,
        disabled_at: on ? null : before.disabled_at,
        disabled_reason: on ? null : before.disabled_reason,
        updated_at: this.#now(),
      }
      await tx.run(
        sql`UPDATE webhooks SET url = ${after.url}, events = ${after.events}, scopes = ${after.scopes}, active = ${after.active},
          identity_id = ${after.identity_id}, description = ${after.description}, headers = ${after.headers},
          failing_since = ${after.failing_since}, disabled_at = ${after.disabled_at}, disabled_reason = ${after.disabled_reason},
          updated_at = ${after.updated_at} WHERE id = ${id}`,
      )
      return shown(after, sealed)
    })
  }

  /** When it resolves, the endpoint hears nothing more: what waited is dropped, what was under way is cut off. */
  async remove(caller: Caller, id: string): Promise<{ id: string; deleted: true }> {
    const { database, queue } = this.#parts
    await database.transaction(async (tx) => {
      const { account_id } = await rowOf(tx, caller, id)
      await tx.run(sql`DELETE FROM webhooks WHERE id = ${id}`)
      await queue.close(tx, { kind, lane: id, account_id })
    })
    await queue.silence(kind, id)
    return { id, deleted: true }
  }

  /** A new secret; the former one signs beside it for 24 h. */
  async rotate(caller: Caller, id: string, given: string | undefined): Promise<Webhook & { secret: string }> {
    const { database, clock, sealed } = this.#parts
    const secret = given ?? newSecret()
    const row = await database.transaction(async (tx) => {
      const before = await rowOf(tx, caller, id)
      this.#requireScopes(caller, before)
      if (sealed.read(id, before.secret) === secret) throw conflict('This is the secret already.', { param: 'secret' })
      return tx.get<WebhookRow>(
        sql`UPDATE webhooks SET previous_secret = secret, previous_expires_at = ${iso(clock.now() + overlap)},
          secret = ${sealed.write(id, secret)}, updated_at = ${this.#now()} WHERE id = ${id} RETURNING *`,
      )
    })
    return { ...shown(row!, sealed), secret }
  }

  // a key must not get to hear, by way of a webhook, what it may not read
  #requireScopes(caller: Caller, row: WebhookRow): void {
    this.#parts.names.requireAll(caller, JSON.parse(row.events) as string[], new Set(JSON.parse(row.scopes) as Scope[]))
  }

  async #requireUrl(url: string): Promise<void> {
    try {
      await this.#parts.outside.check(url)
    } catch (error) {
      if (error instanceof Unreachable) throw invalid('url', `url cannot be used: ${error.message}.`, 'url_refused')
      throw error
    }
  }

  async #requireIdentity(reader: Reader, caller: Caller, id: string | null): Promise<void> {
    if (id === null) return
    const row =
      caller.identity_id === null || caller.identity_id === id
        ? await reader.get(
            sql`SELECT 1 FROM identities WHERE id = ${id} AND account_id = ${caller.account_id} AND status <> 'deleted'`,
          )
        : undefined
    if (!row) throw notFound('identity')
  }

  #now(): string {
    return iso(this.#parts.clock.now())
  }
}
