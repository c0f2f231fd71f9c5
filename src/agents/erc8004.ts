import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { isLiving } from '../identities/row.ts'
import { page } from '../store/page.ts'
import { conflict, invalid, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import { type Page, type Paging, picked } from '../core/shapes.ts'
import { sql, type Transaction } from '../store/database.ts'
import type { Agents } from './agents.ts'
import { Erc8004Link, type NewErc8004Link } from './erc8004-shapes.ts'
import { keccak_256 } from '@noble/hashes/sha3'

interface LinkRow extends Omit<Erc8004Link, 'owner_address' | 'tx_hash' | 'status'> {
  seq: number
  agent_id: string
  owner_address: string | null
  tx_hash: string | null
}

export type Registered = Pick<LinkRow, 'chain_id' | 'registry' | 'token_id'>

/** The most links of one agent, and of the agents of one account: the list of the box has 10,000. */
const maxLinks = 50
const maxOfAccount = 1000

interface Deps extends Pick<Basis, 'database' | 'clock' | 'cursors' | 'account'> {
  agents: Agents
}

/** The tokens of ERC-8004 registries that agents claim; each token belongs to at most one agent. */
export class Erc8004Links {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async create(caller: Caller, agentId: string, input: NewErc8004Link): Promise<Erc8004Link> {
    const { database, clock, agents } = this.#deps
    const registry = addressIn('registry', input.registry)
    const owner = input.owner_address === undefined ? null : addressIn('owner_address', input.owner_address)
    return database.transaction(async (tx) => {
      await agents.row(caller, agentId, tx)
      const had = await tx.get<{ n: number }>(sql`SELECT count(*) AS n FROM erc8004_links WHERE agent_id = ${agentId}`)
      if (had!.n >= maxLinks) throw conflict(`An agent has at most ${maxLinks} links.`, { code: 'too_many_links' })
      if (caller.account_id !== this.#deps.account) await this.#requireFew(tx, caller.account_id)
      const row = await tx.get<LinkRow>(
        sql`INSERT INTO erc8004_links (id, agent_id, chain_id, registry, token_id, owner_address, tx_hash, created_at) VALUES (${newId('link')},
          ${agentId}, ${input.chain_id}, ${registry}, ${input.token_id}, ${owner}, ${input.tx_hash ?? null}, ${iso(clock.now())})
          ON CONFLICT DO NOTHING RETURNING *`,
      )
      if (!row) {
        throw conflict(`Token ${input.token_id} of ${registry} on chain ${input.chain_id} is linked to an agent already.`, {
          param: 'token_id',
        })
      }
      await agents.touch(tx, agentId)
      return toErc8004Link(row)
    })
  }

  async list(caller: Caller, agentId: string, paging: Paging): Promise<Page<Erc8004Link>> {
    const { database, cursors, agents } = this.#deps
    await agents.row(caller, agentId)
    return page<LinkRow, Erc8004Link>(database, cursors, paging, {
      name: `erc8004 ${agentId}`,
      from: sql`erc8004_links`,
      account: caller.account_id,
      where: sql`agent_id = ${agentId}`,
      present: toErc8004Link,
    })
  }

  async remove(caller: Caller, agentId: string, id: string): Promise<{ id: string; deleted: true }> {
    const { database, agents } = this.#deps
    return database.transaction(async (tx) => {
      await agents.row(caller, agentId, tx)
      const { changes } = await tx.run(sql`DELETE FROM erc8004_links WHERE id = ${id} AND agent_id = ${agentId}`)
      if (changes === 0) throw notFound('link')
      await agents.touch(tx, agentId, false)
      return { id, deleted: true }
    })
  }

  /** The links of one agent, oldest first. */
  of(agentId: string): Promise<Registered[]> {
    return this.#deps.database.all(
      sql`SELECT chain_id, registry, token_id FROM erc8004_links WHERE agent_id = ${agentId} ORDER BY seq`,
    )
  }

  async #requireFew(tx: Transaction, account: string): Promise<void> {
    const had = await tx.get<{ n: number }>(
      sql`SELECT count(*) AS n FROM agents JOIN erc8004_links ON erc8004_links.agent_id = agents.id WHERE agents.account_id = ${account}`,
    )
    if (had!.n < maxOfAccount) return
    throw conflict(`The agents of an account have at most ${maxOfAccount} links together: remove one.`, {
      code: 'too_many_links',
    })
  }

  all(limit: number): Promise<Registered[]> {
    return this.#deps.database.all(
      sql`SELECT chain_id, registry, token_id FROM erc8004_links JOIN agents ON agents.id = erc8004_links.agent_id
        JOIN identities ON identities.id = agents.identity_id WHERE identities.status = 'active' AND ${isLiving(iso(this.#deps.clock.now()))} ORDER BY erc8004_links.seq LIMIT ${limit}`,
    )
  }
}

function addressIn(param: string, text: string): string {
  const right = checksummed(text)
  if (isUnbroken(text)) return right
  throw invalid(
    param,
    `${param} does not fit its checksum (EIP-55): a digit or the case of a letter is wrong. It would be ${right}.`,
  )
}

function toErc8004Link({ owner_address, tx_hash, ...row }: LinkRow): Erc8004Link {
  const given = { ...(owner_address === null ? {} : { owner_address }), ...(tx_hash === null ? {} : { tx_hash }) }
  return picked(Erc8004Link, { ...row, ...given, status: 'unverified' as const })
}

/** An Ethereum address with its checksum in capitals (EIP-55). `address` is 0x and 40 hexadecimal digits. */
export function checksummed(address: string): string {
  const digits = address.slice(2).toLowerCase()
  const hash = keccak_256(new TextEncoder().encode(digits))
  const characters = Array.from(digits, (digit, index) => {
    const nibble = (hash[index >> 1]! >> (index % 2 === 0 ? 4 : 0)) & 15
    return nibble >= 8 ? digit.toUpperCase() : digit
  })
  return `0x${characters.join('')}`
}

/** True if the checksum of an address is valid, or it has none: all letters of one case. */
export function isUnbroken(address: string): boolean {
  const digits = address.slice(2)
  return digits === digits.toLowerCase() || digits === digits.toUpperCase() || address === checksummed(address)
}
