import type { PacedWork } from '../core/paced-work.ts'
import type { EventLog } from '../events/log.ts'
import { Frames } from './frames.ts'

/** Who is asked about an event later. */
export interface Matcher {
  readonly account_id: string
  match(frames: Frames): void
  /** More events came than could be looked at. */
  overrun(): void
}

interface Waiting {
  seq: number
  matchers: Matcher[]
  /** Of the first that waits: the others are read again when it is their turn. */
  frames: Frames | undefined
}

/** Events of one account that may wait to be matched: of all but one only the place in the log is kept. */
const most = 1000

interface Deps {
  paced: PacedWork
  events: Pick<EventLog, 'findAt'>
  failed: (error: unknown) => void
}

/** Events that patterns have yet to look at, in their order: one matcher at a time, accounts by turn. */
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
    else if (waiting.length >= most) matcher.overrun()
    else {
      const first = waiting.length === 0
      waiting.push({ seq, matchers: [matcher], frames: first ? frames : undefined })
      if (!first) return
      this.#accounts.set(account_id, waiting)
      // all who hear of the event are there before the first is asked
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
      for (const matcher of one.matchers) matcher.overrun()
      throw error
    }
    const matcher = one.matchers.shift()
    if (one.matchers.length === 0 || !one.frames) waiting.shift()
    if (matcher && one.frames) matcher.match(one.frames)
  }

  /** Undefined for an event that is not in the log any more. */
  async #read(seq: number): Promise<Frames | undefined> {
    const event = await this.#deps.events.findAt(seq)
    return event && new Frames(event)
  }
}
