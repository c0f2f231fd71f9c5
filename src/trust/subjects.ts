import type { Basis } from '../basis.ts'
import { domainNameOf } from '../core/domain-names.ts'
import { type Agent, type AgentDirectory, agentOfDid, canonicalDid, isOfBox, type KnownAgent } from '../agents/model.ts'
import { isId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import type { Identities, IdentityRow } from '../identities/identities.ts'
import { isLiving } from '../identities/row.ts'
import { iso } from '../core/clock.ts'
import { sql } from '../store/database.ts'
import type { Question } from './model.ts'

/** An identity of the box that a caller may query: its own, or one with a public agent. */
export interface LocalSubject {
  identity_id: string
  account_id: string
  email: string
  suspended: boolean
  agent: Agent | null
}

/**
 * The subject that a caller names. The `name` of an outside subject is a canonical DID, or an address in lower case with its domain in
 * ASCII; `account_id` is set when the address is of this box after all, and is never disclosed.
 */
export type Subject =
  | ({ kind: 'local' } & LocalSubject)
  | { kind: 'did'; name: string }
  | { kind: 'email'; name: string; account_id: string | null }
  | { kind: 'unknown' }

interface Deps extends Pick<Basis, 'database' | 'clock' | 'publicUrl'> {
  identities: Identities
  agents: AgentDirectory
}

const unknown: Subject = { kind: 'unknown' }

export class Subjects {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Accepts the id, handle, DID or address of an agent, or the id of an identity. */
  async named(caller: Caller, name: string): Promise<Subject> {
    if (isId('ident', name)) return this.byIdentity(caller, name)
    if (isId('agent', name)) return this.#byAgent(await this.#deps.agents.byId(name))
    if (name.startsWith('did:')) return this.byDid(name)
    return name.indexOf('@') > 0 ? this.byEmail(caller, name) : this.byHandle(name)
  }

  async byIdentity(caller: Caller, id: string): Promise<Subject> {
    const row = await this.#row(id)
    return row && isOwn(caller, row) ? this.#local(row) : unknown
  }

  async byHandle(handle: string): Promise<Subject> {
    return this.#byAgent(await this.#deps.agents.byHandle(handle.replace(/^@/, '').toLowerCase()))
  }

  /** Accepts any form of a DID: otherwise a subject of this box could be evaluated as one of another. */
  async byDid(did: string): Promise<Subject> {
    const name = canonicalDid(did)
    if (name === undefined) return unknown
    if (!isOfBox(this.#deps.publicUrl(), name)) return { kind: 'did', name }
    const agentId = agentOfDid(this.#deps.publicUrl(), name)
    return agentId === undefined ? unknown : this.#byAgent(await this.#deps.agents.byId(agentId))
  }

  /** Another account's identity without an agent is treated as an outside subject. */
  async byEmail(caller: Caller, email: string): Promise<Subject> {
    const name = canonical(email)
    if (name === undefined) return unknown
    const at = name.lastIndexOf('@')
    const mailbox = name.slice(0, at).replace(/(?<=.)\+.*/s, '')
    const row = await this.#deps.identities.ownerOf(`${mailbox}${name.slice(at)}`)
    const stranger: Subject = { kind: 'email', name, account_id: row?.account_id ?? null }
    if (!row || row.status === 'deleted') return stranger
    const subject = await this.#local(row)
    // an alias is not attributed to its identity for other accounts
    const isKnown = subject.agent !== null && row.email === `${mailbox}${name.slice(at)}`
    return isOwn(caller, row) || isKnown ? subject : stranger
  }

  /** The subject of a valid token: `identityId` is of this box. */
  async proven(identityId: string): Promise<Subject> {
    const row = await this.#row(identityId)
    return row ? this.#local(row) : unknown
  }

  /** The subject of a question; `token` is handled elsewhere. */
  asked(caller: Caller, { did, handle, identity_id, email }: Question): Promise<Subject> {
    if (did !== undefined) return this.byDid(did)
    if (handle !== undefined) return this.byHandle(handle)
    if (identity_id !== undefined) return this.byIdentity(caller, identity_id)
    return this.byEmail(caller, email!)
  }

  async #byAgent(known: KnownAgent | undefined): Promise<Subject> {
    if (!known) return unknown
    const row = await this.#row(known.agent.identity_id)
    return row ? local(row, known.agent) : unknown
  }

  async #local(row: IdentityRow): Promise<{ kind: 'local' } & LocalSubject> {
    const known = await this.#deps.agents.ofIdentity(row.id)
    return local(row, known?.agent ?? null)
  }

  #row(id: string): Promise<IdentityRow | undefined> {
    return this.#deps.database.get(sql`SELECT * FROM identities WHERE id = ${id} AND ${isLiving(iso(this.#deps.clock.now()))}`)
  }
}

export function isOwn(
  { account_id, identity_id }: Caller,
  row: Pick<LocalSubject, 'account_id'> & { id?: string; identity_id?: string },
): boolean {
  return row.account_id === account_id && (identity_id === null || identity_id === (row.id ?? row.identity_id))
}

function local({ id, account_id, email, status }: IdentityRow, agent: Agent | null): { kind: 'local' } & LocalSubject {
  return { kind: 'local', identity_id: id, account_id, email, suspended: status === 'suspended', agent }
}

/** The canonical form of an address; undefined when its domain is invalid. */
function canonical(email: string): string | undefined {
  const at = email.lastIndexOf('@')
  const domain = domainNameOf(email.slice(at + 1))
  return at < 1 || domain === undefined ? undefined : `${email.slice(0, at).toLowerCase()}@${domain}`
}
