import type { Basis } from '../basis.ts'
import type { AgentDirectory } from '../agents/model.ts'
import { day, iso } from '../core/clock.ts'
import { notFound } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { Identities } from '../identities/identities.ts'
import { isLiving } from '../identities/row.ts'
import { join, raw, type Reader, sql, type Transaction } from '../store/database.ts'
import { type Reputation, type ReputationSource, reputationUpdated, type Tier } from './model.ts'
import { type Counters, counterNames, scoreOf } from './score.ts'

interface Deps extends Pick<Basis, 'database' | 'clock' | 'events'> {
  identities: Identities
  agents: AgentDirectory
}

/** The counters of an identity, null where nothing was counted. */
interface Row extends Record<keyof Counters, number | null> {
  id: string
  account_id: string
  created_at: string
  tier: Tier | null
  updated_at: string | null
  verified: number
}

export class Reputations implements ReputationSource {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async of(identityId: string): Promise<Reputation> {
    const row = await this.#row(this.#deps.database, identityId)
    if (!row) throw notFound('identity')
    return this.#toReputation(row)
  }

  async forCaller(caller: Caller, identityId: string): Promise<Reputation> {
    await this.#deps.identities.row(caller, identityId)
    return this.of(identityId)
  }

  async ofAgent(caller: Caller, agentId: string): Promise<Reputation> {
    const known = await this.#deps.agents.byId(agentId)
    const bound = caller.identity_id
    if (known?.account_id !== caller.account_id || (bound !== null && bound !== known.agent.identity_id)) throw notFound('agent')
    return this.of(known.agent.identity_id)
  }

  /** Adds to the counters, and emits an event when the tier changed since the last event, or `always`. */
  async add(tx: Transaction, identityId: string, more: Counters, at: string, always: boolean): Promise<void> {
    const before = await tx.get<Counters & { tier: Tier }>(sql`SELECT * FROM reputations WHERE identity_id = ${identityId}`)
    const previousTier = before?.tier ?? 'bronze'
    const known = countersOf(before)
    const counters = mapped((name) => known[name] + more[name])
    await saveReputation(tx, identityId, counters, previousTier, at)
    const row = await this.#row(tx, identityId)
    // deleted identities are counted as well, so that a recount gives the same result
    if (!row) return
    const data = await this.#toReputation(row)
    if (data.tier === previousTier && !always) return
    await tx.run(sql`UPDATE reputations SET tier = ${data.tier} WHERE identity_id = ${identityId}`)
    await this.#deps.events.append(tx, reputationUpdated, { account_id: row.account_id, identity_id: identityId, data })
  }

  #row(reader: Reader, identityId: string): Promise<Row | undefined> {
    return reader.get<Row>(
      sql`SELECT reputations.*, identities.id, identities.account_id, identities.created_at, EXISTS (SELECT 1 FROM domains
        WHERE name = substr(email, instr(email, '@') + 1) AND receives = 1 AND domains.status = 'verified') AS verified
        FROM identities LEFT JOIN reputations ON reputations.identity_id = identities.id
        WHERE identities.id = ${identityId} AND ${isLiving(iso(this.#deps.clock.now()))}`,
    )
  }

  async #toReputation(row: Row): Promise<Reputation> {
    const known = await this.#deps.agents.ofIdentity(row.id)
    const counters = countersOf(row)
    return {
      subject: known?.agent.did ?? row.id,
      ...this.#score(row),
      counters: { ...counters, ...inWhole(counters) },
      updated_at: row.updated_at ?? row.created_at,
    }
  }

  #score(row: Row): ReturnType<typeof scoreOf> {
    const age_days = Math.max(0, Math.floor((this.#deps.clock.now() - Date.parse(row.created_at)) / day))
    return scoreOf(countersOf(row), { age_days, verified_domain: row.verified === 1 })
  }
}

/** Overwrites the counters of an identity. */
export async function saveReputation(tx: Transaction, id: string, counters: Counters, tier: Tier, at: string): Promise<void> {
  const values = join(counterNames.map((name) => counters[name]))
  const changes = join(counterNames.map((name) => raw(`${name} = excluded.${name}`)))
  await tx.run(
    sql`INSERT INTO reputations (identity_id, ${raw(counterNames.join(', '))}, tier, updated_at) VALUES (${id}, ${values}, ${tier}, ${at})
      ON CONFLICT (identity_id) DO UPDATE SET ${changes}, tier = excluded.tier, updated_at = excluded.updated_at`,
  )
}

/** The counters of a row, zero without one. */
export function countersOf(row: Partial<Record<keyof Counters, number | null>> | undefined): Counters {
  return mapped((name) => row?.[name] ?? 0)
}

export function same(one: Counters, other: Counters): boolean {
  return counterNames.every((name) => one[name] === other[name])
}

function inWhole({ positive, negative, disputed }: Counters): Partial<Counters> {
  return { positive: positive / 1000, negative: negative / 1000, disputed: disputed / 1000 }
}

function mapped(value: (name: keyof Counters) => number): Counters {
  return Object.fromEntries(counterNames.map((name) => [name, value(name)])) as Counters
}
