import type { Cursors } from '../core/cursor.ts'
import { Fault, invalid } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { Paging } from '../core/shapes.ts'
import type { EventLog } from '../events/log.ts'
import type { EventTypes } from '../events/catalogue.ts'
import { ofTypes } from '../events/catalogue.ts'
import type { Identities } from '../identities/identities.ts'
import type { Emails } from '../mail/emails.ts'
import { sql } from '../store/database.ts'
import { envelopeOf } from './model.ts'
import type { EventEnvelope, EventFilter, Message } from './model.ts'

interface Parts {
  cursors: Cursors
  events: EventLog
  types: EventTypes
  identities: Identities
  emails: Emails
}

type Listed<Item> = { data: Item[]; has_more: boolean; next_cursor: string | null }

/** What happened to one identity: its events, and its messages in the order they came. */
export class Timeline {
  readonly #cursors: Cursors
  readonly #events: EventLog
  readonly #types: EventTypes
  readonly #identities: Identities
  readonly #emails: Emails

  constructor(parts: Parts) {
    this.#cursors = parts.cursors
    this.#events = parts.events
    this.#types = parts.types
    this.#identities = parts.identities
    this.#emails = parts.emails
  }

  /** Newest first; with `since` oldest first from there. Only types the caller may read. */
  async events(caller: Caller, identityId: string, filter: EventFilter): Promise<Listed<EventEnvelope>> {
    await this.#identities.row(caller, identityId)
    const { limit, cursor, offset } = filter
    requireOneWay(cursor, offset)
    const visible = this.#types.visibleTo(caller)
    const names = filter.type === undefined ? visible : visible.filter((name) => name === filter.type)
    const condition = sql`identity_id = ${identityId} AND ${ofTypes(names)}`
    const list = `events ${identityId} ${filter.type ?? ''} ${filter.since === undefined ? 'newest' : 'oldest'}`
    const position = cursor === undefined ? undefined : this.#cursors.read(list, cursor)
    const rows =
      filter.since === undefined
        ? await this.#events.before(position ?? Number.MAX_SAFE_INTEGER, limit + 1, condition, offset)
        : await this.#events.after(position ?? (await this.start(caller, identityId, filter.since)), limit + 1, condition, offset)
    const has_more = rows.length > limit
    if (has_more) rows.pop()
    return { data: rows.map(envelopeOf), has_more, next_cursor: has_more ? this.#cursors.write(list, rows.at(-1)!.seq) : null }
  }

  /**
   * The place in the log that `since` names: after an event, or before the first event at or after a time.
   * Throws Fault invalid_request, code `since_expired`, for an event that is not in the log.
   */
  async start(caller: Caller, identityId: string, since: string): Promise<number> {
    if (!since.startsWith('evt_')) {
      const before = await this.#events.last(sql`identity_id = ${identityId} AND created_at < ${since}`)
      return before?.seq ?? 0
    }
    const place = await this.#events.place(since, caller.account_id)
    if (place === undefined) {
      throw new Fault('invalid_request', 'since names an event that is not (or no longer) in the log. Begin with a time.', {
        param: 'since',
        code: 'since_expired',
      })
    }
    return place
  }

  /** All messages, oldest first. */
  async messages(caller: Caller, identityId: string, paging: Paging): Promise<Listed<Message>> {
    await this.#identities.row(caller, identityId)
    const { limit, cursor, offset } = paging
    requireOneWay(cursor, offset)
    const list = `messages ${identityId}`
    const position = cursor === undefined ? 0 : this.#cursors.read(list, cursor)
    const rows = await this.#emails.chronological(identityId, position, limit + 1, offset)
    const has_more = rows.length > limit
    if (has_more) rows.pop()
    return {
      data: rows.map(({ email }) => ({ ...email, type: 'email' as const })),
      has_more,
      next_cursor: has_more ? this.#cursors.write(list, rows.at(-1)!.seq) : null,
    }
  }
}

function requireOneWay(cursor: string | undefined, offset: number): void {
  if (cursor !== undefined && offset > 0) throw invalid('offset', 'Give either cursor or offset, not both.')
}
