import type { LogPosition } from '../events/positions.ts'
import type { Sql } from '../store/database.ts'
import type { Listener } from './listeners.ts'
import type { MessageBrief, MessageFilter } from './message-filter.ts'

/** One waiting call, and the first message that arrived meanwhile. */
export class PendingWait implements Listener {
  readonly filter: MessageFilter
  readonly condition: Sql
  /** How far the log has been searched. */
  place: number
  readonly #given: ReadonlyMap<number, number> | undefined
  readonly #account: string | null
  #found: number | undefined
  #deleted = false
  #stopped = false
  #wake: (() => void) | undefined

  /** `given` has the positions of messages that it must not return; `account` is that of a key, whose call ends when it is stopped. */
  constructor(
    filter: MessageFilter,
    { seq, condition }: LogPosition,
    given: ReadonlyMap<number, number> | undefined,
    account: string | null,
  ) {
    this.filter = filter
    this.place = seq
    this.condition = condition
    this.#given = given
    this.#account = account
  }

  /** True once the identity was deleted. */
  get deleted(): boolean {
    return this.#deleted
  }

  wants({ seq }: MessageBrief): boolean {
    return !this.#given?.has(seq)
  }

  onMessage(message: MessageBrief): void {
    if (this.#found !== undefined || !this.wants(message)) return
    this.#found = message.seq
    this.#wake?.()
  }

  onDeleted(): void {
    this.#deleted = true
    this.#wake?.()
  }

  onStopped(accountId: string): void {
    if (accountId !== this.#account) return
    this.#stopped = true
    this.#wake?.()
  }

  /**
   * The position of the first message since this was created; undefined after `milliseconds`, or when the call is aborted, the identity
   * deleted or the account stopped.
   */
  next(milliseconds: number, signal: AbortSignal): Promise<number | undefined> {
    if (this.#found !== undefined || this.#deleted || this.#stopped || signal.aborted) return Promise.resolve(this.#found)
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        resolve(this.#found)
      }
      const timer = setTimeout(done, milliseconds)
      signal.addEventListener('abort', done)
      this.#wake = done
    })
  }
}
