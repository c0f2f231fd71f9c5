import { separateTurn } from '../core/work/paced-work.ts'
import type { EventLog } from '../events/log.ts'
import { ofTypes } from '../events/catalogue.ts'
import { endOf, type LogPosition, markerAt, positionOf } from '../events/positions.ts'
import { sql, type Sql } from '../store/database.ts'
import type { Frames } from './frames.ts'
import type { Hub, Watcher } from './hub.ts'
import type { ChannelName } from './model.ts'
import type { Socket } from './socket.ts'
import type { StoredFrames } from './stored-frames.ts'
import { lengthOf } from './text-frame.ts'

/** The events sent and log positions searched in one turn, so that a long read does not block others. */
const page = 8
const stretch = 10_000

/** Bytes of a frame after which others get their turn: to read and write a large event takes milliseconds. */
const large = 16 * 1024

export interface SubscriptionDeps {
  events: EventLog
  hub: Hub
  stored: StoredFrames
}

export interface SubscriptionTarget {
  channel: ChannelName
  account_id: string
  /** Null for all identities of the account. */
  identity_id: string | null
  types: ReadonlySet<string>
  /** Those of them that the client asked for; undefined: all. */
  wanted?: ReadonlySet<string> | undefined
}

/**
 * One channel on one socket: the stored events since a position, then live events, in commit order, each once. While it catches up, live
 * events are not buffered: they are read from the log.
 */
export class Subscription implements Watcher {
  readonly account_id: string
  readonly channel: ChannelName
  readonly identity_id: string | null
  readonly #socket: Socket
  readonly #events: EventLog
  readonly #stored: StoredFrames
  readonly #stop: () => void
  readonly #chosen: ReadonlySet<string> | undefined
  #types: ReadonlySet<string>
  #position = 0
  #newest = 0
  #live = false
  #over = false

  constructor(socket: Socket, { events, hub, stored }: SubscriptionDeps, subject: SubscriptionTarget) {
    this.#socket = socket
    this.#events = events
    this.#stored = stored
    this.channel = subject.channel
    this.account_id = subject.account_id
    this.identity_id = subject.identity_id
    this.#chosen = subject.wanted
    this.#types = this.#among(subject.types)
    this.#stop = hub.watch(subject.identity_id ?? subject.account_id, this)
  }

  /**
   * Resolves its position; returns the event (or time) after which it delivers everything. `read` must follow. Throws Fault for an invalid
   * `since`.
   */
  async place(since: string | undefined): Promise<{ since: string; place: LogPosition }> {
    if (since !== undefined) return { since, place: await positionOf(this.#events, this.account_id, since) }
    const seq = await endOf(this.#events)
    return { since: await markerAt(this.#events, seq, this.#whose()), place: { seq, condition: sql`1 = 1` } }
  }

  /** Sends the stored events after the position, then live events. Resolves when it has caught up. */
  async read({ seq, condition }: LogPosition): Promise<void> {
    if (!this.#wanted) return
    let low = seq
    const end = Math.max(seq, await endOf(this.#events))
    for (let last = end; low < last && this.#wanted; last = Math.max(end, this.#newest)) {
      // the store answers synchronously
      await separateTurn()
      const high = Math.min(low + stretch, last)
      const wanted = sql`${this.#whose()} AND ${ofTypes([...this.#types])} AND ${condition} AND seq <= ${high}`
      const found = await this.#events.seqs(low, page, wanted)
      for (const place of found) await this.#sendStored(place)
      low = found.length < page ? high : found.at(-1)!
    }
    this.#position = low
    this.#live = true
  }

  receive(frames: Frames): void {
    const { seq, type } = frames.event
    if (!this.#types.has(type)) return
    if (!this.#live) this.#newest = seq
    else if (seq > this.#position) {
      this.#position = seq
      this.#socket.send(frames.plain(this.channel))
    }
  }

  missed(): void {
    this.#socket.close(1011, 'the event log could not be read; reconnect and resume with since')
  }

  /** Applies the event types of a new token. */
  renew(types: ReadonlySet<string>): void {
    this.#types = this.#among(types)
  }

  end(): void {
    this.#over = true
    this.#stop()
  }

  /** One at a time, and only the frame is kept while the client reads: events may be large, and the client slow. */
  async #sendStored(seq: number): Promise<void> {
    const frame = this.#wanted ? await this.#stored.read(seq, this.channel) : undefined
    if (!frame) return
    await this.#socket.sendPaced(frame)
    if (lengthOf(frame) > large) await separateTurn()
  }

  #among(types: ReadonlySet<string>): ReadonlySet<string> {
    const chosen = this.#chosen
    return chosen ? new Set([...types].filter((type) => chosen.has(type))) : types
  }

  get #wanted(): boolean {
    return !this.#over && this.#socket.open
  }

  #whose(): Sql {
    const { identity_id, account_id } = this
    return identity_id === null
      ? sql`account_id = ${account_id}`
      : sql`identity_id = ${identity_id} AND account_id = ${account_id}`
  }
}
