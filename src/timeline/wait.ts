import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Clock, iso } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import { type Caller, may, noLongerAdmitted, type Scope } from '../core/scopes.ts'
import type { EventLog } from '../events/log.ts'
import type { Event } from '../events/model.ts'
import { endOf, type LogPosition, placeOf } from '../events/positions.ts'
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

/** Events looked at in one turn of the event loop: each may carry what a stranger wrote. */
const glanced = 25

/** How far back a wait without `since` looks, in milliseconds. */
const lookBack = 120_000

/** Calls that wait at once: of one key or session, and of one account. */
const maxOfKey = 500
const maxOfAccount = 1000

/** Keys whose last answer is remembered. */
const remembered = 100_000

interface Deps {
  clock: Clock
  events: EventLog
  identities: Identities
  emails: Emails
  sms: Pick<Messages, 'lives'>
  /** The links of a text. */
  linksIn: (text: string) => Link[]
  /** Whether the caller's key or session is still good: it may end while a call waits. */
  admitted: (caller: Caller) => Promise<boolean>
}

/** What of the call a wait needs. */
interface Call {
  signal: AbortSignal
  /** Undefined when it may go on at once, else resolves when it is its account's turn. */
  turn: () => Promise<void> | undefined
}

/** Waits for a message: looks at what is in the log first, then hears the log live; nothing between the two is missed. */
export class Waiting {
  readonly #clock: Clock
  readonly #events: EventLog
  readonly #identities: Identities
  readonly #emails: Emails
  readonly #sms: Deps['sms']
  readonly #linksIn: Deps['linksIn']
  readonly #heard = new Map<string, Set<(event: Event) => void>>()
  /** How many calls of each account, and of each key or session, are in hand. */
  readonly #inHand = new Map<string, number>()
  /** What each key got by waiting, by place in the log and time, so that a wait without `since` does not give it again. */
  readonly #given = new Map<string, Map<number, number>>()
  readonly #admitted: (caller: Caller) => Promise<boolean>

  constructor(deps: Deps) {
    this.#clock = deps.clock
    this.#events = deps.events
    this.#identities = deps.identities
    this.#emails = deps.emails
    this.#sms = deps.sms
    this.#linksIn = deps.linksIn
    this.#admitted = deps.admitted
    deps.events.tail((event) => {
      for (const listener of this.#heard.get(event.identity_id ?? '') ?? []) listener(event)
    })
  }

  /** Throws Fault rate_limited, code `too_many_waits`. */
  async wait(caller: Caller, identityId: string, filter: WaitFilter, call: Call): Promise<WaitAnswer> {
    await this.#identities.row(caller, identityId)
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
    const since = filter.since ?? iso(this.#clock.now() - lookBack)
    const start = await placeOf(this.#events, caller.account_id, since)
    const search = new Hearing(filter, start, filter.since === undefined ? this.#given.get(key) : undefined)
    // one that was cut off waits for nothing
    const turn = async (): Promise<void> => (signal.aborted ? undefined : take())
    const stop = this.#listen(identityId, search.hear)
    const look = (): Promise<Event | undefined> => this.#stored(caller, identityId, search, turn)
    try {
      const found = (await look()) ?? (await search.next(filter.timeout * 1000, signal))
      // many may end at once
      await turn()
      await this.#requireStill(caller, identityId, found)
      if (found) return this.#answer(key, found, signal)
      // read before the last look: what is committed by now is either given, or comes after the place we name
      const last = await this.#events.last(sql`identity_id = ${identityId}`)
      const missed = await look()
      return missed ? this.#answer(key, missed, signal) : nothing(goOn(filter.since, start.seq, last))
    } finally {
      stop()
    }
  }

  /** How many calls are waiting now. */
  get size(): number {
    let count = 0
    for (const listeners of this.#heard.values()) count += listeners.size
    return count
  }

  /** What is wanted of the log, from where the search has looked so far up to its present end. */
  async #stored(caller: Caller, identityId: string, search: Hearing, turn: () => Promise<void>): Promise<Event | undefined> {
    const end = await endOf(this.#events)
    const { types, condition } = search
    const upToEnd = sql`${condition} AND seq <= ${end}`
    const whose = { account_id: caller.account_id, identity_id: identityId, types, condition: upToEnd, ascending: true }
    while (search.place < end) {
      const batch = await this.#events.glance({ ...whose, after: search.place }, glanced)
      for (const event of batch) {
        search.place = event.seq
        if (search.wants(event) && (await this.#lives(event))) return this.#events.at(event.seq)
      }
      if (batch.length < glanced) {
        search.place = end
        return undefined
      }
      // a long look must not hold up everybody else
      await nextTurn()
      await turn()
    }
    return undefined
  }

  /** Counts a call until the answer is called. */
  #enter(caller: Caller): () => void {
    const bounds = [
      { whose: caller.account_id, most: maxOfAccount, of: 'account' },
      { whose: holderOf(caller), most: maxOfKey, of: caller.key_id === null ? 'session' : 'key' },
    ]
    for (const { whose, most, of } of bounds) {
      if ((this.#inHand.get(whose) ?? 0) < most) continue
      throw new Fault(
        'rate_limited',
        `${most} calls of this ${of} wait for messages already, which is as many as may. Try again when one has ended, or hear of all identities by one live connection (POST /v1/realtime/token) or a webhook.`,
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
    if (!(await this.#admitted(caller))) throw noLongerAdmitted(caller)
    if (found?.type === 'identity.deleted') await this.#identities.row(caller, identityId)
  }

  #answer(key: string, event: Event, signal: AbortSignal): WaitAnswer {
    // who has hung up was given nothing
    if (!signal.aborted) this.#note(key, event)
    const answered = { timed_out: false, since: event.id }
    if (event.type === 'sms.received') {
      const item = { ...(event.data as Sms), type: 'sms' as const }
      return { ...answered, item, codes: item.codes, links: this.#linksIn(item.body) }
    }
    const item = { ...(event.data as Email), type: 'email' as const }
    return { ...answered, item, codes: item.codes, links: item.links }
  }

  #lives(event: Event): Promise<boolean> {
    const { id } = event.data as { id: string }
    return event.type === 'sms.received' ? this.#sms.lives(id) : this.#emails.exists(id)
  }

  #note(key: string, event: Event): void {
    const now = this.#clock.now()
    const given = [...(this.#given.get(key) ?? [])].filter(([, at]) => at > now - lookBack)
    this.#given.delete(key)
    if (this.#given.size >= remembered) this.#given.delete(this.#given.keys().next().value!)
    this.#given.set(key, new Map([...given, [event.seq, now]]))
  }

  #listen(identityId: string, listener: (event: Event) => void): () => void {
    const listeners = this.#heard.get(identityId) ?? new Set()
    this.#heard.set(identityId, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#heard.get(identityId) === listeners) this.#heard.delete(identityId)
    }
  }
}

/** Where the next wait begins: after the newest event, unless what was asked for lies later. */
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

/** What one call is waiting for, and what it heard meanwhile. */
class Hearing {
  readonly types: string[]
  readonly condition: Sql
  /** How far the log has been looked through. */
  place: number
  readonly #filter: WaitFilter
  readonly #given: ReadonlyMap<number, number> | undefined
  #heard: Event | undefined
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

  readonly hear = (event: Event): void => {
    if (this.#heard || (event.type !== 'identity.deleted' && !this.wants(event))) return
    this.#heard = event
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

  /** The first event heard since this was made; undefined after `milliseconds`, or when the call is cut off. */
  next(milliseconds: number, signal: AbortSignal): Promise<Event | undefined> {
    if (this.#heard || signal.aborted) return Promise.resolve(this.#heard)
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        resolve(this.#heard)
      }
      const timer = setTimeout(done, milliseconds)
      signal.addEventListener('abort', done)
      this.#wake = done
    })
  }
}

/** Whose count of waits a call is in. */
function holderOf({ key_id, session_id }: Caller): string {
  return String(key_id ?? session_id)
}

function typesFor(caller: Caller, filter: WaitFilter): string[] {
  const wanted = channels.filter(({ name }) => filter.channel === 'any' || filter.channel === name)
  const allowed = wanted.filter(({ scopes }) => may(caller, scopes))
  if (allowed.length === 0) {
    throw new Fault('forbidden', `Waiting for ${filter.channel} needs the scope ${wanted[0]!.scopes.join(' or ')}.`, {
      code: 'missing_scope',
    })
  }
  return allowed.map(({ type }) => type)
}
