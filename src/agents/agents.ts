import type { Basis } from '../basis.ts'
import type { Plan } from '../accounts/plan.ts'
import { iso } from '../core/clock.ts'
import { page } from '../store/page.ts'
import { conflict, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import type { Page } from '../core/shapes.ts'
import type { Identities } from '../identities/identities.ts'
import { localPartOf } from '../identities/names.ts'
import { isOfLiving, merged } from '../identities/row.ts'
import { type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import { changeHandle, type Claimant, claimHandle, claimHandleLike } from './handles.ts'
import {
  type Agent,
  type AgentChange,
  agentCreated,
  agentDeleted,
  type AgentDirectory,
  type AgentFilter,
  agentUpdated,
  type KnownAgent,
  type NewAgent,
} from './model.ts'
import { agentColumns, agentOctets, type AgentRow, gone, toAgent } from './row.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'cursors' | 'publicUrl' | 'account'> {
  identities: Identities
  plan: Plan
}

/** The public profiles of identities, and their handles, which are reserved for ever. */
export class Agents implements AgentDirectory {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
    deps.plan.counts('agents', (accountId) => sql`SELECT count(*) AS n FROM agents WHERE account_id = ${accountId}`)
    deps.identities.onRemove(async (tx, identityId) => {
      const row = await first(tx, sql`identity_id = ${identityId}`)
      if (row) await this.#remove(tx, row)
    })
  }

  async create(caller: Caller, input: NewAgent): Promise<Agent> {
    const { database, events, clock, identities, plan } = this.#deps
    return database.transaction(async (tx) => {
      const identity = await identities.row(caller, input.identity_id, tx)
      const before = await first(tx, sql`identity_id = ${identity.id}`)
      if (before) throw conflict(`This identity has the agent ${before.handle} already.`, { param: 'identity_id' })
      await plan.require(tx, identity.account_id, 'agents')
      const id = newId('agent')
      const claimant = this.#claimant({ id, account_id: identity.account_id })
      const handle = input.handle ?? (await claimHandleLike(tx, claimant, localPartOf(identity.name)))
      if (input.handle !== undefined) await claimHandle(tx, claimant, input.handle)
      const now = iso(clock.now())
      await tx.run(
        sql`INSERT INTO agents (id, account_id, identity_id, handle, display_name, description, avatar_url, capabilities, links, metadata,
          created_at, updated_at) VALUES (${id}, ${identity.account_id}, ${identity.id}, ${handle}, ${input.display_name ?? identity.name},
          ${input.description ?? null}, ${input.avatar_url ?? null}, ${JSON.stringify(input.capabilities ?? [])},
          ${JSON.stringify(input.links ?? [])}, ${JSON.stringify(input.metadata ?? {})}, ${now}, ${now})`,
      )
      const agent = this.#toAgent((await first(tx, sql`id = ${id}`))!)
      await events.append(tx, agentCreated, {
        account_id: identity.account_id,
        identity_id: identity.id,
        data: agent,
        refusable: true,
      })
      return agent
    })
  }

  async list(caller: Caller, filter: AgentFilter): Promise<Page<Agent>> {
    const { database, cursors } = this.#deps
    const { handle, identity_id } = filter
    const bound = caller.identity_id === null ? [] : [sql`identity_id = ${caller.identity_id}`]
    const named =
      handle === undefined ? sql`` : sql` AND id = (SELECT agent_id FROM agent_handles WHERE agent_handles.handle = ${handle})`
    const whose = identity_id === undefined ? [] : [sql`identity_id = ${identity_id}`]
    return page<AgentRow, Agent>(database, cursors, filter, {
      name: `agents ${caller.account_id} ${handle ?? ''} ${identity_id ?? ''}`,
      columns: agentColumns,
      from: sql`agents`,
      account: caller.account_id,
      where: sql`account_id = ${caller.account_id}${named}`,
      filters: [this.#isOfLiving, ...bound, ...whose],
      octets: agentOctets,
      present: (row) => this.#toAgent(row),
    })
  }

  async get(caller: Caller, id: string): Promise<Agent> {
    return this.#toAgent(await this.row(caller, id))
  }

  /** The row of an agent the caller may see; throws Fault not_found. */
  async row(caller: Caller, id: string, reader: Reader = this.#deps.database): Promise<AgentRow> {
    const row = await this.#living(reader, sql`id = ${id} AND account_id = ${caller.account_id}`)
    if (!row || (caller.identity_id !== null && row.identity_id !== caller.identity_id)) throw notFound('agent')
    return row
  }

  async update(caller: Caller, id: string, change: AgentChange): Promise<Agent> {
    return this.#deps.database.transaction(async (tx) => {
      const before = await this.row(caller, id, tx)
      const handle = change.handle ?? before.handle
      if (handle !== before.handle) await changeHandle(tx, this.#claimant(before), handle)
      await tx.run(
        sql`UPDATE agents SET handle = ${handle}, display_name = ${change.display_name ?? before.display_name},
          description = ${change.description === undefined ? before.description : change.description},
          avatar_url = ${change.avatar_url === undefined ? before.avatar_url : change.avatar_url},
          capabilities = ${change.capabilities === undefined ? before.capabilities : JSON.stringify(change.capabilities)}, links = ${change.links === undefined ? before.links : JSON.stringify(change.links)},
          metadata = ${merged(before.metadata, change.metadata)} WHERE id = ${id}`,
      )
      return this.touch(tx, id)
    })
  }

  async remove(caller: Caller, id: string): Promise<{ id: string; deleted: true }> {
    return this.#deps.database.transaction(async (tx) => {
      await this.#remove(tx, await this.row(caller, id, tx))
      return { id, deleted: true }
    })
  }

  /** Emits an update event of the agent; a change that only removes data is not refused above the quota. */
  async touch(tx: Transaction, id: string, refusable = true): Promise<Agent> {
    await tx.run(sql`UPDATE agents SET updated_at = ${iso(this.#deps.clock.now())} WHERE id = ${id}`)
    const row = (await first(tx, sql`id = ${id}`))!
    const agent = this.#toAgent(row)
    await this.#deps.events.append(tx, agentUpdated, {
      account_id: row.account_id,
      identity_id: row.identity_id,
      data: agent,
      refusable,
    })
    return agent
  }

  ofIdentity(identityId: string): Promise<KnownAgent | undefined> {
    return this.#known(sql`identity_id = ${identityId}`)
  }

  byId(id: string): Promise<KnownAgent | undefined> {
    return this.#known(sql`id = ${id}`)
  }

  /** Also finds former handles, which stay reserved. */
  byHandle(handle: string): Promise<KnownAgent | undefined> {
    return this.#known(sql`id = (SELECT agent_id FROM agent_handles WHERE agent_handles.handle = ${handle.toLowerCase()})`)
  }

  /** The public row of an agent, for any caller. Throws Fault not_found. */
  async published(id: string): Promise<AgentRow> {
    const row = await this.#living(this.#deps.database, sql`id = ${id}`)
    if (!row) throw notFound('agent')
    return row
  }

  async #known(condition: Sql): Promise<KnownAgent | undefined> {
    const row = await this.#living(this.#deps.database, condition)
    return row && { account_id: row.account_id, agent: this.#toAgent(row) }
  }

  /** An agent whose identity is neither deleted nor has expired. */
  #living(reader: Reader, condition: Sql): Promise<AgentRow | undefined> {
    return first(reader, sql`${condition} AND ${this.#isOfLiving}`)
  }

  get #isOfLiving(): Sql {
    return isOfLiving(sql`identity_id`, iso(this.#deps.clock.now()))
  }

  async #remove(tx: Transaction, row: AgentRow): Promise<void> {
    const { id, account_id, identity_id } = row
    await tx.run(sql`DELETE FROM erc8004_links WHERE agent_id = ${id}`)
    await tx.run(sql`DELETE FROM agents WHERE id = ${id}`)
    const data = gone(row, this.#deps.publicUrl())
    await this.#deps.events.append(tx, agentDeleted, { account_id, identity_id, data })
  }

  #claimant({ id, account_id }: Pick<AgentRow, 'id' | 'account_id'>): Claimant {
    return { id, account_id, operator: account_id === this.#deps.account }
  }

  #toAgent(row: AgentRow): Agent {
    return toAgent(row, this.#deps.publicUrl())
  }
}

function first(reader: Reader, condition: Sql): Promise<AgentRow | undefined> {
  return reader.get<AgentRow>(sql`SELECT ${agentColumns} FROM agents WHERE ${condition}`)
}
