import type { PacedWork } from '../core/work/paced-work.ts'
import type { EventLog } from '../events/log.ts'
import { Frames } from './frames.ts'

/** Matches an event later. */
export interface Matcher {
  readonly account_id: string
  match(frames: Frames): void
  /** More events arrived than fit into the queue, or one could not be read. */
  missed(): void
}

interface Waiting {
  seq: number
  matchers: Matcher[]
  /** Set for the first in the queue only; the others are read again at their turn. */
  frames: Frames | undefined
}

/** The most events of one account in the queue: for all but one only the position in the log is kept. */
const maxWaiting = 1000

interface Deps {
  paced: PacedWork
  events: Pick<EventLog, 'findAt'>
  failed: (error: unknown) => void
}

/** A queue of events to be matched by patterns, in order: one matcher at a time, accounts in turn. */
export class PatternQueue {
  readonly #deps: Deps
  readonly #accounts = new Map<string, Waiting[]>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  add(matcher: Matcher, frames: Frames): void {
    const { account_id } = matcher
    const { seq } = frames.event
    const waiting = this.#accounts.get(account_id) ?? []
    const last = waiting.at(-1)
    if (last?.seq === seq) last.matchers.push(matcher)
    else if (waiting.length >= maxWaiting) matcher.missed()
    else {
      const first = waiting.length === 0
      waiting.push({ seq, matchers: [matcher], frames: first ? frames : undefined })
      if (!first) return
      this.#accounts.set(account_id, waiting)
      // all matchers of the event are queued before the first runs
      queueMicrotask(() => void this.#work(account_id, waiting))
    }
  }

  async #work(accountId: string, waiting: Waiting[]): Promise<void> {
    const { paced, failed } = this.#deps
    while (waiting.length > 0) await paced.run(accountId, () => this.#step(waiting)).catch(failed)
    this.#accounts.delete(accountId)
  }

  async #step(waiting: Waiting[]): Promise<void> {
    const one = waiting[0]!
    try {
      one.frames ??= await this.#read(one.seq)
    } catch (error) {
      waiting.shift()
      for (const matcher of one.matchers) matcher.missed()
      throw error
    }
    const matcher = one.matchers.shift()
    if (one.matchers.length === 0 || !one.frames) waiting.shift()
    if (matcher && one.frames) matcher.match(one.frames)
  }

  /** Undefined for an event that is no longer in the log. */
  async #read(seq: number): Promise<Frames | undefined> {
    const event = await this.#deps.events.findAt(seq)
    return event && new Frames(event)
  }
}
