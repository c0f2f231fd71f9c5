import type { EventLog } from '../events/log.ts'
import type { Event } from '../events/model.ts'
import { Frames } from './frames.ts'

/** Receives events of one account. */
export interface Watcher {
  readonly account_id: string
  receive(frames: Frames): void
}

/** Passes each event of the log to the watchers of its identity or account; without watchers it costs one lookup. */
export class Hub {
  readonly #watchers = new Map<string, Set<Watcher>>()

  constructor(events: EventLog) {
    events.subscribe((event) => this.#dispatch(event))
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

  #dispatch(event: Event): void {
    const near = this.#watchers.get(event.identity_id ?? '')
    const all = this.#watchers.get(event.account_id)
    if (!near && !all) return
    const frames = new Frames(event)
    const failures: unknown[] = []
    for (const watchers of [near, all]) {
      for (const watcher of watchers ?? []) {
        // a place may be any text from a subscriber: the account decides
        if (watcher.account_id !== event.account_id) continue
        try {
          watcher.receive(frames)
        } catch (error) {
          failures.push(error)
        }
      }
    }
    // a failing watcher does not affect the others; the event log reports it
    if (failures.length > 0) throw new AggregateError(failures, 'WebSockets could not be notified.')
  }
}
