import type { EventLog } from '../events/log.ts'
import type { Event } from '../events/model.ts'

/** The events that a call waits for. */
interface Awaited {
  account_id: string
  /** Null: of the whole account. */
  identity_id: string | null
  types: readonly string[]
}

/** One call that waits for events; it counts those since it began, so that none between a read and the wait is missed. */
export class FeedWait {
  readonly #types: ReadonlySet<string>
  readonly #identity: string | null
  readonly #end: () => void
  #heard = false
  #wake: (() => void) | undefined

  constructor({ identity_id, types }: Awaited, end: () => void) {
    this.#types = new Set(types)
    this.#identity = identity_id
    this.#end = end
  }

  hear({ type, identity_id }: Event): void {
    if (type !== 'account.stopped' && !this.#wants(type, identity_id)) return
    // its caller is looked at again first
    this.#heard = true
    this.#wake?.()
  }

  #wants(type: string, identityId: string | null): boolean {
    if (this.#identity !== null && identityId !== this.#identity) return false
    // the deletion of the identity ends the call
    return this.#types.has(type) || (this.#identity !== null && type === 'identity.deleted')
  }

  /** True once there was an event since the last call; false after `milliseconds`, or when the signal aborts. */
  async next(milliseconds: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#heard && milliseconds > 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer)
          signal.removeEventListener('abort', done)
          this.#wake = undefined
          resolve()
        }
        const timer = setTimeout(done, milliseconds)
        signal.addEventListener('abort', done)
        this.#wake = done
      })
    }
    const heard = this.#heard
    this.#heard = false
    return heard
  }

  end(): void {
    this.#end()
  }
}

/** All calls that wait for events, by account. */
export class FeedWaits {
  readonly #waiting = new Map<string, Set<FeedWait>>()

  constructor(events: Pick<EventLog, 'subscribe'>) {
    events.subscribe((event) => {
      for (const wait of this.#waiting.get(event.account_id) ?? []) wait.hear(event)
    })
  }

  get size(): number {
    let size = 0
    for (const { size: own } of this.#waiting.values()) size += own
    return size
  }

  add(awaited: Awaited): FeedWait {
    const { account_id } = awaited
    const own = this.#waiting.get(account_id) ?? new Set()
    const wait = new FeedWait(awaited, () => {
      own.delete(wait)
      if (own.size === 0 && this.#waiting.get(account_id) === own) this.#waiting.delete(account_id)
    })
    this.#waiting.set(account_id, own.add(wait))
    return wait
  }
}
