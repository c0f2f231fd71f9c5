import type { Basis } from '../basis.ts'
import { Fault, invalid } from '../core/fault.ts'
import { PacedWork, Turns } from '../core/work/paced-work.ts'
import { type Caller, insufficientScope, may } from '../core/scopes.ts'
import type { Identities } from '../identities/identities.ts'
import type { Transaction } from '../store/database.ts'
import { type Emails, type Marks, marksOf, stored } from './emails.ts'
import type { BulkResult } from './model.ts'
import type { BulkChange } from './queries.ts'
import { findEmails } from './search/search.ts'

/** The most e-mails changed in one transaction, which also ends when it has taken its turn. */
const batchSize = 50

interface Deps extends Pick<Basis, 'database' | 'cursors'> {
  identities: Identities
  emails: Emails
}

type Changed = Pick<BulkResult, 'changed' | 'not_found' | 'failed'>
type Selected = Pick<BulkResult, 'has_more' | 'next_cursor'> & { ids: string[] }

/** One change of many e-mails: in small transactions, those of all accounts in turn. */
export class BulkChanges {
  readonly #deps: Deps
  readonly #paced = new PacedWork()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async apply(caller: Caller, identityId: string, input: BulkChange, signal: AbortSignal): Promise<BulkResult> {
    const { database, identities } = this.#deps
    requireOneChange(input)
    await identities.row(caller, identityId)
    const { ids, ...rest } = await this.#selected(caller, identityId, input)
    const result: Changed = { changed: [], not_found: [], failed: [] }
    for (let at = 0; at < ids.length;) {
      signal.throwIfAborted()
      const work = (tx: Transaction): Promise<Changed> =>
        this.#changeSome(tx, caller, identityId, ids.slice(at, at + batchSize), input)
      const { changed, not_found, failed } = await this.#paced.run(caller.account_id, () => database.transaction(work))
      result.changed.push(...changed)
      result.not_found.push(...not_found)
      result.failed.push(...failed)
      at += changed.length + not_found.length + failed.length
    }
    return { ...result, ...rest }
  }

  async #selected(caller: Caller, identityId: string, { ids, search, limit, cursor }: BulkChange): Promise<Selected> {
    if ((ids === undefined) === (search === undefined)) throw invalid('ids', 'Send either ids or search.')
    if (search === undefined) {
      if (cursor !== undefined) throw invalid('cursor', 'cursor continues a search; with ids all of them are changed at once.')
      return { ids: [...new Set(ids)], has_more: false, next_cursor: null }
    }
    // what is found tells what is in the e-mails
    const readers = ['messages:read', 'emails:read'] as const
    if (!may(caller, readers)) throw insufficientScope(readers, caller.person)
    const { found, ...rest } = await findEmails(this.#deps, caller, identityId, search, { limit, cursor, offset: 0 })
    return { ids: found.map(({ id }) => id), ...rest }
  }

  /** At least the first of them. */
  async #changeSome(
    tx: Transaction,
    caller: Caller,
    identityId: string,
    ids: readonly string[],
    input: BulkChange,
  ): Promise<Changed> {
    const { emails, identities } = this.#deps
    const { account_id } = await identities.row(caller, identityId, tx)
    const change = input.delete || input.purge ? undefined : marksOf(input)
    const result: Changed = { changed: [], not_found: [], failed: [] }
    const turns = new Turns()
    for (const id of ids) {
      try {
        const found = change
          ? await this.#mark(tx, identityId, id, change)
          : await emails.discard(tx, account_id, identityId, id, input.purge)
        if (found) result.changed.push(id)
        else result.not_found.push(id)
      } catch (error) {
        // nothing of this e-mail was written before
        if (!(error instanceof Fault) || error.type !== 'invalid_request') throw error
        result.failed.push({ id, code: error.code ?? error.type, message: error.message })
      }
      if (turns.due) break
    }
    return result
  }

  async #mark(tx: Transaction, identityId: string, id: string, marks: Marks): Promise<boolean> {
    const row = await stored(tx, identityId, id)
    if (row) await this.#deps.emails.mark(tx, row, marks)
    return row !== undefined
  }
}

/** Throws Fault invalid_request for a change that changes nothing, or that deletes and marks. */
function requireOneChange(input: BulkChange): void {
  const { read, unread } = input
  const marks = [read, unread, input.labels].some((one) => one !== undefined)
  const discards = input.delete || input.purge
  if (marks === discards) {
    const which = marks
      ? 'either read, unread and labels, or delete or purge'
      : 'at least one of read, unread, labels, delete and purge'
    throw invalid(marks ? 'delete' : 'read', `Send ${which}: what to do with these e-mails.`)
  }
}
