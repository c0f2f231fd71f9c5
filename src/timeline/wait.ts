import type { Basis } from '../basis.ts'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { iso } from '../core/clock.ts'
import { ConcurrentWaits, holderOf, type WaitingCall } from '../core/work/concurrent-waits.ts'
import { estimatedBytes, lruMapOfBytes } from '../core/memory.ts'
import { Fault } from '../core/fault.ts'
import { type Caller, may, noLongerAdmitted, type Scope } from '../core/scopes.ts'
import type { Event, EventReference } from '../events/model.ts'
import { endOf, positionOf } from '../events/positions.ts'
import type { Identities } from '../identities/identities.ts'
import type { Emails } from '../mail/emails.ts'
import type { Messages } from '../sms/messages.ts'
import type { Sms } from '../sms/model.ts'
import type { Email } from '../mail/model.ts'
import { linksIn } from '../message/links.ts'
import { sql } from '../store/database.ts'
import { type GivenMessages, givenMessages, lookBack } from './given-messages.ts'
import { Listeners } from './listeners.ts'
import { briefFrom, briefOf, examined, type MessageBrief, type MessageFields, MessageFilter } from './message-filter.ts'
import type { WaitAnswer, WaitFilter } from './model.ts'
import { PendingWait } from './pending-wait.ts'

const channels: { name: 'email' | 'sms'; type: string; scopes: Scope[] }[] = [
  { name: 'email', type: 'email.received', scopes: ['messages:read', 'emails:read'] },
  { name: 'sms', type: 'sms.received', scopes: ['messages:read', 'sms:read'] },
]

/** The most messages compared in one turn of the event loop. */
const messagesPerTurn = 25

/** The most bytes of answers of which further calls may get the same. */
const answersInMemory = 16 * 1024 * 1024

interface Deps extends Pick<Basis, 'clock' | 'events' | 'database'> {
  identities: Identities
  emails: Emails
  sms: Pick<Messages, 'briefs'>
  /** True if the caller's key or session is still valid: it may end while a call waits. */
  admitted: (caller: Caller) => Promise<boolean>
}

/** Waits for a message: searches the log first and then follows it; nothing in between is missed. */
export class Waiting {
  readonly #deps: Deps
  readonly #listeners = new Listeners()
  readonly #waits = new ConcurrentWaits(
    'messages',
    'receive events of all identities by one WebSocket (POST /v1/realtime/token) or a webhook',
  )
  readonly #given: GivenMessages

  /** By position in the log: many calls may wait for the same message, which is read and written once for all of them. */
  readonly #answers = lruMapOfBytes<WaitAnswer>(answersInMemory, estimatedBytes)

  constructor(deps: Deps) {
    this.#deps = deps
    this.#given = givenMessages(deps)
    deps.events.subscribe((event) => {
      if (event.type === 'account.stopped') return this.#listeners.tellStopped(event.account_id)
      if (!this.#listeners.has(event.identity_id)) return undefined
      if (event.type === 'identity.deleted') return this.#listeners.tellDeleted(event.identity_id)
      if (!channels.some(({ type }) => type === event.type)) return undefined
      this.#answers.set(String(event.seq), this.#answerOf(event))
      this.#listeners.tell(event)
    })
    deps.events.onRedaction(() => this.#answers.clear())
  }

  /** Throws Fault rate_limited, code `too_many_waits`. */
  async wait(caller: Caller, identityId: string, filter: WaitFilter, call: WaitingCall): Promise<WaitAnswer> {
    await this.#deps.identities.row(caller, identityId)
    const types = typesFor(caller, filter)
    const leave = this.#waits.enter(caller)
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
    { signal, turn: take }: WaitingCall,
  ): Promise<WaitAnswer> {
    const holder = holderOf(caller)
    const since = filter.since ?? iso(this.#deps.clock.now() - lookBack)
    const start = await positionOf(this.#deps.events, caller.account_id, since)
    const search = new PendingWait(
      new MessageFilter(filter, filter.types),
      start,
      filter.since === undefined ? await this.#given.of(holder, identityId) : undefined,
      caller.key_id === null ? null : caller.account_id,
    )
    // an aborted call waits for nothing
    const turn = async (): Promise<void> => (signal.aborted ? nextTurn() : take())
    const stop = this.#listeners.add(identityId, search)
    try {
      let found = await this.#stored(caller, identityId, search, turn)
      if (found === undefined) {
        found = await search.next(filter.timeout * 1000, signal)
        // many may end at the same time
        await turn()
      }
      await this.#requireStill(caller, identityId, search)
      const answer = await this.#answerAt(found)
      const give = async (seq: number, given: WaitAnswer): Promise<WaitAnswer> => {
        // a disconnected caller received nothing
        if (!signal.aborted) await this.#given.note(holder, identityId, seq)
        return given
      }
      if (answer) return await give(found!, answer)
      // read before the last search: what is committed by now is either returned, or comes after the returned position
      const last = await this.#deps.events.last(sql`identity_id = ${identityId}`)
      const missed = await this.#stored(caller, identityId, search, turn)
      const late = await this.#answerAt(missed)
      return late ? await give(missed!, late) : nothing(goOn(filter.since, start.seq, last))
    } finally {
      stop()
    }
  }

  get size(): number {
    return this.#listeners.size
  }

  /** The position of the first message in the log that is wanted, from the position searched so far to its end. */
  async #stored(caller: Caller, identityId: string, search: PendingWait, turn: () => Promise<void>): Promise<number | undefined> {
    const end = await endOf(this.#deps.events)
    const { filter, condition } = search
    const upToEnd = sql`${condition} AND seq <= ${end}`
    const whose = {
      account_id: caller.account_id,
      identity_id: identityId,
      types: filter.types,
      condition: upToEnd,
      ascending: true,
    }
    while (search.place < end) {
      const batch = await this.#deps.events.listReferences({ ...whose, after: search.place }, messagesPerTurn)
      for (const message of await this.#briefs(batch)) {
        search.place = message.seq
        if (search.wants(message) && filter.matches(message)) return message.seq
      }
      search.place = batch.at(-1)?.seq ?? search.place
      if (batch.length < messagesPerTurn) {
        search.place = end
        return undefined
      }
      // a long search yields to other work
      await turn()
    }
    return undefined
  }

  async #requireStill(caller: Caller, identityId: string, { deleted }: PendingWait): Promise<void> {
    if (!(await this.#deps.admitted(caller))) throw noLongerAdmitted(caller)
    if (deleted) await this.#deps.identities.row(caller, identityId)
  }

  /** Undefined for a message that was deleted meanwhile. The same object for the same message. */
  async #answerAt(seq: number | undefined): Promise<WaitAnswer | undefined> {
    if (seq === undefined) return undefined
    const known = this.#deps.events.knowsRedactions ? this.#answers.get(String(seq)) : undefined
    if (known) return known
    const event = await this.#deps.events.findAt(seq)
    if (!event || !briefOf(event)) return undefined
    const answer = this.#answerOf(event)
    this.#answers.set(String(seq), answer)
    return answer
  }

  #answerOf(event: Event): WaitAnswer {
    const answered = { timed_out: false, since: event.id }
    if (event.type === 'sms.received') {
      const item = { ...(event.data as Sms), type: 'sms' as const }
      return { ...answered, item, codes: item.codes, links: linksIn(item.body) }
    }
    const item = { ...(event.data as Email), type: 'email' as const }
    return { ...answered, item, codes: item.codes, links: item.links }
  }

  /** What filters look at in the messages of these events that still exist; the events themselves may be large. */
  async #briefs(batch: readonly EventReference[]): Promise<MessageBrief[]> {
    const idsOf = (wanted: string): string[] =>
      batch.flatMap(({ type, resource_id }) => (type === wanted && resource_id !== null ? [resource_id] : []))
    const [emails, texts] = [idsOf('email.received'), idsOf('sms.received')]
    const found = new Map<string, MessageFields>()
    if (emails.length > 0) for (const { id, ...fields } of await this.#deps.emails.briefs(emails, examined)) found.set(id, fields)
    if (texts.length > 0) for (const { id, from } of await this.#deps.sms.briefs(texts)) found.set(id, { from })
    return batch.flatMap(({ seq, type, resource_id }) => {
      const fields = found.get(resource_id ?? '')
      return fields ? [briefFrom(seq, type, fields)] : []
    })
  }
}

/** The event after which the next wait starts: the newest, unless the match is later. */
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
