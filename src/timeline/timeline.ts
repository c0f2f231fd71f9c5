import type { Basis } from '../basis.ts'
import { fitting, requireOneWay } from '../store/page.ts'
import { type Fault, invalid } from '../core/fault.ts'
import { nearest } from '../core/text.ts'
import type { Caller } from '../core/scopes.ts'
import type { Page, Paging } from '../core/shapes.ts'
import { positionOf } from '../events/positions.ts'
import type { Identities } from '../identities/identities.ts'
import type { Emails } from '../mail/emails.ts'
import type { Messages } from '../sms/messages.ts'
import { reputationReported } from '../trust/model.ts'
import { type Database, sql, type Sql } from '../store/database.ts'
import { timeout } from '../store/rows.ts'
import { envelopeOf, type EventEnvelope, type EventFilter, type Message } from './model.ts'

interface Deps extends Pick<Basis, 'cursors' | 'events' | 'types'> {
  database: Pick<Database, 'slow'>
  identities: Identities
  emails: Emails
  sms: Pick<Messages, 'heads' | 'at' | 'rowsQuery'>
}

export class Timeline {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Newest first; with `since` oldest first from there. Only event types that the caller may read. */
  async events(caller: Caller, identityId: string, filter: EventFilter): Promise<Page<EventEnvelope>> {
    await this.#deps.identities.row(caller, identityId)
    const { limit, offset } = filter
    requireOneWay(filter)
    const visible = this.#deps.types.visibleTo(caller)
    const { names, ofReport } = this.#named(visible, filter.type)
    const ascending = filter.since !== undefined
    const list = `events ${identityId} ${filter.type ?? ''} ${ascending ? 'oldest' : 'newest'}`
    const position = this.#deps.cursors.start(list, filter)
    const { seq, condition } =
      filter.since === undefined ? fromTheEnd : await positionOf(this.#deps.events, caller.account_id, filter.since)
    const whose = {
      account_id: caller.account_id,
      identity_id: identityId,
      types: names,
      condition: sql`${condition} AND ${ofReport}`,
      ascending,
      after: position ?? seq,
    }
    const { events: rows, has_more } = await this.#deps.events.list(whose, limit, offset)
    return {
      data: rows.map(envelopeOf),
      has_more,
      next_cursor: has_more ? this.#deps.cursors.write(list, rows.at(-1)!.seq) : null,
    }
  }

  /**
   * The events that a filter names, and the condition for a report that an identity made or that is about it: its own type (`positive`, or any other
   * dotted name) is in its data. Throws Fault invalid_request for an impossible name: a typo would look like an empty result.
   */
  #named(visible: readonly string[], type: string | undefined): { names: readonly string[]; ofReport: Sql } {
    if (type === undefined) return { names: visible, ofReport: always }
    const published = [...this.#deps.types.published().keys()]
    if (published.includes(type)) return { names: visible.filter((name) => name === type), ofReport: always }
    // a reserved prefix, although it has no published event yet
    const spaces = new Set(['agent', ...published.map((name) => name.split('.')[0])])
    const [space, ...rest] = type.split('.')
    if (!counted.has(type) && (rest.length === 0 || spaces.has(space!.toLowerCase()))) {
      throw unknownEvent('type', type, published)
    }
    const names = visible.filter((name) => name === reputationReported.name)
    return { names, ofReport: sql`json_extract(data, '$.type') = ${type}` }
  }

  /** All messages, oldest first. */
  async messages(caller: Caller, identityId: string, paging: Paging): Promise<Page<Message>> {
    await this.#deps.identities.row(caller, identityId)
    const { limit, offset } = paging
    const list = `messages ${identityId}`
    const position = this.#deps.cursors.start(list, paging)
    const from = position === undefined ? await this.#skip(caller, identityId, offset) : positionsOf(position)
    const [emails, sms] = await Promise.all([
      this.#deps.emails.timelineEntries(caller, identityId, from.email, limit + 1),
      this.#deps.sms.heads(identityId, from.sms, limit + 1),
    ])
    const merged = inOrder(emails, sms)
    const carried = fitting(
      merged.map(({ octets }) => octets),
      limit,
    )
    const returned = merged.slice(0, carried)
    const seqs = (type: Head['type']): number[] => returned.filter((one) => one.type === type).map(({ seq }) => seq)
    const [foundEmails, foundSms] = await Promise.all([
      this.#deps.emails.bySeq(caller, seqs('email')),
      this.#deps.sms.at(seqs('sms')),
    ])
    const data = returned.flatMap(({ type, seq }): Message[] => {
      const one = (type === 'sms' ? foundSms : foundEmails).get(seq)
      // messages deleted meanwhile are omitted
      return one ? [{ ...one, type } as Message] : []
    })
    const has_more = merged.length > carried
    const last = (type: Head['type']): number => seqs(type).at(-1) ?? from[type]
    const next = has_more ? together({ email: last('email'), sms: last('sms') }) : 0
    return { data, has_more, next_cursor: has_more ? this.#deps.cursors.write(list, next) : null }
  }

  /** The position after this many messages. */
  async #skip({ account_id }: Caller, identityId: string, count: number): Promise<Place> {
    if (count === 0) return { email: 0, sms: 0 }
    // where the times of a list are not in order, each message counts as no earlier than those before it
    const some = (kind: Head['type'], rows: Sql): Sql =>
      sql`SELECT ${kind} AS type, seq, max(created_at) OVER (ORDER BY seq) AS reached FROM (${rows} ORDER BY seq LIMIT ${count}) AS listed`
    const merged = sql`${some('email', this.#deps.emails.timelineRows(identityId))} UNION ALL ${some('sms', this.#deps.sms.rowsQuery(identityId))}`
    const [place] = await this.#deps.database.slow<Place>(
      sql`SELECT coalesce(max(CASE type WHEN 'email' THEN seq END), 0) AS email, coalesce(max(CASE type WHEN 'sms' THEN seq END), 0) AS sms
        FROM (SELECT type, seq FROM (${merged}) AS merged ORDER BY reached, type, seq LIMIT ${count}) AS skipped`,
      timeout,
      account_id,
    )
    return place!
  }
}

/** 400: a filter names an event that there is not. */
export function unknownEvent(param: string, type: string, published: readonly string[]): Fault {
  const near = nearest(type, published)
  const hint = near === undefined ? '' : ` Did you mean ${near}?`
  return invalid(param, `There is no event ${type}.${hint} The events are ${published.join(', ')}.`, 'unknown_event')
}

const always = sql`1 = 1`
const fromTheEnd = { seq: undefined, condition: always }

/** Types of reports that are no dotted names. */
const counted = new Set(['positive', 'negative', 'dispute'])

interface Head {
  type: 'email' | 'sms'
  seq: number
  created_at: string
  /** The size of its JSON. */
  octets: number
}

type Place = Record<Head['type'], number>

/** Merges two lists, each in its own order, by time. */
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

/** A cursor holds one number: the two positions share its 53 bits, 26 for text messages and 27 for e-mails. */
const positionRange = 2 ** 26

function together({ email, sms }: Place): number {
  return email * positionRange + sms
}

function positionsOf(position: number): Place {
  return { email: Math.floor(position / positionRange), sms: position % positionRange }
}
