import type { Event } from '../events/model.ts'
import type { Sms } from '../sms/model.ts'
import { envelopeOf } from '../timeline/model.ts'
import type { Filter } from './filter.ts'
import type { ChannelName } from './model.ts'
import { textFrame } from './text-frame.ts'

/** The type of a change to a row in the Supabase protocol. */
export type Change = 'INSERT' | 'UPDATE'

/** The frames of one event: each form is serialized once for all sockets. */
export class Frames {
  readonly event: Event
  readonly #plain = new Map<ChannelName, readonly Buffer[]>()
  readonly #rows = new Map<ChannelName, Buffer>()
  readonly #passed = new Map<ChannelName, Map<Filter, boolean>>()
  #envelope: string | undefined
  #record: Record<string, unknown> | undefined

  constructor(event: Event) {
    this.event = event
  }

  /** The frame of the plain protocol. */
  plain(channel: ChannelName): readonly Buffer[] {
    const made = this.#plain.get(channel) ?? textFrame(`{"type":"event","channel":"${channel}","event":${this.#enveloped()}}`)
    this.#plain.set(channel, made)
    return made
  }

  /** The type of the change; the first event of a sent text message is its result. */
  change(table: ChannelName): Change {
    const { type, data } = this.event
    if (table === 'agent_events' || /\.(?:received|queued)$|^(?:email|sms)\.held$/.test(type)) return 'INSERT'
    const { hold = null, sent_at } = data as Partial<Sms>
    // that of a held one was the hold
    if (hold !== null) return 'UPDATE'
    return type === 'sms.sent' || (type === 'sms.failed' && sent_at === null) ? 'INSERT' : 'UPDATE'
  }

  /** The row itself. */
  record(table: ChannelName): Record<string, unknown> {
    if (table !== 'agent_events') return this.event.data as Record<string, unknown>
    return (this.#record ??= { ...envelopeOf(this.event) })
  }

  /** True if the row passes the filter; evaluated once for all sockets with the same filter. */
  passes(table: ChannelName, filter: Filter): boolean {
    const known = this.#passed.get(table) ?? new Map<Filter, boolean>()
    const passed = known.get(filter) ?? filter.passes(this.record(table))
    this.#passed.set(table, known.set(filter, passed))
    return passed
  }

  /** The `data` of a `postgres_changes` frame, as JSON. Without column types clients leave the values unchanged. */
  row(table: ChannelName): Buffer {
    const made = this.#rows.get(table) ?? Buffer.from(this.#row(table))
    this.#rows.set(table, made)
    return made
  }

  #row(table: ChannelName): string {
    const type = this.change(table)
    const record = table === 'agent_events' ? this.#enveloped() : JSON.stringify(this.event.data)
    const old = type === 'UPDATE' ? `,"old_record":${JSON.stringify({ id: this.record(table)['id'] })}` : ''
    const head = { schema: 'public', table, commit_timestamp: this.event.created_at, type, errors: null, columns: [] }
    return `${JSON.stringify(head).slice(0, -1)},"record":${record}${old}}`
  }

  #enveloped(): string {
    this.#envelope ??= JSON.stringify(envelopeOf(this.event))
    return this.#envelope
  }
}
