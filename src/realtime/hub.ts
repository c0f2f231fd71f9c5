import { FairQueue } from '../core/work/fair-queue.ts'
import { Turns } from '../core/work/paced-work.ts'
import type { EventLog } from '../events/log.ts'
import type { Event } from '../events/model.ts'
import { Frames } from './frames.ts'

/** Receives events of one account. */
export interface Watcher {
  readonly account_id: string
  receive(frames: Frames): void
  /** An event could not be read, and is not received. */
  missed(): void
}

type Header = Pick<Event, 'seq' | 'type' | 'account_id' | 'identity_id'>

/** An event that is passed to its watchers. */
interface Delivery {
  header: Header
  /** Set for the first event of its account in the queue only; the others are read again at their turn. */
  frames: Frames | undefined
  /** The watchers that are still to receive it, once it has begun. */
  rest: Iterator<Watcher> | undefined
}

interface Options {
  /** Called for each event after its watchers. */
  passed?: (event: Header) => void
  /** Called with the error of a watcher. */
  failed: (error: unknown) => void
}

/**
 * Passes each event of the log to the watchers of its identity or account, a few milliseconds at a time: in order within an account, and accounts in
 * turn. Without watchers it costs one lookup.
 */
export class Hub {
  readonly #watchers = new Map<string, Set<Watcher>>()
  readonly #events: EventLog
  readonly #options: Options
  readonly #queue = new FairQueue<Delivery>()
  #running = false

  constructor(events: EventLog, options: Options) {
    this.#events = events
    this.#options = options
    events.subscribe((event) => this.#hear(event))
  }

  /** `place` is the id of an identity or of an account. Returns a function that stops watching. */
  watch(place: string, watcher: Watcher): () => void {
    const watchers = this.#watchers.get(place) ?? new Set()
    this.#watchers.set(place, watchers.add(watcher))
    return () => {
      watchers.delete(watcher)
      if (watchers.size === 0 && this.#watchers.get(place) === watchers) this.#watchers.delete(place)
    }
  }

  #hear(event: Event): void {
    const { seq, type, account_id, identity_id } = event
    const first = this.#queue.sizeOf(account_id) === 0
    if (first && !this.#isWatched(event)) {
      this.#pass(event)
      return
    }
    const header = { seq, type, account_id, identity_id }
    this.#queue.push(account_id, { header, frames: first ? new Frames(event) : undefined, rest: undefined })
    if (!this.#running) void this.#run()
  }

  async #run(): Promise<void> {
    this.#running = true
    const turns = new Turns()
    while (this.#queue.size > 0) {
      const delivery = this.#queue.peek()!
      if (!delivery.frames) await this.#read(delivery)
      const over = this.#deliver(delivery, turns)
      this.#queue.shift()
      if (over) this.#pass(delivery.header)
      else this.#queue.unshift(delivery.header.account_id, delivery)
      // also after the last: what is heard in the same turn waits for the next
      if (turns.due || this.#queue.size === 0) await turns.yield()
    }
    this.#running = false
  }

  /** Returns whether all have received it. */
  #deliver(delivery: Delivery, turns: Turns): boolean {
    const { header, frames } = delivery
    if (!frames) return true
    const places = placesOf(header)
    // those who begin to watch later have a later position in the log
    const rest = (delivery.rest ??= new Set(this.#watchersOf(header)).values())
    for (let next = rest.next(); !next.done; next = rest.next()) {
      const watcher = next.value
      if (this.#isWatching(watcher, places)) this.#call(() => watcher.receive(frames))
      if (turns.due) return false
    }
    return true
  }

  async #read(delivery: Delivery): Promise<void> {
    const { seq } = delivery.header
    try {
      const event = await this.#events.findAt(seq)
      if (event) delivery.frames = new Frames(event)
    } catch (error) {
      this.#options.failed(error)
      for (const watcher of this.#watchersOf(delivery.header)) this.#call(() => watcher.missed())
    }
  }

  #pass(event: Header): void {
    this.#call(() => this.#options.passed?.(event))
  }

  #isWatched(event: Header): boolean {
    return placesOf(event).some((place) => this.#watchers.has(place))
  }

  #watchersOf(event: Header): Watcher[] {
    // a place may be any text from a subscriber: the account decides
    return placesOf(event)
      .flatMap((place) => [...(this.#watchers.get(place) ?? [])])
      .filter(({ account_id }) => account_id === event.account_id)
  }

  #isWatching(watcher: Watcher, places: readonly string[]): boolean {
    return places.some((place) => this.#watchers.get(place)?.has(watcher))
  }

  // a failing watcher does not affect the others
  #call(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.#options.failed(error)
    }
  }
}

function placesOf({ identity_id, account_id }: Header): string[] {
  return identity_id === null ? [account_id] : [identity_id, account_id]
}
