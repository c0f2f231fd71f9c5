import type { Basis } from '../basis.ts'
import type { EventHeader } from '../events/model.ts'
import { type Database, sql, type Sql, type Transaction } from '../store/database.ts'
import { type Asked, type EventNames, WantedEvents } from './event-names.ts'
import { webhookCreated } from './model.ts'
import { listening, type WebhookRow } from './row.ts'

/** The fields of an active webhook that one event needs. */
export type ActiveWebhook = Pick<WebhookRow, 'seq' | 'id' | 'after_seq'>

/**
 * The position of the creation of a webhook. Where events get theirs after the commit, the number that its event was inserted with is stored: its position is looked up, and
 * none that is given before it has one is later.
 */
const afterSeq = sql`CASE WHEN after_seq >= 0 THEN after_seq ELSE coalesce((SELECT CASE WHEN events.seq < 0 THEN ${Number.MAX_SAFE_INTEGER} ELSE events.seq END
  FROM events WHERE resource_id = webhooks.id AND type = ${webhookCreated.name} LIMIT 1), 0) END`

/** Finds the webhooks that are subscribed to an event. */
export class SubscribedWebhooks {
  readonly #clock: Basis['clock']
  readonly #wanted: WantedEvents

  constructor(deps: { database: Database; names: EventNames; clock: Basis['clock'] }) {
    this.#clock = deps.clock
    this.#wanted = new WantedEvents(deps)
  }

  /** What the webhooks of an account ask for. */
  asked(accountId: string): Promise<readonly Asked[]> {
    return this.#wanted.of(accountId)
  }

  /** The webhooks after a position that want an event, in order, at most `limit`; including those created after the event. */
  async of(
    tx: Transaction,
    { account_id, identity_id, type }: Pick<EventHeader, 'account_id' | 'identity_id' | 'type'>,
    after: number,
    limit: number,
  ): Promise<ActiveWebhook[]> {
    const asked = (await this.#wanted.of(account_id, tx)).filter(({ types: heard }) => heard.has(type))
    if (asked.length === 0) return []
    const inputs = JSON.stringify(asked.map(({ events, scopes }) => `${events} ${scopes}`))
    const now = this.#clock.now()
    const of = (whose: Sql): Sql =>
      sql`SELECT seq, id, ${afterSeq} AS after_seq FROM webhooks WHERE account_id = ${account_id} AND ${whose} AND ${listening(now)} AND seq > ${after}
        AND events || ' ' || scopes IN (SELECT value FROM json_each(${inputs}))`
    // two queries, as no index is ordered for both "this identity" and "no identity"
    return tx.all<ActiveWebhook>(
      sql`${of(sql`identity_id IS NULL`)} UNION ALL ${of(sql`identity_id = ${identity_id}`)} ORDER BY seq LIMIT ${limit}`,
    )
  }
}
