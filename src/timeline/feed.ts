import type { Basis } from '../basis.ts'
import { ConcurrentWaits, type WaitingCall } from '../core/work/concurrent-waits.ts'
import { type Caller, noLongerAdmitted } from '../core/scopes.ts'
import { ofTypes } from '../events/catalogue.ts'
import type { Event } from '../events/model.ts'
import { endOf, markerAt, positionOf } from '../events/positions.ts'
import { scan } from '../events/scan.ts'
import type { Identities } from '../identities/identities.ts'
import { sql, type Sql } from '../store/database.ts'
import { fitting } from '../store/page.ts'
import { FeedWait, FeedWaits } from './feed-waits.ts'
import { envelopeOf, type FeedFilter, type FeedPage } from './model.ts'
import { unknownEvent } from './timeline.ts'

interface Deps extends Pick<Basis, 'cursors' | 'database' | 'events' | 'types'> {
  identities: Identities
  /** True if the caller's key or session is still valid: it may end while a call waits. */
  admitted: (caller: Caller) => Promise<boolean>
}

/** Whose events a call reads, and which of them. */
interface Whose {
  account_id: string
  /** Null: of the whole account. */
  identity_id: string | null
  types: readonly string[]
}

/** Where a page begins, and up to where the log is read. */
interface Range {
  after: number
  end: number
  ascending: boolean
  condition: Sql
}

interface Found {
  events: Event[]
  /** Where the next page begins; null at the end. */
  next: number | null
}

/** The events of an account, of all its identities and of none: what a WebSocket sends on `agent_events`, page by page. */
export class EventFeed {
  readonly #deps: Deps
  readonly #waiting: FeedWaits
  readonly #waits = new ConcurrentWaits('events', 'receive them by one WebSocket (POST /v1/realtime/token) or a webhook')

  constructor(deps: Deps) {
    this.#deps = deps
    this.#waiting = new FeedWaits(deps.events)
  }

  /** How many calls wait. */
  get size(): number {
    return this.#waiting.size
  }

  /** Newest first; with `since` or `wait` oldest first. Throws Fault rate_limited, code `too_many_waits`. */
  async read(caller: Caller, filter: FeedFilter, call: WaitingCall): Promise<FeedPage> {
    const identity_id = filter.identity_id ?? caller.identity_id
    const whose = { account_id: caller.account_id, identity_id, types: this.#typesFor(caller, filter.types) }
    await this.#requireIdentity(caller, identity_id)
    if (filter.wait === 0) return this.#read(caller, whose, filter, call)
    const leave = this.#waits.enter(caller)
    const waiting = this.#waiting.add(whose)
    try {
      return await this.#read(caller, whose, filter, call, waiting)
    } finally {
      waiting.end()
      leave()
    }
  }

  async #read(caller: Caller, whose: Whose, filter: FeedFilter, call: WaitingCall, waiting?: FeedWait): Promise<FeedPage> {
    const { cursors, events } = this.#deps
    const ascending = filter.since !== undefined || waiting !== undefined
    const name = `feed ${JSON.stringify(whose)} ${ascending ? 'oldest' : 'newest'}`
    const position = cursors.start(name, { cursor: filter.cursor, offset: 0 })
    let end = await endOf(events)
    const start =
      filter.since === undefined
        ? { seq: ascending ? end : end + 1, condition: always }
        : await positionOf(events, caller.account_id, filter.since)
    const { condition } = start
    let found = await this.#page(whose, { after: position ?? start.seq, end, ascending, condition }, filter.limit)
    if (waiting) {
      const until = performance.now() + filter.wait * 1000
      while (found.events.length === 0 && found.next === null && (await waiting.next(until - performance.now(), call.signal))) {
        // many may end at the same time
        await call.turn()
        if (!(await this.#deps.admitted(caller))) throw noLongerAdmitted(caller)
        await this.#requireIdentity(caller, whose.identity_id)
        const after = end
        end = await endOf(events)
        found = await this.#page(whose, { after, end, ascending, condition }, filter.limit)
      }
    }
    const { events: list, next } = found
    const later = ascending ? list.at(-1) : list[0]
    const isFirst = ascending || position === undefined
    return {
      data: list.map(envelopeOf),
      has_more: next !== null,
      next_cursor: next === null ? null : cursors.write(name, next),
      since: !isFirst
        ? null
        : (later?.id ?? (ascending && next !== null ? (filter.since ?? null) : await this.#marker(whose, end, filter.since))),
    }
  }

  /** What to pass as `since` where nothing was found up to `end`. */
  async #marker(whose: Whose, end: number, since: string | undefined): Promise<string> {
    const { events } = this.#deps
    const newest = await events.newestUpTo(end)
    // a time that is still to come
    if (since !== undefined && !since.startsWith('evt_') && (newest?.created_at ?? '') < since) return since
    return markerAt(events, end, conditionOf(whose))
  }

  async #page(whose: Whose, range: Range, limit: number): Promise<Found> {
    const { database, events } = this.#deps
    const { account_id, identity_id, types } = whose
    const { after, end, ascending, condition } = range
    if (identity_id !== null) {
      const upToEnd = sql`${condition} AND seq <= ${end}`
      const list = await events.list({ account_id, identity_id, types, condition: upToEnd, ascending, after }, limit)
      return { events: list.events, next: list.has_more ? list.events.at(-1)!.seq : null }
    }
    const span = { account_id, types: ofTypes(types), condition, after, end, ascending }
    const { heads, reached } = await scan(database, span, limit + 1)
    const count = fitting(
      heads.map(({ octets }) => octets),
      limit,
    )
    const seqs = heads.slice(0, count).map(({ seq }) => seq)
    return { events: await events.at(seqs), next: heads.length > count ? seqs.at(-1)! : reached }
  }

  async #requireIdentity(caller: Caller, id: string | null): Promise<void> {
    if (id !== null) await this.#deps.identities.row(caller, id)
  }

  /** Those of the types that the caller may see. Throws Fault invalid_request for one that there is not. */
  #typesFor(caller: Caller, named: FeedFilter['types']): string[] {
    const { types } = this.#deps
    const published = [...types.published().keys()]
    const unknown = named?.find((name) => !published.includes(name))
    if (unknown !== undefined) throw unknownEvent('types', unknown, published)
    const visible = types.visibleTo(caller)
    return named ? visible.filter((name) => named.includes(name)) : visible
  }
}

const always = sql`1 = 1`

function conditionOf({ account_id, identity_id }: Whose): Sql {
  return identity_id === null ? sql`account_id = ${account_id}` : sql`identity_id = ${identity_id} AND account_id = ${account_id}`
}
