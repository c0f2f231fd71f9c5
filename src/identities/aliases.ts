import type { Basis } from '../basis.ts'
import type { Plan } from '../accounts/plan.ts'
import { iso, minute } from '../core/clock.ts'
import { sweep } from '../core/cron.ts'
import type { Log } from '../core/log.ts'
import { page } from '../store/page.ts'
import { conflict, Fault, invalid, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import { boxNames } from './role-names.ts'
import type { Caller } from '../core/scopes.ts'
import type { Page, Paging } from '../core/shapes.ts'
import type { Domains } from '../domains/domains.ts'
import type { Domain } from '../domains/model.ts'
import { type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import { window } from './cascade.ts'
import { claim, notForYou, notFree } from './claims.ts'
import type { Identities } from './identities.ts'
import type { Alias, AliasChange, DomainChange, NewAlias } from './model.ts'

interface AliasRow extends Omit<Alias, 'local_part'> {
  seq: number
}

interface Deps extends Pick<Basis, 'database' | 'clock' | 'cursors'> {
  plan: Plan
  domains: Domains
  identities: Identities
  log: Log
}

const columns = sql`aliases.*, addresses.identity_id`
const from = sql`aliases JOIN addresses ON addresses.address = aliases.address`

/**
 * Aliases and catch-alls: further addresses of a domain, delivered to identities of the domain's account. They end with the domain or the
 * identity. An address that was an alias stays reserved for its account, which may assign it again.
 */
export class Aliases {
  readonly #deps: Deps
  readonly #stopping = new AbortController()
  /** Deleted domains that may still have aliases. */
  readonly #deleted = new Set<string>()
  #sweeping: Promise<void> | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    deps.plan.counts(
      'aliases',
      (accountId) =>
        sql`SELECT count(*) AS n FROM aliases JOIN domains ON domains.id = aliases.domain_id WHERE domains.account_id = ${accountId}`,
    )
    // a batch ends with the identity or the domain; the rest accepts nothing any more, and ends soon after
    deps.identities.onRemove(async (tx, identityId) => {
      await this.leaveSome(tx, identityId)
      await tx.run(sql`UPDATE domains SET catch_all = NULL WHERE catch_all = ${identityId}`)
    })
    deps.domains.onRemove(async (tx, domainId) => {
      if ((await endSome(tx, domainId)) < window) return
      tx.afterCommit(() => this.#sweep([domainId]))
    })
  }

  /** Throws Fault conflict: `domain_not_verified`, or with `param` for an address that is taken or reserved. */
  async create(caller: Caller, domainId: string, { local_part, identity_id }: NewAlias): Promise<Alias> {
    const { database, clock, domains, plan } = this.#deps
    return database.transaction(async (tx) => {
      const domain = await domains.row(caller, domainId, tx)
      // read from this row: another account's domain can have the same name
      if (domain.receives !== 1 || (domain.is_default !== 1 && domain.status !== 'verified')) {
        const hint = 'set the records that GET /v1/domains shows, then POST /v1/domains/{id}/verify.'
        throw conflict(`${domain.name} is not verified, so it cannot have addresses yet; ${hint}`, {
          code: 'domain_not_verified',
        })
      }
      await this.#requireIdentity(tx, caller, identity_id, 'identity_id')
      await plan.require(tx, caller.account_id, 'aliases')
      const id = newId('alias')
      const address = `${local_part}@${domain.name}`
      const input = { address, account_id: caller.account_id, identity_id, alias_id: id }
      // the box's own domain belongs to the operator, any other to its account: a caller admitted here may use the remaining names
      if (boxNames.has(local_part)) throw notForYou(address, 'local_part')
      if (!(await claim(tx, input))) throw await notFree(tx, address, 'local_part')
      await tx.run(
        sql`INSERT INTO aliases (id, domain_id, address, created_at) VALUES (${id}, ${domainId}, ${address}, ${iso(clock.now())})`,
      )
      return toAlias(await this.#row(tx, domainId, id))
    })
  }

  async list(caller: Caller, domainId: string, paging: Paging): Promise<Page<Alias>> {
    const { database, cursors, domains } = this.#deps
    await domains.row(caller, domainId)
    return page<AliasRow, Alias>(database, cursors, paging, {
      name: `aliases ${domainId}`,
      columns,
      from,
      account: caller.account_id,
      where: sql`domain_id = ${domainId}`,
      present: toAlias,
    })
  }

  async get(caller: Caller, domainId: string, id: string): Promise<Alias> {
    const { database, domains } = this.#deps
    await domains.row(caller, domainId)
    return toAlias(await this.#row(database, domainId, id))
  }

  async update(caller: Caller, domainId: string, id: string, { identity_id }: AliasChange): Promise<Alias> {
    const { database, domains } = this.#deps
    return database.transaction(async (tx) => {
      await domains.row(caller, domainId, tx)
      const { address } = await this.#row(tx, domainId, id)
      if (identity_id !== undefined) {
        await this.#requireIdentity(tx, caller, identity_id, 'identity_id')
        await tx.run(sql`UPDATE addresses SET identity_id = ${identity_id} WHERE address = ${address}`)
      }
      return toAlias(await this.#row(tx, domainId, id))
    })
  }

  async remove(caller: Caller, domainId: string, id: string): Promise<{ id: string; deleted: true }> {
    const { database, domains } = this.#deps
    return database.transaction(async (tx) => {
      await domains.row(caller, domainId, tx)
      await this.#row(tx, domainId, id)
      await end(tx, sql`id = ${id}`)
      return { id, deleted: true }
    })
  }

  async changeDomain(caller: Caller, domainId: string, { catch_all }: DomainChange): Promise<Domain> {
    const { database, domains } = this.#deps
    return database.transaction(async (tx) => {
      await domains.row(caller, domainId, tx)
      if (catch_all !== undefined) {
        if (catch_all !== null) await this.#requireIdentity(tx, caller, catch_all, 'catch_all')
        await tx.run(sql`UPDATE domains SET catch_all = ${catch_all} WHERE id = ${domainId}`)
      }
      return domains.toDomain(tx, await domains.current(tx, domainId))
    })
  }

  /** Continues with the aliases of domains that were deleted before. */
  start(): void {
    const failed = (error: unknown): void => {
      if (!this.#stopping.signal.aborted) this.#deps.log.error({ err: error }, 'deleted domains could not be looked for')
    }
    void this.#deletedDomains()
      .then((ids) => this.#sweep(ids))
      .catch(failed)
  }

  /** The ids of deleted domains that still have aliases. Takes one index step for each domain with aliases, in a thread. */
  async #deletedDomains(): Promise<string[]> {
    const { database } = this.#deps
    // most boxes have none, and start no thread for it
    if (!(await database.get(sql`SELECT 1 FROM aliases LIMIT 1`))) return []
    const next = sql`SELECT min(domain_id) FROM aliases`
    const found = await database.slow<{ domain_id: string }>(
      sql`WITH RECURSIVE those (domain_id) AS (SELECT (${next}) UNION ALL
        SELECT (${next} WHERE aliases.domain_id > those.domain_id) FROM those WHERE those.domain_id IS NOT NULL)
        SELECT domain_id FROM those WHERE domain_id IS NOT NULL AND domain_id NOT IN (SELECT id FROM domains)`,
      minute,
    )
    return found.map(({ domain_id }) => domain_id)
  }

  /** Resolves when deleted domains have no aliases any more; undefined when they have none. */
  get work(): Promise<void> | undefined {
    return this.#sweeping
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#sweeping
  }

  /** Ends a batch of the aliases of a deleted identity. Returns undefined when none is left. */
  async leaveSome(tx: Transaction, identityId: string): Promise<number | undefined> {
    const its = sql`SELECT address FROM addresses WHERE identity_id = ${identityId} AND alias_id IS NOT NULL ORDER BY address LIMIT ${window}`
    await tx.run(sql`DELETE FROM aliases WHERE address IN (${its})`)
    const { changes } = await tx.run(sql`${free} WHERE address IN (${its})`)
    return changes < window ? undefined : 0
  }

  #sweep(domainIds: readonly string[]): void {
    for (const id of domainIds) this.#deleted.add(id)
    if (this.#deleted.size === 0) return
    this.#sweeping ??= sweep(() => this.#sweepSome(), this.#stopping.signal).catch((error: unknown) => {
      this.#sweeping = undefined
      this.#deps.log.error({ err: error }, 'aliases of a deleted domain could not be deleted')
    })
  }

  /** Ends a batch of the aliases of each deleted domain. Returns whether there may be more. */
  async #sweepSome(): Promise<boolean> {
    for (const id of this.#deleted) {
      if ((await this.#deps.database.transaction((tx) => endSome(tx, id))) < window) this.#deleted.delete(id)
    }
    if (this.#deleted.size > 0) return true
    this.#sweeping = undefined
    return false
  }

  async #row(reader: Reader, domainId: string, id: string): Promise<AliasRow> {
    const row = await reader.get<AliasRow>(
      sql`SELECT ${columns} FROM ${from} WHERE aliases.id = ${id} AND domain_id = ${domainId}`,
    )
    if (!row) throw notFound('alias')
    return row
  }

  /** Throws Fault invalid_request for an identity that the caller does not have. */
  async #requireIdentity(tx: Reader, caller: Caller, id: string, param: string): Promise<void> {
    try {
      await this.#deps.identities.row(caller, id, tx)
    } catch (error) {
      if (error instanceof Fault && error.type === 'not_found') throw invalid(param, `${id} is not an identity of this account.`)
      throw error
    }
  }
}

const free = sql`UPDATE addresses SET identity_id = '', alias_id = NULL`

/** Ends the aliases that the condition selects. Returns how many. */
async function end(tx: Transaction, which: Sql): Promise<number> {
  await tx.run(sql`${free} WHERE address IN (SELECT address FROM aliases WHERE ${which})`)
  return (await tx.run(sql`DELETE FROM aliases WHERE ${which}`)).changes
}

/** Ends a batch of the aliases of a domain. Returns how many. */
function endSome(tx: Transaction, domainId: string): Promise<number> {
  return end(tx, sql`seq IN (SELECT seq FROM aliases WHERE domain_id = ${domainId} ORDER BY seq LIMIT ${window})`)
}

function toAlias({ id, domain_id, address, identity_id, created_at }: AliasRow): Alias {
  return { id, domain_id, address, local_part: address.slice(0, address.lastIndexOf('@')), identity_id, created_at }
}
