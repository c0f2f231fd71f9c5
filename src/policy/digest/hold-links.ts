import { randomBytes } from 'node:crypto'
import { keyHash } from '../../accounts/secret.ts'
import type { Basis } from '../../basis.ts'
import { actorOf } from '../../core/audit.ts'
import { iso } from '../../core/clock.ts'
import { Fault } from '../../core/fault.ts'
import { type Caller, type Role, scopesOfRole } from '../../core/scopes.ts'
import { sql, type Transaction } from '../../store/database.ts'
import type { Holds, StoredHold } from '../holds.ts'
import type { Hold, HoldRow, LinkDecision } from '../model.ts'

interface Deps extends Pick<Basis, 'database' | 'clock' | 'audit'> {
  holds: Holds
  /** True if the operator's list has the account. */
  exists: (accountId: string) => boolean
}

/** A link whose person may still decide. */
interface Link {
  hold_id: string
  identity_id: string
  sha256: string
  account_id: string
  person_id: string
  role: Role
}

/** What a person decides by the link of a digest: one hold, of the bytes that they were told of, once. To open a link changes nothing. */
export class HoldLinks {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** The token of a new link. */
  async create(tx: Transaction, personId: string, { id, sha256, expires_at }: StoredHold): Promise<string> {
    const token = randomBytes(32).toString('base64url')
    await tx.run(
      sql`INSERT INTO hold_links (hash, hold_id, person_id, sha256, expires_at) VALUES (${keyHash(token)}, ${id}, ${personId}, ${sha256}, ${expires_at})`,
    )
    return token
  }

  /** What is held. Throws Fault 403, code `hold_link_invalid`. */
  async read(token: string, from: Pick<Caller, 'ip' | 'user_agent'>): Promise<Hold> {
    const { database, audit, holds } = this.#deps
    const link = await this.#find(token)
    const caller = callerOf(link, from)
    const hold = await holds.get(caller, link.hold_id)
    await database.transaction((tx) => audit.append(tx, entryOf(caller, link, 'hold.read')))
    return hold
  }

  /** Throws Fault 403, code `hold_link_invalid`; otherwise as `Holds.approve` and `Holds.reject` do. */
  async decide({ token, decision, reason }: LinkDecision, from: Pick<Caller, 'ip' | 'user_agent'>): Promise<HoldRow> {
    const { database, audit, holds } = this.#deps
    const link = await this.#find(token)
    const caller = callerOf(link, from)
    const { hold_id, sha256 } = link
    const recording = {
      recorded: false,
      record: async (tx: Transaction) => {
        await audit.append(tx, entryOf(caller, link, decision === 'approve' ? 'hold.approved' : 'hold.rejected'))
        return true
      },
    }
    return database.recording(recording, () =>
      decision === 'approve' ? holds.approve(caller, hold_id, { sha256, reason }) : holds.reject(caller, hold_id, reason),
    )
  }

  /** Deletes those of holds that have expired. */
  async sweep(): Promise<void> {
    const { database, clock } = this.#deps
    await database.transaction((tx) => tx.run(sql`DELETE FROM hold_links WHERE expires_at <= ${iso(clock.now())}`))
  }

  async #find(token: string): Promise<Link> {
    const { database, clock, exists } = this.#deps
    const link = await database.get<Link & { expires_at: string }>(
      sql`SELECT hold_links.*, holds.identity_id, logins.account_id, logins.role FROM hold_links
        JOIN holds ON holds.id = hold_links.hold_id JOIN logins ON logins.id = hold_links.person_id AND logins.account_id = holds.account_id
        WHERE hash = ${keyHash(token)}`,
    )
    const valid =
      link && exists(link.account_id) && scopesOfRole[link.role].has('holds:decide') && Date.parse(link.expires_at) > clock.now()
    if (valid) return link
    throw new Fault(
      'forbidden',
      'This link is no longer valid: what it was about has expired, or you may no longer decide it. Sign in to see what is held.',
      { code: 'hold_link_invalid', param: 'token' },
    )
  }
}

/** A person who looks at holds and decides them by a digest, without a session. */
export function callerOf(
  { account_id, person_id, role }: Pick<Link, 'account_id' | 'person_id' | 'role'>,
  { ip, user_agent }: Pick<Caller, 'ip' | 'user_agent'>,
): Caller {
  return {
    account_id,
    key_id: null,
    session_id: null,
    person: { id: person_id, role },
    secret: 0,
    scopes: scopesOfRole[role],
    identity_id: null,
    rate_limit: 0,
    until: Infinity,
    client: 'digest',
    ip,
    user_agent,
  }
}

function entryOf(caller: Caller, { hold_id, identity_id }: Link, action: string): Parameters<Basis['audit']['append']>[1] {
  return { ...actorOf(caller), action, target: hold_id, identity_id, detail: {} }
}
