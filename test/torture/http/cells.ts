import { type Role, type Scope, scopes } from '../../../src/core/scopes.ts'
import { type Right, rights } from '../../contract/rights-table.ts'

/** Who has an estate: the account that most calls are of, another, and one that is stopped. */
export type Account = 'own' | 'foreign' | 'stopped'

/** The identities whose objects are named, and the account of each; those of `absent` nobody has. */
export const places = {
  own: 'own',
  sibling: 'own',
  suspended: 'own',
  deleted: 'own',
  expired: 'own',
  foreign: 'foreign',
  stopped: 'stopped',
  absent: 'none',
} as const satisfies Record<string, Account | 'none'>
export type Place = keyof typeof places

/** Scopes of a key: one alone, all, none, or all but those of which the call needs one. */
type Held = Scope | 'all' | 'none' | 'others'

export type Caller =
  | { kind: 'nobody' }
  | { kind: 'key'; account: Account; held: Held; bound?: Place; state?: 'unknown' | 'revoked' | 'expired' }
  | { kind: 'session'; account: Account; role: Role; state?: 'ended' | 'elsewhere' }

/** A call, who makes it, and whose objects it names: of all its ids, or of the last one alone while the others are of `own`. */
export interface Cell {
  name: string
  caller: Caller
  place: Place
  mixed: boolean
}

/** What a cell must be answered: what anybody who may is answered, or the refusal with this status and one of these codes. */
export type Expected = 'allowed' | { status: 401 | 403 | 404; codes: string[] }

export const callers: readonly Caller[] = [
  { kind: 'nobody' },
  ...[...scopes, 'all', 'none', 'others'].flatMap((held) =>
    [undefined, 'own', 'sibling'].map(
      (bound) => ({ kind: 'key', account: 'own', held, ...(bound === undefined ? {} : { bound }) }) as Caller,
    ),
  ),
  ...[...scopes, 'all'].map((held) => ({ kind: 'key', account: 'foreign', held }) as Caller),
  { kind: 'key', account: 'foreign', held: 'all', bound: 'foreign' },
  { kind: 'key', account: 'own', held: 'all', bound: 'suspended' },
  { kind: 'key', account: 'own', held: 'all', bound: 'deleted' },
  { kind: 'key', account: 'own', held: 'all', bound: 'expired' },
  { kind: 'key', account: 'own', held: 'all', state: 'unknown' },
  { kind: 'key', account: 'own', held: 'all', state: 'revoked' },
  { kind: 'key', account: 'own', held: 'all', state: 'expired' },
  { kind: 'key', account: 'stopped', held: 'all' },
  { kind: 'key', account: 'stopped', held: 'none' },
  { kind: 'key', account: 'stopped', held: 'all', bound: 'stopped' },
  ...(['owner', 'approver', 'reader'] as const).map((role): Caller => ({ kind: 'session', account: 'own', role })),
  { kind: 'session', account: 'own', role: 'owner', state: 'ended' },
  { kind: 'session', account: 'own', role: 'owner', state: 'elsewhere' },
  { kind: 'session', account: 'foreign', role: 'owner' },
  { kind: 'session', account: 'stopped', role: 'owner' },
]

const names = [...rights.keys()]
const everyPlace = Object.keys(places) as Place[]

/** The parameters of a call that are ids of objects. */
export function idsOf(name: string): string[] {
  return [...name.matchAll(/:(\w+)/g)].map(([, id]) => id!).filter((id) => id !== 'index')
}

/** How many cells a call has: with whose objects it names, for each caller. */
const placesOf = new Map(
  names.map((name) => {
    const alone = everyPlace.map((place) => ({ place, mixed: false }))
    const mixed = everyPlace.filter((place) => place !== 'own').map((place) => ({ place, mixed: true }))
    const ids = idsOf(name).length
    // when an identity ends, what it has in the queue and its holds end a while later
    if (/\/(?:queue|holds)\//.test(name))
      return [name, alone.filter(({ place }) => place !== 'deleted' && place !== 'expired')] as const
    return [name, ids === 0 ? alone.slice(0, 1) : ids === 1 ? alone : [...alone, ...mixed]] as const
  }),
)

/** How many cells there are. */
export const cellCount = names.reduce((sum, name) => sum + placesOf.get(name)!.length * callers.length, 0)

/** One of all cells, by its number. */
export function cellAt(number: number): Cell {
  let left = number % cellCount
  for (const name of names) {
    const where = placesOf.get(name)!
    const count = where.length * callers.length
    if (left < count) return { name, caller: callers[left % callers.length]!, ...where[Math.floor(left / callers.length)]! }
    left -= count
  }
  throw new Error(`There is no cell ${number}.`)
}

/** The scopes of a key for this call. */
export function scopesOf(held: Held, { needs }: Right): readonly Scope[] {
  if (held === 'all') return scopes
  if (held === 'none') return []
  if (held === 'others') return scopes.filter((scope) => !needs[0]?.includes(scope))
  return [held]
}

const reading: readonly Scope[] = [
  'identities:read',
  'messages:read',
  'emails:read',
  'sms:read',
  'cards:read',
  'account:read',
  'audit:read',
]

/** What people with each role may do, written by hand from the section People of docs/accounts.md. */
export const scopesOfPeople: Record<Role, ReadonlySet<Scope>> = {
  owner: new Set<Scope>([
    ...reading,
    'identities:write',
    'messages:write',
    'emails:write',
    'sms:write',
    'cards:write',
    'account:write',
    'holds:decide',
  ]),
  approver: new Set<Scope>([...reading, 'holds:decide']),
  reader: new Set(reading),
}

/** How people sign in themselves: any role may (the section Account of the API). */
const ownOfPeople = new Set([
  'DELETE /v1/session',
  'DELETE /v1/account/sessions',
  'POST /v1/account/password',
  'POST /v1/account/totp',
  'POST /v1/account/totp/confirm',
  'DELETE /v1/account/totp',
])

/** Calls that sign somebody in: from a page of the box alone. */
const signsIn = new Set(['POST /v1/session', 'POST /v1/setup', 'POST /v1/people/invitations/accept'])

/** True if a call does something, which a link or page of another site must not have done: GET where a secret is read, or a wait begun. */
function changes(name: string): boolean {
  return !name.startsWith('GET ') || /\/(?:reveal|code|wait)$/.test(name)
}

/** What admits a caller to a call, whatever it names; written by hand from the API document, sections 4, 5 and 7, and what was decided beside it. */
export function admissionOf({ name, caller }: Cell): Expected {
  const right = rights.get(name)!
  const isElsewhere = caller.kind === 'session' && caller.state === 'elsewhere'
  if (isElsewhere && (right.needs.length === 0 ? signsIn.has(name) : changes(name))) return { status: 403, codes: ['csrf'] }
  if (right.needs.length === 0) return 'allowed'
  if (caller.kind === 'nobody' || (caller.kind === 'session' && caller.state === 'ended'))
    return { status: 401, codes: ['missing_key'] }
  if (caller.kind === 'key' && (caller.state !== undefined || caller.bound === 'deleted' || caller.bound === 'expired'))
    return { status: 401, codes: ['invalid_key'] }
  if (caller.kind === 'key' && caller.account === 'stopped' && name !== 'GET /v1/whoami')
    return { status: 403, codes: ['account_stopped'] }
  if (right.operator && (caller.account !== 'own' || (caller.kind === 'key' && caller.bound !== undefined)))
    return { status: 403, codes: ['operator_only'] }
  if (caller.kind === 'session' && ownOfPeople.has(name)) return 'allowed'
  const held = caller.kind === 'key' ? new Set(scopesOf(caller.held, right)) : scopesOfPeople[caller.role]
  const admitted = right.needs.every((any) => any.some((scope) => held.has(scope)))
  return admitted ? 'allowed' : { status: 403, codes: ['insufficient_scope'] }
}

/** Calls that need the session of a person (the sections People, Sessions and Account). */
const ofSessions = new Set([
  'GET /v1/session',
  'DELETE /v1/session',
  'POST /v1/account/resume',
  'POST /v1/account/totp',
  'POST /v1/account/totp/confirm',
  'DELETE /v1/account/totp',
  'PATCH /v1/people/:id',
  'DELETE /v1/people/:id',
  'POST /v1/people/invitations',
  'DELETE /v1/people/invitations/:id',
])

/** Calls that are not for keys bound to an identity: who may write, what may leave, who did what (the sections Policy, Senders and Audit). */
const ofUnbound =
  /^(?:GET|PATCH) \/v1\/(?:policy|senders)$|\/identities\/:id\/(?:policy|senders)$|\/release$| \/v1\/(?:holds|audit)|^POST \/v1\/account\/stop$/

/** Objects of the account, which no key that is bound to an identity sees. */
const ofAccount = /^\w+ \/v1\/(?:(?:domains|suppressions|people|queue|billing|account)\b|api-keys\/)/

/** Objects that stay when the identity they are of is deleted. */
const outlives = /\/webhooks\//

/** What a caller who is admitted must be answered for what the call names. */
export function reachOf({ name, caller, place, mixed }: Cell): Expected {
  if (caller.kind === 'nobody' || rights.get(name)!.needs.length === 0) return 'allowed'
  if (caller.kind === 'key' && ofSessions.has(name)) return { status: 403, codes: ['session_required'] }
  if (caller.kind === 'session' && name === 'GET /v1/cards/:id/reveal') return { status: 403, codes: ['key_required'] }
  const missing: Expected = { status: 404, codes: ['not_found'] }
  const isBound = caller.kind === 'key' && caller.bound !== undefined
  const isOfUnbound = isBound && ofUnbound.test(name)
  if (isOfUnbound && !name.includes('/identities/')) return { status: 403, codes: ['bound_key'] }
  // what is of the whole account is absent for a key that is bound
  if (idsOf(name).length === 0 && isBound && ofAccount.test(name) && name.startsWith('GET ')) return missing
  if (idsOf(name).length > 0 && !sees({ name, caller, place, mixed })) return missing
  if (isOfUnbound) return { status: 403, codes: ['bound_key'] }
  return 'allowed'
}

function sees({ name, caller, place, mixed }: Cell): boolean {
  if (caller.kind === 'nobody' || mixed || place === 'absent') return false
  // all of the queue is the operator's
  if (name.includes('/queue/')) return true
  if (places[place] !== caller.account) return false
  const bound = caller.kind === 'key' ? caller.bound : undefined
  const isGone = place === 'deleted' || place === 'expired'
  if (ofAccount.test(name)) return bound === undefined && !(isGone && name.includes(':alias_id'))
  // an export that holds everything is seen with every scope to read
  if (name.includes('/jobs/') && caller.kind === 'key' && caller.held !== 'all') return false
  return (outlives.test(name) || !isGone) && (bound === undefined || bound === place)
}
