import type { Basis } from '../../basis.ts'
import type { Caller } from '../../core/scopes.ts'
import type { Identities } from '../../identities/identities.ts'
import { sql } from '../../store/database.ts'
import type { EmailStore } from '../email-store.ts'
import type { Emails } from '../emails.ts'
import { type Email, emailReleased } from '../model.ts'
import { requireUnbound } from './rules.ts'

interface Deps extends Pick<Basis, 'database'> {
  identities: Identities
  emails: Emails
  store: EmailStore
}

/** Releases what was set aside. */
export class Releases {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Lists an e-mail as others are, and raises an event the first time. */
  async release(caller: Caller, identityId: string, id: string, signal: AbortSignal): Promise<Email> {
    const { database, identities, emails, store } = this.#deps
    const before = await emails.get(caller, identityId, id, signal)
    requireUnbound(caller)
    if (before.set_aside === null) return before
    const email = { ...before, spam: false, set_aside: null }
    await database.transaction(async (tx) => {
      const { account_id } = await identities.row(caller, identityId, tx)
      const row = await tx.get<{ body_id: number }>(
        sql`UPDATE emails SET spam = 0, detail = json_remove(detail, '$.set_aside')
          WHERE id = ${id} AND identity_id = ${identityId} AND json_extract(detail, '$.set_aside') IS NOT NULL RETURNING body_id`,
      )
      // released by another call meanwhile
      if (!row) return
      const event = await store.sharedEvent(tx, row.body_id)
      await store.appendEvent(tx, emailReleased, { account_id, content: { body_id: row.body_id, event }, email }, {})
    })
    return emails.get(caller, identityId, id)
  }
}
