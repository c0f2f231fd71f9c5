import type { Cursors } from '../core/cursor.ts'
import { Fault, invalid } from '../core/fault.ts'
import { nearest } from '../core/nearest.ts'
import type { Caller } from '../core/scopes.ts'
import type { Paging } from '../core/shapes.ts'
import type { EventLog } from '../events/log.ts'
import type { EventTypes } from '../events/catalogue.ts'
import { ofTypes } from '../events/catalogue.ts'
import type { Identities } from '../identities/identities.ts'
import type { Emails } from '../mail/emails.ts'
import type { Messages } from '../sms/messages.ts'
import { sql } from '../store/database.ts'
import { fitting } from '../store/page.ts'
import { envelopeOf } from './model.ts'
import type { EventEnvelope, EventFilter, Message } from './model.ts'

interface Parts {
  cursors: Cursors
  events: EventLog
  types: EventTypes
  identities: Identities
  emails: Emails
  sms: Pick<Messages, 'heads' | 'chronological'>
}

type Listed<Item> = { data: Item[]; has_more: boolean; next_cursor: string | null }

/** What happened to one identity: its events, and its messages in the order they came. */
export class Timeline {
  readonly #cursors: Cursors
  readonly #events: EventLog
  readonly #types: EventTypes
  readonly #identities: Identities
  readonly #emails: Emails
  readonly #sms: Parts['sms']

  constructor(parts: Parts) {
    this.#cursors = parts.cursors
    this.#events = parts.events
    this.#types = parts.types
    this.#identities = parts.identities
    this.#emails = parts.emails
    this.#sms = parts.sms
  }

  /** Newest first; with `since` oldest first from there. Only types the caller may read. */
  async events(caller: Caller, identityId: string, filter: EventFilter): Promise<Listed<EventEnvelope>> {
    await this.#identities.row(caller, identityId)
    const { limit, cursor, offset } = filter
    requireOneWay(cursor, offset)
    const visible = this.#types.visibleTo(caller)
    if (filter.type !== undefined) this.#requireSensible(filter.type)
    const names = filter.type === undefined ? visible : visible.filter((name) => name === filter.type)
    const condition = sql`identity_id = ${identityId} AND ${ofTypes(names)}`
    const list = `events ${identityId} ${filter.type ?? ''} ${filter.since === undefined ? 'newest' : 'oldest'}`
    const position = cursor === undefined ? undefined : this.#cursors.read(list, cursor)
    const { events: rows, has_more } =
      filter.since === undefined
        ? await this.#events.before(position ?? Number.MAX_SAFE_INTEGER, limit, condition, offset)
        : await this.#events.after(position ?? (await this.start(caller, identityId, filter.since)), limit, condition, offset)
    return { data: rows.map(envelopeOf), has_more, next_cursor: has_more ? this.#cursors.write(list, rows.at(-1)!.seq) : null }
  }

  /** Throws Fault invalid_request for a name that no event has or will have: a slip would look as if nothing had happened. */
  #requireSensible(type: string): void {
    const published = [...this.#types.published().keys()]
    // ours, although no event of it is published yet
    const spaces = new Set(['agent', ...published.map((name) => name.split('.')[0])])
    const [space, ...rest] = type.split('.')
    // under other names others report what happened
    if (published.includes(type) || (rest.length > 0 && !spaces.has(space!.toLowerCase()))) return
    const near = nearest(type, published)
    const hint = near === undefined ? '' : ` Did you mean ${near}?`
    throw invalid('type', `There is no event ${type}.${hint} The events are ${published.join(', ')}.`, 'unknown_event')
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
    const from = cursor === undefined ? { email: 0, sms: 0 } : apart(this.#cursors.read(list, cursor))
    const most = offset + limit + 1
    const [emails, sms] = await Promise.all([
      this.#emails.heads(identityId, from.email, most),
      this.#sms.heads(identityId, from.sms, most),
    ])
    const merged = inOrder(emails, sms)
    const wished = merged.slice(offset, offset + limit)
    const carried = fitting(
      wished.map(({ octets }) => octets),
      limit,
    )
    const [before, shown] = [counted(merged.slice(0, offset)), wished.slice(0, carried)]
    const wanted = counted(shown)
    const [foundEmails, foundSms] = await Promise.all([
      this.#emails.chronological(identityId, from.email, wanted.email, before.email),
      this.#sms.chronological(identityId, from.sms, wanted.sms, before.sms),
    ])
    const data = shown.flatMap(({ type }): Message[] => {
      const one = type === 'sms' ? foundSms.shift() : foundEmails.shift()?.email
      // what was deleted meanwhile is left out
      return one ? [{ ...one, type } as Message] : []
    })
    const has_more = merged.length > offset + carried
    const last = (type: Head['type']): number =>
      merged.slice(0, offset + carried).findLast((one) => one.type === type)?.seq ?? from[type]
    const next = has_more ? together({ email: last('email'), sms: last('sms') }) : 0
    return { data, has_more, next_cursor: has_more ? this.#cursors.write(list, next) : null }
  }
}

interface Head {
  type: 'email' | 'sms'
  seq: number
  created_at: string
  /** How large it is when it is shown. */
  octets: number
}

type Place = Record<Head['type'], number>

/** Two lists, each in its own order, as one in the order of time. */
function inOrder(emails: readonly Omit<Head, 'type'>[], sms: readonly Omit<Head, 'type'>[]): Head[] {
  const merged: Head[] = []
  let other = 0
  for (const email of emails) {
    for (let one = sms[other]; one && one.created_at < email.created_at; one = sms[other]) {
      merged.push({ ...one, type: 'sms' })
      other += 1
    }
    merged.push({ ...email, type: 'email' })
  }
  return [...merged, ...sms.slice(other).map((one): Head => ({ ...one, type: 'sms' }))]
}

function counted(heads: readonly Head[]): Place {
  const sms = heads.filter(({ type }) => type === 'sms').length
  return { email: heads.length - sms, sms }
}

/** A cursor holds one number: the two places share its 53 bits, 26 for text messages and 27 for e-mails. */
const room = 2 ** 26

function together({ email, sms }: Place): number {
  return email * room + sms
}

function apart(position: number): Place {
  return { email: Math.floor(position / room), sms: position % room }
}

function requireOneWay(cursor: string | undefined, offset: number): void {
  if (cursor !== undefined && offset > 0) throw invalid('offset', 'Give either cursor or offset, not both.')
}
