import type { Caller } from '../core/scopes.ts'
import type { Holder, Keys } from './keys.ts'
import type { Sessions } from './sign-in/sessions.ts'

/** Keys and sessions alike, by id: for what is made with one and must end with it. */
export class Holders {
  readonly #keys: Keys
  readonly #sessions: Sessions

  constructor(keys: Keys, sessions: Sessions) {
    this.#keys = keys
    this.#sessions = sessions
  }

  /** What a session, or a secret of a key, is good for now; undefined once it has ended. */
  holder(id: string, secret: number): Promise<Holder | undefined> {
    return id.startsWith('sess_') ? this.#sessions.holder(id) : this.#keys.holder(id, secret)
  }

  /** Hears the id of each that was revoked, rotated or ended, once that is on disk. */
  onChange(listener: (id: string) => void): void {
    this.#keys.onChange(listener)
    this.#sessions.onChange(listener)
  }

  /** Whether what once admitted a caller still would. */
  async stillAdmits(caller: Caller): Promise<boolean> {
    if (caller.session_id === null) return this.#keys.stillAdmits(caller)
    return (await this.#sessions.row(caller.session_id)) !== undefined
  }
}
