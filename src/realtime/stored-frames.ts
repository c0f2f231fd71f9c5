import { lruMapOfBytes } from '../core/memory.ts'
import type { EventLog } from '../events/log.ts'
import { Frames } from './frames.ts'
import type { ChannelName } from './model.ts'
import { lengthOf } from './text-frame.ts'

/** Bytes of kept frames. */
const maxKept = 8 * 1024 * 1024

/** Bytes of an entry besides its frame, about. */
const overhead = 300

/** The plain frames of stored events. They are kept for a while: after a restart many sockets resume from the same event, and share its memory. */
export class StoredFrames {
  readonly #events: EventLog
  readonly #kept = lruMapOfBytes<readonly Buffer[]>(maxKept, (frame) => lengthOf(frame) + overhead)
  #redactions = 0

  constructor(events: EventLog) {
    this.#events = events
    events.onRedaction(() => {
      this.#redactions += 1
      this.#kept.clear()
    })
  }

  /** Undefined for an event that is no longer in the log. */
  async read(seq: number, channel: ChannelName): Promise<readonly Buffer[] | undefined> {
    const key = `${channel} ${seq}`
    const kept = this.#events.knowsRedactions ? this.#kept.get(key) : undefined
    if (kept) return kept
    const before = this.#redactions
    const event = await this.#events.findAt(seq)
    const frame = event && new Frames(event).plain(channel)
    if (frame && this.#redactions === before) this.#kept.set(key, frame)
    return frame
  }
}
