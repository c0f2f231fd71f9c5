import type { Basis } from '../basis.ts'
import type { Plan } from '../accounts/plan.ts'
import { iso } from '../core/clock.ts'
import { page } from '../store/page.ts'
import { conflict, Fault, invalid, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import { boxNames } from './role-names.ts'
import type { Caller } from '../core/scopes.ts'
import type { Page, Paging } from '../core/shapes.ts'
import type { Domains } from '../domains/domains.ts'
import type { Domain } from '../domains/model.ts'
import { type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
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
}

const columns = sql`aliases.*, addresses.identity_id`
const from = sql`aliases JOIN addresses ON addresses.address = aliases.address`

/**
 * Aliases and catch-alls: further addresses of a domain, delivered to identities of the domain's account. They end with the domain or the
 * identity. An address that was an alias stays reserved for its account, which may assign it again.
 */
export class Aliases {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
    deps.plan.counts(
      'aliases',
      (accountId) =>
        sql`SELECT count(*) AS n FROM aliases JOIN domains ON domains.id = aliases.domain_id WHERE domains.account_id = ${accountId}`,
    )
    deps.identities.onRemove(leave)
    deps.domains.onRemove((tx, id) => end(tx, sql`domain_id = ${id}`))
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

/** Ends the aliases that the condition selects. */
async function end(tx: Transaction, which: Sql): Promise<void> {
  await tx.run(sql`${free} WHERE address IN (SELECT address FROM aliases WHERE ${which})`)
  await tx.run(sql`DELETE FROM aliases WHERE ${which}`)
}

/** Removes an identity: its aliases end, and it is no longer a catch-all. */
async function leave(tx: Transaction, identityId: string): Promise<void> {
  const its = sql`identity_id = ${identityId} AND alias_id IS NOT NULL`
  await tx.run(sql`DELETE FROM aliases WHERE address IN (SELECT address FROM addresses WHERE ${its})`)
  await tx.run(sql`${free} WHERE ${its}`)
  await tx.run(sql`UPDATE domains SET catch_all = NULL WHERE catch_all = ${identityId}`)
}

function toAlias({ id, domain_id, address, identity_id, created_at }: AliasRow): Alias {
  return { id, domain_id, address, local_part: address.slice(0, address.lastIndexOf('@')), identity_id, created_at }
}
