import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { Fault, invalid } from '../core/fault.ts'
import { lruMapOfBytes } from '../core/memory.ts'
import { actingOf, type Caller } from '../core/scopes.ts'
import type { Cascade } from '../identities/cascade.ts'
import type { Identities, IdentityRow } from '../identities/identities.ts'
import { type Reader, sql } from '../store/database.ts'
import { forgetContacts } from './contacts.ts'
import type { PolicyInput, StoredPolicy } from './model.ts'
import { checkedPolicy, openPolicy, type Policy } from '../core/policy.ts'

/** Bytes of the policy of one identity or account, which is read with each message. */
const maxBytes = 64 * 1024

/** Bytes of the policies that are kept as they were parsed. */
const maxParsed = 4 * 1024 * 1024

/** Whose policy it is. */
export type Level = 'box' | 'account' | 'identity'

interface Deps extends Pick<Basis, 'database' | 'clock' | 'log'> {
  identities: Identities
  cascade: Cascade
  /** That of `pillarbox.yaml`. */
  ofBox: () => Policy
}

/** The policies of the box, of accounts and of identities. What leaves must pass all three. */
export class Policies {
  readonly #deps: Deps
  /** By their JSON. */
  readonly #parsed = lruMapOfBytes<Policy>(maxParsed, (_, json) => 8 * json.length + 500)

  constructor(deps: Deps) {
    this.#deps = deps
    deps.identities.onRemove(async (tx, id) => void (await tx.run(sql`DELETE FROM policies WHERE subject_id = ${id}`)))
    deps.cascade.add((tx, id) => forgetContacts(tx, id))
  }

  /** That of an identity, or of the account for null. */
  async get(caller: Caller, identityId: string | null): Promise<StoredPolicy> {
    return stored(this.#deps.database, await this.#subject(caller, identityId))
  }

  /** Changes what is given. Throws Fault invalid_request with the place of a rule that cannot match or contradicts another. */
  async update(caller: Caller, identityId: string | null, input: PolicyInput): Promise<StoredPolicy> {
    const { database, clock, log } = this.#deps
    const subject = await this.#subject(caller, identityId)
    requireOwner(caller)
    return database.transaction(async (tx) => {
      const before = await stored(tx, subject)
      const { preset, rules } = checkedPolicy({ preset: input.preset ?? before.preset, rules: input.rules ?? before.rules })
      const policy = JSON.stringify({ preset, rules })
      if (Buffer.byteLength(policy) > maxBytes) throw invalid('rules', 'A policy must be at most 64 KiB, as JSON.')
      const updated_at = iso(clock.now())
      await tx.run(
        sql`INSERT INTO policies (subject_id, policy, updated_at) VALUES (${subject}, ${policy}, ${updated_at})
          ON CONFLICT (subject_id) DO UPDATE SET policy = excluded.policy, updated_at = excluded.updated_at`,
      )
      const by = actingOf(caller) ?? 'operator'
      tx.afterCommit(() => log.info({ subject, preset, rules: rules.length, by }, 'policy changed'))
      return { preset, rules, updated_at }
    })
  }

  /** Those that hold for an identity. */
  async of(
    reader: Reader,
    { id, account_id }: Pick<IdentityRow, 'id' | 'account_id'>,
  ): Promise<{ level: Level; policy: Policy }[]> {
    const rows = await reader.all<{ subject_id: string; policy: string }>(
      sql`SELECT subject_id, policy FROM policies WHERE subject_id IN (${account_id}, ${id}) ORDER BY subject_id`,
    )
    const own = rows.map(({ subject_id, policy }): { level: Level; policy: Policy } => ({
      level: subject_id === id ? 'identity' : 'account',
      policy: this.#parse(policy),
    }))
    return [{ level: 'box', policy: this.#deps.ofBox() }, ...own]
  }

  #parse(json: string): Policy {
    const known = this.#parsed.get(json)
    if (known) return known
    const policy = JSON.parse(json) as Policy
    this.#parsed.set(json, policy)
    return policy
  }

  async #subject(caller: Caller, identityId: string | null): Promise<string> {
    const subject = identityId === null ? caller.account_id : (await this.#deps.identities.row(caller, identityId)).id
    requireUnbound(caller)
    return subject
  }
}

async function stored(reader: Reader, subject: string): Promise<StoredPolicy> {
  const row = await reader.get<{ policy: string; updated_at: string }>(
    sql`SELECT policy, updated_at FROM policies WHERE subject_id = ${subject}`,
  )
  return row ? { ...(JSON.parse(row.policy) as Policy), updated_at: row.updated_at } : { ...openPolicy, updated_at: null }
}

/** Throws Fault 403, code `owner_required`: an approver decides about holds, and changes no policy. */
function requireOwner({ person }: Pick<Caller, 'person'>): void {
  if (!person || person.role === 'owner') return
  throw new Fault('forbidden', 'An approver decides what is held; what may leave is changed by an owner of the account.', {
    code: 'owner_required',
  })
}

/** Throws Fault 403, code `bound_key`: a key that is bound to one identity neither sees policies nor decides what is held. */
export function requireUnbound({ identity_id }: Pick<Caller, 'identity_id'>): void {
  if (identity_id === null) return
  throw new Fault(
    'forbidden',
    'A key that is bound to one identity neither sees or changes policies nor decides what is held. Ask a person of the account, or whoever runs this box.',
    { code: 'bound_key' },
  )
}
