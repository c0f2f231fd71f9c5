import { trimBothEnds, trimEnd } from '../core/text.ts'
import { conflict } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import { isRoleName } from '../identities/role-names.ts'
import { sql, type Transaction } from '../store/database.ts'

/** Reserved handles besides role names: users could mistake them for the operator, or for a part of the box. */
const reserved: ReadonlySet<string> = new Set(
  `about account accounts agent agents all anonymous api auth billing blog bot box contact docs everyone help helpdesk identities identity is
  it login logout mail me moderator nobody null official operator owner pillarbox privacy register service settings signin signout signup smtp
  staff status system team terms tokens trust undefined verify well-known you`.split(/\s+/),
)

function isReserved(handle: string): boolean {
  return reserved.has(handle) || isRoleName(handle)
}

const longest = 39

/** The most former handles of an agent, so that one agent cannot take many good ones. */
const maxFormer = 10

/** The maximum number of chosen handles that stay reserved because agents of one account had them formerly. */
const maxOfAccount = 1000

/** The agent that a handle is claimed for. */
export interface Claimant {
  id: string
  account_id: string
  /** The operator's account may choose any number of handles. */
  operator: boolean
}

/** Reserves this handle for the agent for ever. Throws Fault conflict when it is, or was, another's, or its account has had too many. */
export async function claimHandle(tx: Transaction, agent: Claimant, handle: string): Promise<void> {
  if (isReserved(handle)) throw conflict(`The handle ${handle} is reserved for the box.`, { param: 'handle' })
  const owner = await tx.get<{ agent_id: string }>(sql`SELECT agent_id FROM agent_handles WHERE handle = ${handle}`)
  if (owner?.agent_id === agent.id) return
  if (owner) throw conflict(`The handle ${handle} is taken; a handle is never given to another agent.`, { param: 'handle' })
  if (!(await mayChoose(tx, agent))) {
    throw conflict(
      `${maxOfAccount} former handles of this account’s agents stay reserved, which is the limit: leave handle out for a generated one.`,
      { param: 'handle', code: 'too_many_handles' },
    )
  }
  await take(tx, agent, handle)
}

/** The same as `claimHandle`, for an agent that has a handle. Throws Fault conflict also after too many changes. */
export async function changeHandle(tx: Transaction, agent: Claimant, handle: string): Promise<void> {
  await claimHandle(tx, agent, handle)
  const had = await tx.get<{ n: number }>(sql`SELECT count(*) AS n FROM agent_handles WHERE agent_id = ${agent.id}`)
  if (had!.n <= maxFormer + 1) return
  throw conflict(
    `This agent has had ${maxFormer} other handles, which remain reserved for it; it can only return to one of those.`,
    {
      param: 'handle',
      code: 'too_many_handles',
    },
  )
}

/**
 * Finds and claims a free handle similar to this name, which is lower-case ASCII with dots, hyphens and underscores; a generated one for an account
 * that has had too many.
 */
export async function claimHandleLike(tx: Transaction, agent: Claimant, name: string): Promise<string> {
  const plain = trimBothEnds(name.replaceAll(/[^a-z0-9]+/g, '-'), '-')
  const wanted = plain.length < 2 || !(await mayChoose(tx, agent)) ? `agent-${agent.id.slice(-10)}` : plain
  for (let attempt = 1; ; attempt += 1) {
    const suffix = attempt === 1 ? '' : attempt <= 50 ? `-${attempt}` : `-${newId('agent').slice(-10)}`
    const handle = `${trimEnd(wanted.slice(0, longest - suffix.length), '-')}${suffix}`
    if (!isReserved(handle) && (await take(tx, agent, handle)).changes === 1) return handle
  }
}

function take(tx: Transaction, { id, account_id }: Claimant, handle: string): Promise<{ changes: number }> {
  return tx.run(
    sql`INSERT INTO agent_handles (handle, agent_id, account_id) VALUES (${handle}, ${id}, ${account_id}) ON CONFLICT DO NOTHING`,
  )
}

async function mayChoose(tx: Transaction, { account_id, operator }: Claimant): Promise<boolean> {
  if (operator) return true
  const former = await tx.get<{ n: number }>(
    sql`SELECT (SELECT count(*) FROM agent_handles WHERE account_id = ${account_id} AND handle NOT LIKE 'agent-__________')
      - (SELECT count(*) FROM agents WHERE account_id = ${account_id} AND handle NOT LIKE 'agent-__________') AS n`,
  )
  return former!.n < maxOfAccount
}
