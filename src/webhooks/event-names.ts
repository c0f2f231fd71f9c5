import { Fault, invalid } from '../core/fault.ts'
import { nearest } from '../core/text.ts'
import { type Caller, may, type Scope } from '../core/scopes.ts'
import type { EventTypes } from '../events/catalogue.ts'
import type { EventHeader } from '../events/model.ts'
import { type Database, type Reader, sql, type Transaction } from '../store/database.ts'
import { webhookTest } from './model.ts'
import type { WebhookRow } from './row.ts'

export class EventNames {
  readonly #types: EventTypes

  constructor(types: EventTypes) {
    this.#types = types
  }

  /** Throws Fault invalid_request with the list for an unknown name, and forbidden without its scope. */
  require(caller: Pick<Caller, 'scopes'>, names: readonly string[]): void {
    const known = this.#types.published()
    for (const [index, name] of names.entries()) {
      if (name === '*') continue
      const scopes = known.get(name)
      if (!scopes) {
        const near = nearest(name, known.keys())
        const hint = near === undefined ? '' : ` Did you mean ${near}?`
        throw invalid(
          `events.${index}`,
          `There is no event ${name}.${hint} The events are ${[...known.keys()].join(', ')}, and *.`,
          'unknown_event',
        )
      }
      if (!may(caller, scopes)) throw lacks(name, scopes)
    }
  }

  /** Throws Fault forbidden unless a caller may read every event of a webhook with the scopes `held`: required to change the webhook. */
  requireAll(caller: Pick<Caller, 'scopes'>, names: readonly string[], held: ReadonlySet<Scope>): void {
    for (const [name, scopes] of this.#types.published()) {
      const typesOf = (names.includes('*') && may({ scopes: held }, scopes)) || names.includes(name)
      if (typesOf && !may(caller, scopes)) throw lacks(name, scopes)
    }
  }

  /** The event types that match these names, with the scopes the webhook was created with. */
  typesOf(names: readonly string[], held: ReadonlySet<Scope>): Set<string> {
    const visible = this.#types.visibleTo({ scopes: held })
    return new Set(names.includes('*') ? visible : visible.filter((name) => names.includes(name)))
  }

  /** True if a webhook receives such an event as it is now: it may have changed since the event was delivered to it. */
  sentTo(
    { events, scopes, identity_id }: Pick<WebhookRow, 'events' | 'scopes' | 'identity_id'>,
    event: Pick<EventHeader, 'type' | 'identity_id'>,
  ): boolean {
    if (event.type === webhookTest.name) return true
    if (identity_id !== null && identity_id !== event.identity_id) return false
    return this.typesOf(JSON.parse(events) as string[], new Set(JSON.parse(scopes) as Scope[])).has(event.type)
  }
}

function lacks(name: string, scopes: readonly Scope[]): Fault {
  return new Fault('forbidden', `A webhook for ${name} requires a key with the scope ${scopes.join(' or ')}.`, {
    code: 'missing_scope',
    param: 'events',
  })
}

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
    sql`INSERT INTO webhook_changes (account_id, changes) VALUES (${accountId}, 1) ON CONFLICT (account_id)
      DO UPDATE SET changes = webhook_changes.changes + 1`,
  )
}

async function changesOf(reader: Reader, accountId: string): Promise<number> {
  const row = await reader.get<{ changes: number }>(sql`SELECT changes FROM webhook_changes WHERE account_id = ${accountId}`)
  return row?.changes ?? 0
}
