import { newKey } from '../../../src/accounts/secret.ts'
import type { Question } from '../../contract/asking.ts'
import type { Estate } from '../../contract/estate.ts'
import { addedAccount, plantedKey } from '../../contract/inhabited.ts'
import { plantedPerson } from '../../contract/planted-people.ts'
import { settle } from '../../contract/estate.ts'
import { rights } from '../../contract/rights-table.ts'
import type { InhabitedBox } from '../box/inhabited-box.ts'
import { type Account, type Caller, type Cell, type Place, scopesOf } from './cells.ts'

const yesterday = new Date(Date.now() - 86_400_000).toISOString()

/** Estates in further states, and people with each role. */
export interface People {
  estates: Record<'suspended' | 'deleted' | 'expired' | 'stopped', Estate>
  approver: string
  reader: string
}

/** Settles identities that are suspended, deleted and expired, and an account that is stopped. */
export async function plantPeople({ box, own, database, settle: settleOwn }: InhabitedBox): Promise<People> {
  const [suspended, deleted, expired] = [await settleOwn('Suspended'), await settleOwn('Deleted'), await settleOwn('Expired')]
  const { id: account } = await addedAccount(box, 'Stopped', 'stopped@example.com')
  const key = await plantedKey(box, database, { account })
  const stopped = await settle(box, database, { key, account, name: 'Stopped' })
  const approver = plantedPerson(database, own.account)
  database.prepare("UPDATE logins SET role = 'approver' WHERE id = ?").run(approver)
  const people = { approver, reader: plantedPerson(database, own.account) }
  // that of the owner, as they may be asked for it
  const { password } = database
    .prepare("SELECT password FROM logins WHERE account_id = ? AND role = 'owner' ORDER BY seq LIMIT 1")
    .get(own.account) as { password: string }
  database.prepare('UPDATE logins SET password = ? WHERE id IN (?, ?)').run(password, people.approver, people.reader)
  await box.call('PATCH', `/v1/identities/${suspended.objects['identities/:id']}`, { status: 'suspended' })
  await box.call('DELETE', `/v1/identities/${deleted.objects['identities/:id']}`)
  database.prepare('UPDATE identities SET expires_at = ? WHERE id = ?').run(yesterday, expired.objects['identities/:id']!)
  await box.call('POST', '/v1/account/stop', {}, { key })
  return { ...people, estates: { suspended, deleted, expired, stopped } }
}

/** The keys and sessions of callers, each planted when it is first needed. */
export class Credentials {
  readonly #box: InhabitedBox
  readonly #people: People
  readonly #estates: Record<Exclude<Place, 'absent'>, Estate>
  readonly #known = new Map<string, Promise<string>>()

  constructor(box: InhabitedBox, people: People, estates: Record<Exclude<Place, 'absent'>, Estate>) {
    this.#box = box
    this.#people = people
    this.#estates = estates
  }

  /** What a caller sends with a call. */
  async of({ name, caller }: Pick<Cell, 'name' | 'caller'>): Promise<Pick<Question, 'key' | 'cookie' | 'headers'>> {
    if (caller.kind === 'nobody') return { key: null }
    if (caller.kind === 'key') {
      const held = caller.held === 'others' ? scopesOf('others', rights.get(name)!) : caller.held
      return { key: await this.#once(JSON.stringify([caller, held]), () => this.#key(caller, name)) }
    }
    const elsewhere = { Origin: 'https://elsewhere.test', 'Sec-Fetch-Site': 'cross-site' }
    const cookie = await this.#once(JSON.stringify(caller), () => this.#session(caller))
    return { cookie, ...(caller.state === 'elsewhere' ? { headers: elsewhere } : {}) }
  }

  #once(name: string, make: () => Promise<string>): Promise<string> {
    const known = this.#known.get(name) ?? make()
    this.#known.set(name, known)
    return known
  }

  async #key({ account, held, bound, state }: Extract<Caller, { kind: 'key' }>, name: string): Promise<string> {
    if (state === 'unknown') return newKey()
    const identity = bound === undefined || bound === 'absent' ? undefined : this.#estates[bound].objects['identities/:id']!
    return this.#box.plantKey({
      account: this.#accountOf(account),
      scopes: scopesOf(held, rights.get(name)!),
      ...(identity === undefined ? {} : { identity }),
      ...(state === 'revoked' ? { revoked_at: yesterday } : {}),
      ...(state === 'expired' ? { expires_at: yesterday } : {}),
    })
  }

  async #session({ account, role, state }: Extract<Caller, { kind: 'session' }>): Promise<string> {
    const person = role === 'owner' ? undefined : this.#people[role]
    const cookie = await this.#box.plantSession(this.#accountOf(account), person)
    if (state === 'ended') await this.#box.box.call('DELETE', '/v1/session', undefined, this.#signedIn(cookie))
    return cookie
  }

  #signedIn(cookie: string): { key: null; headers: Record<string, string> } {
    return { key: null, headers: { Cookie: cookie, Origin: this.#box.box.url } }
  }

  #accountOf(account: Account): string {
    return this.#estates[account].account
  }
}
