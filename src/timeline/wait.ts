import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Clock, iso } from '../core/clock.ts'
import { lruMap } from '../core/memory.ts'
import { Fault } from '../core/fault.ts'
import { type Caller, may, noLongerAdmitted, type Scope } from '../core/scopes.ts'
import type { EventLog } from '../events/log.ts'
import type { Event } from '../events/model.ts'
import { endOf, type LogPosition, positionOf } from '../events/positions.ts'
import type { Identities } from '../identities/identities.ts'
import type { Emails } from '../mail/emails.ts'
import type { Messages } from '../sms/messages.ts'
import type { Sms } from '../sms/model.ts'
import type { Email, Link } from '../mail/model.ts'
import { sql, type Sql } from '../store/database.ts'
import type { WaitAnswer, WaitFilter } from './model.ts'

const channels: { name: 'email' | 'sms'; type: string; scopes: Scope[] }[] = [
  { name: 'email', type: 'email.received', scopes: ['messages:read', 'emails:read'] },
  { name: 'sms', type: 'sms.received', scopes: ['messages:read', 'sms:read'] },
]

/** The most events examined in one turn of the event loop, as each may carry large foreign content. */
const eventsPerTurn = 25

/** How far back a wait without `since` searches, in milliseconds. */
const lookBack = 120_000

/** The most concurrent waits of one key or session, and of one account. */
const maxOfKey = 500
const maxOfAccount = 1000

/** The most keys whose last answer is remembered. */
const remembered = 100_000

interface Deps {
  clock: Clock
  events: EventLog
  identities: Identities
  emails: Emails
  sms: Pick<Messages, 'lives'>
  /** The links in a text. */
  linksIn: (text: string) => Link[]
  /** True if the caller's key or session is still valid: it may end while a call waits. */
  admitted: (caller: Caller) => Promise<boolean>
}

/** The fields of the call that a wait needs. */
interface Call {
  signal: AbortSignal
  /** Undefined to continue at once, else resolves at the turn of its account. */
  turn: () => Promise<void> | undefined
}

/** Waits for a message: searches the log first and then follows it; nothing in between is missed. */
export class Waiting {
  readonly #deps: Deps
  readonly #listeners = new Map<string, Set<(event: Event) => void>>()
  /** The number of running calls of each account, and of each key or session. */
  readonly #inHand = new Map<string, number>()
  /**
   * The events that each key got by waiting, by position in the log and time, so that a wait without `since` does not return them again.
   */
  readonly #given = lruMap<Map<number, number>>(remembered)

  constructor(deps: Deps) {
    this.#deps = deps
    deps.events.subscribe((event) => {
      for (const listener of this.#listeners.get(event.identity_id ?? '') ?? []) listener(event)
    })
  }

  /** Throws Fault rate_limited, code `too_many_waits`. */
  async wait(caller: Caller, identityId: string, filter: WaitFilter, call: Call): Promise<WaitAnswer> {
    await this.#deps.identities.row(caller, identityId)
    const types = typesFor(caller, filter)
    const leave = this.#enter(caller)
    try {
      return await this.#wait(caller, identityId, { ...filter, types }, call)
    } finally {
      leave()
    }
  }

  async #wait(
    caller: Caller,
    identityId: string,
    filter: WaitFilter & { types: string[] },
    { signal, turn: take }: Call,
  ): Promise<WaitAnswer> {
    const key = `${holderOf(caller)} ${identityId}`
    const since = filter.since ?? iso(this.#deps.clock.now() - lookBack)
    const start = await positionOf(this.#deps.events, caller.account_id, since)
    const search = new PendingWait(filter, start, filter.since === undefined ? this.#given.get(key) : undefined)
    // an aborted call waits for nothing
    const turn = async (): Promise<void> => (signal.aborted ? undefined : take())
    const stop = this.#listen(identityId, search.onEvent)
    const look = (): Promise<Event | undefined> => this.#stored(caller, identityId, search, turn)
    try {
      const found = (await look()) ?? (await search.next(filter.timeout * 1000, signal))
      // many may end at the same time
      await turn()
      await this.#requireStill(caller, identityId, found)
      if (found) return this.#answer(key, found, signal)
      // read before the last search: what is committed by now is either returned, or comes after the returned position
      const last = await this.#deps.events.last(sql`identity_id = ${identityId}`)
      const missed = await look()
      return missed ? this.#answer(key, missed, signal) : nothing(goOn(filter.since, start.seq, last))
    } finally {
      stop()
    }
  }

  /** The number of waiting calls. */
  get size(): number {
    let count = 0
    for (const listeners of this.#listeners.values()) count += listeners.size
    return count
  }

  /** The matching event of the log, from the position searched so far to its end. */
  async #stored(caller: Caller, identityId: string, search: PendingWait, turn: () => Promise<void>): Promise<Event | undefined> {
    const end = await endOf(this.#deps.events)
    const { types, condition } = search
    const upToEnd = sql`${condition} AND seq <= ${end}`
    const whose = { account_id: caller.account_id, identity_id: identityId, types, condition: upToEnd, ascending: true }
    while (search.place < end) {
      const batch = await this.#deps.events.listBrief({ ...whose, after: search.place }, eventsPerTurn)
      for (const event of batch) {
        search.place = event.seq
        if (search.wants(event) && (await this.#lives(event))) return this.#deps.events.findAt(event.seq)
      }
      if (batch.length < eventsPerTurn) {
        search.place = end
        return undefined
      }
      // a long search yields to other work
      await nextTurn()
      await turn()
    }
    return undefined
  }

  /** Counts a call until the returned function is called. */
  #enter(caller: Caller): () => void {
    const bounds = [
      { whose: caller.account_id, most: maxOfAccount, of: 'account' },
      { whose: holderOf(caller), most: maxOfKey, of: caller.key_id === null ? 'session' : 'key' },
    ]
    for (const { whose, most, of } of bounds) {
      if ((this.#inHand.get(whose) ?? 0) < most) continue
      throw new Fault(
        'rate_limited',
        `${most} calls of this ${of} are already waiting for messages, which is the limit. Try again when one has ended, or receive events of all identities by one WebSocket (POST /v1/realtime/token) or a webhook.`,
        { code: 'too_many_waits', retryAfter: 1 },
      )
    }
    const count = (by: 1 | -1): void => {
      for (const { whose } of bounds) {
        const now = (this.#inHand.get(whose) ?? 0) + by
        if (now === 0) this.#inHand.delete(whose)
        else this.#inHand.set(whose, now)
      }
    }
    count(1)
    return () => count(-1)
  }

  async #requireStill(caller: Caller, identityId: string, found: Event | undefined): Promise<void> {
    if (!(await this.#deps.admitted(caller))) throw noLongerAdmitted(caller)
    if (found?.type === 'identity.deleted') await this.#deps.identities.row(caller, identityId)
  }

  #answer(key: string, event: Event, signal: AbortSignal): WaitAnswer {
    // a disconnected caller received nothing
    if (!signal.aborted) this.#note(key, event)
    const answered = { timed_out: false, since: event.id }
    if (event.type === 'sms.received') {
      const item = { ...(event.data as Sms), type: 'sms' as const }
      return { ...answered, item, codes: item.codes, links: this.#deps.linksIn(item.body) }
    }
    const item = { ...(event.data as Email), type: 'email' as const }
    return { ...answered, item, codes: item.codes, links: item.links }
  }

  #lives(event: Event): Promise<boolean> {
    const { id } = event.data as { id: string }
    return event.type === 'sms.received' ? this.#deps.sms.lives(id) : this.#deps.emails.exists(id)
  }

  #note(key: string, event: Event): void {
    const now = this.#deps.clock.now()
    const given = [...(this.#given.get(key) ?? [])].filter(([, at]) => at > now - lookBack)
    this.#given.set(key, new Map([...given, [event.seq, now]]))
  }

  #listen(identityId: string, listener: (event: Event) => void): () => void {
    const listeners = this.#listeners.get(identityId) ?? new Set()
    this.#listeners.set(identityId, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(identityId) === listeners) this.#listeners.delete(identityId)
    }
  }
}

/** Where the next wait starts: after the newest event, unless the match is later. */
function goOn(
  since: string | undefined,
  start: number,
  last: Pick<Event, 'seq' | 'id' | 'created_at'> | undefined,
): string | null {
  if (since === undefined || !last) return since ?? last?.id ?? null
  const later = last.seq > start && (since.startsWith('evt_') || last.created_at >= since)
  return later ? last.id : since
}

function nothing(since: string | null): WaitAnswer {
  return { timed_out: true, since, item: null, codes: [], links: [] }
}

/** One waiting call, and the events received meanwhile. */
class PendingWait {
  readonly types: string[]
  readonly condition: Sql
  /** How far the log has been searched. */
  place: number
  readonly #filter: WaitFilter
  readonly #given: ReadonlyMap<number, number> | undefined
  #listeners: Event | undefined
  #wake: (() => void) | undefined

  constructor(
    filter: WaitFilter & { types: string[] },
    { seq, condition }: LogPosition,
    given: ReadonlyMap<number, number> | undefined,
  ) {
    this.types = filter.types
    this.place = seq
    this.condition = condition
    this.#filter = filter
    this.#given = given
  }

  readonly onEvent = (event: Event): void => {
    if (this.#listeners || (event.type !== 'identity.deleted' && !this.wants(event))) return
    this.#listeners = event
    this.#wake?.()
  }

  wants(event: Event): boolean {
    if (!this.types.includes(event.type) || this.#given?.has(event.seq)) return false
    const data = event.data as Partial<Email> & { deleted?: true }
    if (data.deleted) return false
    const { from, subject_contains, spam } = this.#filter
    if (data.spam && !spam) return false
    if (from !== undefined && !`${data.from_name ?? ''} ${data.from}`.toLowerCase().includes(from.toLowerCase())) return false
    return subject_contains === undefined || (data.subject ?? '').toLowerCase().includes(subject_contains.toLowerCase())
  }

  /** The first event received since this was created; undefined after `milliseconds`, or when the call is aborted. */
  next(milliseconds: number, signal: AbortSignal): Promise<Event | undefined> {
    if (this.#listeners || signal.aborted) return Promise.resolve(this.#listeners)
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        resolve(this.#listeners)
      }
      const timer = setTimeout(done, milliseconds)
      signal.addEventListener('abort', done)
      this.#wake = done
    })
  }
}

/** The key or session whose limit of waits counts. */
function holderOf({ key_id, session_id }: Caller): string {
  return String(key_id ?? session_id)
}

function typesFor(caller: Caller, filter: WaitFilter): string[] {
  const wanted = channels.filter(({ name }) => filter.channel === 'any' || filter.channel === name)
  const allowed = wanted.filter(({ scopes }) => may(caller, scopes))
  if (allowed.length === 0) {
    throw new Fault('forbidden', `Waiting for ${filter.channel} requires the scope ${wanted[0]!.scopes.join(' or ')}.`, {
      code: 'missing_scope',
    })
  }
  return allowed.map(({ type }) => type)
}
