import type { Basis } from '../basis.ts'
import type { EventHeader } from '../events/model.ts'
import { type Database, sql, type Sql, type Transaction } from '../store/database.ts'
import { type Asked, type EventNames, WantedEvents } from './event-names.ts'
import { listening, type WebhookRow } from './row.ts'

/** The fields of an active webhook that one event needs. */
export type ActiveWebhook = Pick<WebhookRow, 'seq' | 'id' | 'after_seq'>

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
      sql`SELECT seq, id, after_seq FROM webhooks WHERE account_id = ${account_id} AND ${whose} AND ${listening(now)} AND seq > ${after}
        AND events || ' ' || scopes IN (SELECT value FROM json_each(${inputs}))`
    // two queries, as no index is ordered for both "this identity" and "no identity"
    return tx.all<ActiveWebhook>(
      sql`${of(sql`identity_id IS NULL`)} UNION ALL ${of(sql`identity_id = ${identity_id}`)} ORDER BY seq LIMIT ${limit}`,
    )
  }
}
