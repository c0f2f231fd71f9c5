import type { Caller } from '../core/scopes.ts'
import type { Holder, Keys } from './keys.ts'
import type { Sessions } from './sign-in/sessions.ts'

/** Looks up keys and sessions by id, for objects that are created with one and must end with it. */
export class Holders {
  readonly #keys: Keys
  readonly #sessions: Sessions

  constructor(keys: Keys, sessions: Sessions) {
    this.#keys = keys
    this.#sessions = sessions
  }

  /** The current rights of a session or of a secret of a key; undefined once it has ended. */
  holder(id: string, secret: number): Promise<Holder | undefined> {
    return isSession(id) ? this.#sessions.holder(id) : this.#keys.holder(id, secret)
  }

  /** The listener gets the id of each key or session that was revoked, rotated or ended, once that is on disk. */
  onChange(listener: (id: string) => void): void {
    this.#keys.onChange(listener)
    this.#sessions.onChange(listener)
  }

  /** True if the credential that admitted a caller is still valid. */
  async stillAdmits(caller: Caller): Promise<boolean> {
    if (caller.session_id === null) return this.#keys.stillAdmits(caller)
    return (await this.#sessions.row(caller.session_id)) !== undefined
  }
}

/** True for the id of a session, false for that of a key. */
export function isSession(holderId: string): boolean {
  return holderId.startsWith('sess_')
}
