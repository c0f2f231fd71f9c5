import type { Basis } from '../basis.ts'
import { dropOrigins } from '../accounts/key-ancestry.ts'
import type { Keys } from '../accounts/keys.ts'
import type { Plan } from '../accounts/plan.ts'
import { day, iso } from '../core/clock.ts'
import { page } from '../store/page.ts'
import { conflict, invalid, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import { type Caller, makerOf, requireLasting, type Scope } from '../core/scopes.ts'
import type { Page } from '../core/shapes.ts'
import { type Outside, Unreachable } from '../net/outside.ts'
import type { Queue } from '../queue/queue.ts'
import type { Event, EventType } from '../events/model.ts'
import { requireIdentity } from '../identities/row.ts'
import { type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import { type EventNames, noteWebhookChange } from './event-names.ts'
import {
  type NewWebhook,
  type Webhook,
  type WebhookChange,
  webhookCreated,
  webhookDeleted,
  type WebhookEventData,
  type WebhookFilter,
  webhookUpdated,
} from './model.ts'
import { asOf, disable, kind, listening, rowOf, sealHeaders, toEventData, toWebhook, type WebhookRow } from './row.ts'
import { newSecret, type Sealed } from './signature.ts'

/** How long the former secret signs beside the new one after a rotation, in milliseconds. */
const overlap = day

/** The most webhooks of one account, whatever its plan allows: each event is sent to all of them. */
const maxOfAccount = 1000

/** The most webhooks disabled in one transaction. */
const batch = 100

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'cursors'> {
  names: EventNames
  outside: Outside
  queue: Queue
  sealed: Sealed
  plan: Plan
  keys: Pick<Keys, 'ends' | 'origins'>
}

/** The webhooks of every account. */
export class Webhooks {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
    deps.keys.ends('webhooks', sql`SELECT id, created_by FROM webhooks`, (tx, ids) => this.#end(tx, ids))
    deps.plan.counts('webhooks', (accountId) => sql`SELECT count(*) AS n FROM webhooks WHERE account_id = ${accountId}`)
  }

  async create(caller: Caller, input: NewWebhook): Promise<Webhook & { secret: string }> {
    const { database, names, sealed, plan, keys } = this.#deps
    names.require(caller, input.events)
    const identityId = input.identity_id ?? caller.identity_id
    await this.#requireIdentity(database, caller, identityId)
    await this.#requireUrl(input.url)
    const id = newId('whk')
    const secret = input.secret ?? newSecret()
    const now = this.#now()
    const row = await database.transaction(async (tx) => {
      const until = await keys.origins.requireAdmitted(tx, caller)
      await this.#requireIdentity(tx, caller, identityId)
      await plan.require(tx, caller.account_id, 'webhooks')
      await requireFew(tx, caller.account_id)
      await noteWebhookChange(tx, caller.account_id)
      await keys.origins.inherit(tx, id, caller)
      const made = await tx.get<WebhookRow>(
        sql`INSERT INTO webhooks (id, account_id, identity_id, url, events, scopes, active, description, headers, secret, after_seq,
          created_at, updated_at, created_by, expires_at) VALUES (${id}, ${caller.account_id}, ${identityId}, ${input.url}, ${JSON.stringify(input.events)},
          ${JSON.stringify([...caller.scopes])}, ${Number(input.active)}, ${input.description ?? null},
          ${sealHeaders(sealed, id, input.headers ?? {})}, ${sealed.write(id, secret)}, 0, ${now}, ${now}, ${makerOf(caller)},
          ${endOf(until)}) RETURNING *`,
      )
      const { seq } = await this.#tell(tx, webhookCreated, made!, true)
      // it gets what happens after its own creation
      await tx.run(sql`UPDATE webhooks SET after_seq = ${seq} WHERE id = ${id}`)
      return made!
    })
    return { ...toWebhook(row, sealed), secret }
  }

  list(caller: Caller, { created_by, ...paging }: WebhookFilter): Promise<Page<Webhook>> {
    const { database, cursors, sealed, clock } = this.#deps
    const by = created_by === undefined ? [] : [sql`created_by = ${created_by}`]
    const own = caller.identity_id === null ? [] : [sql`identity_id = ${caller.identity_id}`]
    return page<WebhookRow, Webhook>(database, cursors, paging, {
      name: `webhooks ${caller.account_id} ${caller.identity_id ?? ''} ${created_by ?? ''}`,
      from: sql`webhooks`,
      account: caller.account_id,
      where: sql`account_id = ${caller.account_id}`,
      filters: [...own, ...by],
      octets: sql`octet_length(url) + octet_length(events) + coalesce(octet_length(headers), 0) + coalesce(octet_length(description), 0)`,
      present: (row) => toWebhook(asOf(row, clock.now()), sealed),
    })
  }

  async get(caller: Caller, id: string): Promise<Webhook> {
    const { database, clock, sealed } = this.#deps
    return toWebhook(await rowOf(database, clock, caller, id), sealed)
  }

  /** Enabling it again clears the reason why it was disabled. Requires the scopes of all its events, before and after. */
  async update(caller: Caller, id: string, change: WebhookChange): Promise<Webhook> {
    const { database, clock, names, sealed, keys } = this.#deps
    await rowOf(database, clock, caller, id)
    if (change.events) names.require(caller, change.events)
    if (change.url !== undefined) await this.#requireUrl(change.url)
    return database.transaction(async (tx) => {
      const until = await keys.origins.requireAdmitted(tx, caller)
      const before = await rowOf(tx, clock, caller, id)
      this.#requireScopes(caller, before)
      const turned = [change.url, change.events, change.identity_id, change.headers].some((value) => value !== undefined)
      if (turned || change.active === true) requireLastingAs(until, before)
      const identityId = change.identity_id === undefined ? before.identity_id : change.identity_id
      if (caller.identity_id !== null && identityId !== caller.identity_id) throw notFound('identity')
      const on = change.active === true
      // a webhook whose identity is deleted gets no more events
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
        failing_since: on || (change.url ?? before.url) !== before.url ? null : before.failing_since,
        disabled_at: on ? null : before.disabled_at,
        disabled_reason: on ? null : before.disabled_reason,
        updated_at: this.#now(),
        updated_by: turned ? makerOf(caller) : before.updated_by,
        // enabling a webhook whose key ended binds it to the caller's key
        expires_at: on && before.disabled_reason === 'key_ended' ? endOf(until) : before.expires_at,
      }
      await tx.run(
        sql`UPDATE webhooks SET url = ${after.url}, events = ${after.events}, scopes = ${after.scopes}, active = ${after.active},
          identity_id = ${after.identity_id}, description = ${after.description}, headers = ${after.headers},
          failing_since = ${after.failing_since}, disabled_at = ${after.disabled_at}, disabled_reason = ${after.disabled_reason},
          updated_at = ${after.updated_at}, updated_by = ${after.updated_by}, expires_at = ${after.expires_at} WHERE id = ${id}`,
      )
      if (turned || change.active !== undefined) await noteWebhookChange(tx, caller.account_id)
      if (turned || on) await keys.origins.changed(tx, id, caller)
      // one can always be disabled
      const { seq } = await this.#tell(tx, webhookUpdated, after, before.active !== 1 || after.active === 1)
      // an event of the time in which it was disabled may be read again after a crash; a number below 0 is no position yet
      if (before.active !== 1 && on && seq > 0) await tx.run(sql`UPDATE webhooks SET after_seq = ${seq} WHERE id = ${id}`)
      return toWebhook(after, sealed)
    })
  }

  /** Removes a webhook. The endpoint gets nothing more once it resolves: waiting deliveries are dropped, running ones are aborted. */
  async remove(caller: Caller, id: string): Promise<{ id: string; deleted: true }> {
    const { database, clock, queue } = this.#deps
    await database.transaction(async (tx) => {
      const row = await rowOf(tx, clock, caller, id)
      const { account_id } = row
      await tx.run(sql`DELETE FROM webhooks WHERE id = ${id}`)
      await this.#tell(tx, webhookDeleted, row)
      await noteWebhookChange(tx, account_id)
      await dropOrigins(tx, [id])
      await queue.closeLane(tx, { kind, lane: id, account_id })
    })
    await queue.abortLane(kind, id)
    return { id, deleted: true }
  }

  /** Creates a new secret; the former one signs beside it for 24 h. */
  async rotate(caller: Caller, id: string, given: string | undefined): Promise<Webhook & { secret: string }> {
    const { database, clock, sealed, keys } = this.#deps
    const secret = given ?? newSecret()
    const row = await database.transaction(async (tx) => {
      const until = await keys.origins.requireAdmitted(tx, caller)
      const before = await rowOf(tx, clock, caller, id)
      this.#requireScopes(caller, before)
      requireLastingAs(until, before)
      if (sealed.read(id, before.secret) === secret) throw conflict('This is already the secret.', { param: 'secret' })
      await keys.origins.changed(tx, id, caller)
      const after = await tx.get<WebhookRow>(
        sql`UPDATE webhooks SET previous_secret = secret, previous_expires_at = ${iso(clock.now() + overlap)},
          secret = ${sealed.write(id, secret)}, updated_at = ${this.#now()},
          updated_by = ${makerOf(caller)} WHERE id = ${id} RETURNING *`,
      )
      await this.#tell(tx, webhookUpdated, after!, true)
      return after!
    })
    return { ...toWebhook(row, sealed), secret }
  }

  /** Disables expired webhooks and emits their events, in batches so that other work is not delayed. */
  async sweep(): Promise<void> {
    const { database, events, clock } = this.#deps
    for (let rows = batch; rows === batch;) {
      rows = await database.transaction(async (tx) => {
        const now = clock.now()
        const over = await tx.all<WebhookRow>(
          sql`SELECT * FROM webhooks WHERE active = 1 AND expires_at <= ${iso(now)} ORDER BY expires_at LIMIT ${batch}`,
        )
        for (const row of over) await disable(tx, events, now, row, 'key_ended')
        return over.length
      })
    }
  }

  /** From now on they get no events; the sweep stores that they are disabled. Those that were disabled before get the reason `key_ended` at once. Returns how many got events. */
  async #end(tx: Transaction, ids: Sql): Promise<number> {
    const { clock } = this.#deps
    const now = this.#now()
    await tx.run(
      sql`UPDATE webhooks SET disabled_reason = 'key_ended', disabled_at = coalesce(disabled_at, ${now}) WHERE id IN (${ids}) AND active = 0`,
    )
    const { changes } = await tx.run(
      sql`UPDATE webhooks SET expires_at = ${now} WHERE id IN (${ids}) AND ${listening(clock.now())}`,
    )
    return changes
  }

  /** `refusable`: the storage quota is enforced, as the caller chose the size. */
  #tell(tx: Transaction, type: EventType<WebhookEventData>, row: WebhookRow, refusable = false): Promise<Event> {
    const { account_id, identity_id } = row
    return this.#deps.events.append(tx, type, { account_id, identity_id, data: toEventData(row), refusable })
  }

  // a key must not receive by a webhook what it may not read
  #requireScopes(caller: Caller, row: WebhookRow): void {
    this.#deps.names.requireAll(caller, JSON.parse(row.events) as string[], new Set(JSON.parse(row.scopes) as Scope[]))
  }

  async #requireUrl(url: string): Promise<void> {
    try {
      await this.#deps.outside.check(url)
    } catch (error) {
      if (error instanceof Unreachable) throw invalid('url', `url cannot be used: ${error.message}.`, 'url_refused')
      throw error
    }
  }

  async #requireIdentity(reader: Reader, caller: Caller, id: string | null): Promise<void> {
    if (id === null) return
    if (caller.identity_id !== null && caller.identity_id !== id) throw notFound('identity')
    await requireIdentity(reader, this.#deps.clock, caller.account_id, id)
  }

  #now(): string {
    return iso(this.#deps.clock.now())
  }
}

/** Throws Fault conflict, code `too_many_webhooks`, at the limit of an account. */
async function requireFew(reader: Reader, accountId: string): Promise<void> {
  const last = await reader.get(sql`SELECT 1 FROM webhooks WHERE account_id = ${accountId} LIMIT 1 OFFSET ${maxOfAccount - 1}`)
  if (!last) return
  throw conflict(
    `An account has at most ${maxOfAccount} webhooks. Delete one that is not needed; a webhook without identity_id receives events of all identities.`,
    { code: 'too_many_webhooks' },
  )
}

/** The end as stored; null for never. */
function endOf(until: number): string | null {
  return until === Infinity ? null : iso(until)
}

function requireLastingAs(until: number, { expires_at }: WebhookRow): void {
  requireLasting({ until }, 'change the url and events of a webhook', expires_at === null ? Infinity : Date.parse(expires_at))
}
