import type { Scope } from '../core/scopes.ts'
import { type Database, type Reader, sql, type Transaction } from '../store/database.ts'
import type { EventNames } from './event-names.ts'

/** A distinct combination of event names and scopes of an account's webhooks, and the event types it matches. */
export interface Asked {
  events: string
  scopes: string
  types: ReadonlySet<string>
}

interface Kept {
  /** The account's change counter when it was read. */
  changes: number
  asked: readonly Asked[]
}

/** The most distinct combinations whose event types are cached, over all accounts. */
const maxKept = 2000

/** The event types wanted by the webhooks of each account, cached until one of the account's webhooks changes. */
export class WantedEvents {
  readonly #database: Database
  readonly #names: EventNames
  readonly #cache = new Map<string, Kept>()
  #size = 0

  constructor({ database, names }: { database: Database; names: EventNames }) {
    this.#database = database
    this.#names = names
  }

  /** Includes disabled webhooks, until the next change. */
  async of(accountId: string, reader: Reader = this.#database): Promise<readonly Asked[]> {
    const changes = await changesOf(reader, accountId)
    const kept = this.#cache.get(accountId)
    if (kept?.changes === changes) return kept.asked
    const rows = await reader.all<Omit<Asked, 'types'>>(
      sql`SELECT DISTINCT events, scopes FROM webhooks WHERE account_id = ${accountId} AND active = 1`,
    )
    const asked = rows.map(({ events, scopes }) => {
      const types = this.#names.typesOf(JSON.parse(events) as string[], new Set(JSON.parse(scopes) as Scope[]))
      return { events, scopes, types }
    })
    // a transaction may read rows that are never committed
    if (reader === this.#database) this.#store(accountId, { changes, asked })
    return asked
  }

  #store(accountId: string, kept: Kept): void {
    this.#forget(accountId)
    this.#cache.set(accountId, kept)
    this.#size += kept.asked.length
    for (const account of this.#cache.keys()) {
      if (this.#size <= maxKept || account === accountId) break
      this.#forget(account)
    }
  }

  #forget(accountId: string): void {
    this.#size -= this.#cache.get(accountId)?.asked.length ?? 0
    this.#cache.delete(accountId)
  }
}

/** Called in every transaction that changes what a webhook wants. */
export async function noteWebhookChange(tx: Transaction, accountId: string): Promise<void> {
  await tx.run(
    sql`INSERT INTO webhook_changes (account_id, changes) VALUES (${accountId}, 1) ON CONFLICT DO UPDATE SET changes = changes + 1`,
  )
}

async function changesOf(reader: Reader, accountId: string): Promise<number> {
  const row = await reader.get<{ changes: number }>(sql`SELECT changes FROM webhook_changes WHERE account_id = ${accountId}`)
  return row?.changes ?? 0
}
