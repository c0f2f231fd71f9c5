import type { Basis } from '../basis.ts'
import { hostNameOf } from '../core/domain-names.ts'
import { sweep } from '../core/cron.ts'
import { trimEnd } from '../core/text.ts'
import type { Plan } from '../accounts/plan.ts'
import { iso } from '../core/clock.ts'
import { page } from '../store/page.ts'
import { conflict, Fault, invalid, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import { boxNames, isRoleName } from './role-names.ts'
import type { Caller } from '../core/scopes.ts'
import { type Page, wordsOf } from '../core/shapes.ts'
import type { Domains } from '../domains/domains.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import { claim, mayChoose, named, notChosen, notForYou, notFree, ownAmong, reached, requireFreeAddress } from './claims.ts'
import { type Acquired, type IdentityRow, merged, type PhoneNumbers, present, reduced, selection, toIdentity } from './row.ts'
import {
  type Identity,
  type IdentityChange,
  identityCreated,
  identityDeleted,
  type IdentityFilter,
  identityUpdated,
  type NewIdentity,
  type ReducedIdentity,
  type Storage,
  type WhoAmI,
} from './model.ts'
import { adultDate, generatedName, localPartOf, longestLocalPart, nameKey, oneName } from './names.ts'

export type { IdentityRow } from './row.ts'

/** The storage usage and quota of an identity. */
type StorageOf = (row: Pick<IdentityRow, 'email' | 'stored_bytes' | 'media_bytes' | 'trash_bytes'>) => Storage

/** A hook that runs in the transaction in which an identity is deleted or resumed. */
type IdentityHook = (tx: Transaction, identityId: string) => Promise<void>

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'cursors' | 'account'> {
  domains: Pick<Domains, 'mayUse' | 'stillUsable' | 'unsendable'>
  /** The box's own domain. */
  domain: string
  plan: Plan
  storageOf: StorageOf
}

/** What decides which identities a caller sees. */
type Visibility = Pick<Caller, 'account_id' | 'identity_id'>

/** The identities of every account, and their addresses, which are reserved for ever. */
export class Identities {
  readonly #deps: Deps
  readonly #leaving: IdentityHook[] = []
  readonly #resuming: IdentityHook[] = []
  /** Set later, as the phone module depends on identities. */
  #phones: PhoneNumbers | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    deps.plan.counts(
      'identities',
      (accountId) => sql`SELECT count(*) AS n FROM identities WHERE account_id = ${accountId} AND status <> 'deleted'`,
    )
  }

  async create(caller: Caller, input: NewIdentity): Promise<Identity> {
    if (caller.identity_id !== null) throw notFound('identity')
    this.#requireFuture(input.expires_at)
    const name = oneName(input)
    const domain = this.#hosted(caller.account_id, input.email_domain)
    const make = async (phone?: Acquired): Promise<Identity> => {
      const identity = await this.#deps.database.transaction(async (tx) => {
        if (!(await this.#deps.domains.stillUsable(tx, caller.account_id, domain))) throw this.#notHosted(domain)
        await this.#deps.plan.require(tx, caller.account_id, 'identities')
        return this.#insert(tx, caller.account_id, { ...input, name }, domain, { phone })
      })
      return this.#described(identity, { ...identity, stored_bytes: 0, media_bytes: 0, trash_bytes: 0 })
    }
    if (!input.provision_phone) return make()
    // no number is bought for a request that fails anyway
    await this.#deps.plan.require(this.#deps.database, caller.account_id, 'identities')
    if (name !== undefined) await this.#requireFree(this.#deps.database, caller.account_id, name)
    const address = input.email_username === undefined ? undefined : `${input.email_username}@${domain}`
    if (address !== undefined) {
      if (!(await this.#mayChoose(this.#deps.database, caller.account_id, domain))) throw notChosen()
      if (this.#isReserved(address, caller.account_id)) throw notForYou(address, 'email_username')
      await requireFreeAddress(this.#deps.database, address, caller.account_id)
    }
    const phone = await this.#phoneNumbers.acquire(caller.account_id, input.phone_country)
    try {
      return await make(phone)
    } catch (error) {
      await phone.giveBack()
      throw error
    }
  }

  /** Sets the source of phone numbers, before the first identity is created. */
  equip(phones: PhoneNumbers): void {
    this.#phones = phones
  }

  async list(caller: Caller, filter: IdentityFilter): Promise<Page<ReducedIdentity>> {
    const { name, email } = filter
    const query = wordsOf(filter)
    return page<IdentityRow, ReducedIdentity>(this.#deps.database, this.#deps.cursors, filter, {
      name: `identities ${caller.account_id} ${JSON.stringify({ name, email, query })}`,
      columns: sql`seq, id, name, email, phone_number, status, created_at`,
      from: sql`identities`,
      account: caller.account_id,
      ...selection(caller, { ...filter, query }, this.#now()),
      present: reduced,
    })
  }

  async get(caller: Caller, id: string): Promise<Identity> {
    const row = await this.row(caller, id)
    return this.#described(toIdentity(row), row)
  }

  /** The rights of a caller, and the identity that it is bound to. */
  async whoami(caller: Caller): Promise<WhoAmI> {
    const { account_id, key_id, session_id, rate_limit, until, identity_id } = caller
    const identity = identity_id === null ? null : await this.get(caller, identity_id)
    const expires_at = until === Infinity ? null : iso(until)
    // of an account, what its new identities can do
    const reason = identity === null ? this.#deps.domains.unsendable() : (identity.cannot_send_outside_reason ?? null)
    return {
      account_id,
      key_id,
      session_id,
      scopes: [...caller.scopes],
      rate_limit,
      expires_at,
      can_send_outside: reason === null,
      cannot_send_outside_reason: reason,
      identity,
    }
  }

  /** The row of a non-deleted identity that the caller may see; throws Fault not_found. */
  async row(caller: Visibility, id: string, reader: Reader = this.#deps.database): Promise<IdentityRow> {
    const found = mayName(caller, id) ? await reader.get<IdentityRow>(sql`SELECT * FROM identities WHERE id = ${id}`) : undefined
    const row = present(found, this.#deps.clock)
    if (!row || row.account_id !== caller.account_id || row.status === 'deleted') throw notFound('identity')
    return row
  }

  async update(caller: Caller, id: string, change: IdentityChange): Promise<Identity> {
    this.#requireFuture(change.expires_at)
    const name = oneName(change)
    const row = await this.#deps.database.transaction(async (tx) => {
      const before = await this.row(caller, id, tx)
      requireNoLonger(caller, before, change)
      requireNotResumed(caller, before, change)
      if (name !== undefined && nameKey(name) !== nameKey(before.name)) await this.#requireFree(tx, before.account_id, name)
      const after: IdentityRow = {
        ...before,
        name: name ?? before.name,
        date_of_birth: change.date_of_birth ?? before.date_of_birth,
        status: change.status ?? before.status,
        metadata: merged(before.metadata, change.metadata),
        expires_at: change.expires_at === undefined ? before.expires_at : change.expires_at,
        updated_at: iso(this.#deps.clock.now()),
      }
      await tx.run(
        sql`UPDATE identities SET name = ${after.name}, name_key = ${nameKey(after.name)}, date_of_birth = ${after.date_of_birth},
          status = ${after.status}, metadata = ${after.metadata}, expires_at = ${after.expires_at}, updated_at = ${after.updated_at} WHERE id = ${id}`,
      )
      const resumed = before.status === 'suspended' && after.status === 'active'
      for (const resume of resumed ? this.#resuming : []) await resume(tx, id)
      await this.#deps.events.append(tx, identityUpdated, {
        account_id: after.account_id,
        identity_id: id,
        data: toIdentity(after),
        // an identity over its quota can still be suspended, and resumed below it
        refusable: before.status !== 'active' || after.status === 'active',
      })
      return after
    })
    return this.#described(toIdentity(row), row)
  }

  /** Registers, before `start`, a hook that runs in the transaction of each deletion. */
  onRemove(leave: IdentityHook): void {
    this.#leaving.push(leave)
  }

  /** Registers, before `start`, a hook that runs in the transaction of each resumption. */
  onResume(resume: IdentityHook): void {
    this.#resuming.push(resume)
  }

  /** Deletes softly: every caller gets 404, the address stays reserved and rejects mail. */
  async remove(caller: Caller, id: string): Promise<{ id: string; deleted: true }> {
    return this.#deps.database.transaction(async (tx) => {
      await this.#delete(tx, await this.row(caller, id, tx))
      return { id, deleted: true }
    })
  }

  /** Deletes those that have expired, each as `remove` does; `done` is called with each. */
  async expire(done: (row: Pick<IdentityRow, 'id' | 'account_id'>) => void, signal?: AbortSignal): Promise<void> {
    const { database } = this.#deps
    const step = (): Promise<boolean> =>
      database.transaction(async (tx) => {
        const row = await tx.get<IdentityRow>(
          sql`SELECT * FROM identities WHERE expires_at IS NOT NULL AND expires_at <= ${this.#now()} AND status <> 'deleted' LIMIT 1`,
        )
        if (!row) return false
        await this.#delete(tx, row)
        tx.afterCommit(() => done(row))
        return true
      })
    await sweep(step, signal)
  }

  async #delete(tx: Transaction, { id, account_id, name, email, stored_bytes, media_bytes }: IdentityRow): Promise<void> {
    await tx.run(sql`UPDATE identities SET status = 'deleted', updated_at = ${this.#now()} WHERE id = ${id}`)
    await this.#deps.plan.add(tx, account_id, 'storage_bytes', -(stored_bytes + media_bytes))
    for (const leave of this.#leaving) await leave(tx, id)
    // those of its messages are hidden from now on
    await this.#deps.events.dropCaches(tx)
    await this.#deps.events.append(tx, identityDeleted, {
      account_id,
      identity_id: id,
      data: { id, name, email, status: 'deleted' },
    })
  }

  /**
   * The identity that receives mail to an address, active or deleted: by its own address, by an alias, or else as the domain's catch-all.
   * The address is lower case and without a tag. The catch-all gets no address that was assigned once or is reserved.
   */
  async ownerOf(address: string, reader: Reader = this.#deps.database): Promise<IdentityRow | undefined> {
    return present(await reached(reader, address), this.#deps.clock)
  }

  /** Clears the remaining data of a deleted identity; its address stays reserved. Returns that nothing is left. */
  async clear(tx: Transaction, id: string): Promise<boolean> {
    await tx.run(
      sql`UPDATE identities SET name = '', name_key = '', date_of_birth = '', metadata = '{}' WHERE id = ${id} AND status = 'deleted'`,
    )
    return false
  }

  /** The identity of this address or alias, active or deleted, ignoring catch-alls. The address is lower case and without a tag. */
  async named(address: string): Promise<IdentityRow | undefined> {
    return present(await named(this.#deps.database, address), this.#deps.clock)
  }

  /** Returns those of the addresses (lower case, without tags) that are the identity's own or its aliases. */
  ownAmong(id: string, addresses: string[]): Promise<string[]> {
    return ownAmong(this.#deps.database, id, addresses)
  }

  /** With what is known besides its row: its storage, and whether its mail can leave this box. */
  #described(identity: Identity, sizes: Parameters<StorageOf>[0]): Identity {
    const { email, status } = identity
    const domain = email.slice(email.lastIndexOf('@') + 1)
    const reason =
      status === 'suspended'
        ? 'The identity is suspended. Ask whoever manages it to set its status to active.'
        : this.#deps.domains.unsendable(domain)
    return {
      ...identity,
      storage: this.#deps.storageOf(sizes),
      can_send_outside: reason === null,
      cannot_send_outside_reason: reason,
    }
  }

  /** The operator's identity for `postmaster` and `abuse` of hosted domains (RFC 5321 4.5.1), created with the first such message. */
  async operator(tx: Transaction, accountId: string): Promise<IdentityRow> {
    const address = `postmaster@${this.#deps.domain}`
    const owner = await this.ownerOf(address, tx)
    if (owner && owner.status !== 'deleted') return owner
    // a caller may have taken the name, which must not block this mailbox
    const input = (await this.#isTaken(tx, accountId, 'postmaster')) ? {} : { name: 'postmaster' }
    // the role outlives the identity that had it
    if (owner) await tx.run(sql`DELETE FROM addresses WHERE identity_id = ${owner.id}`)
    const made = await this.#insert(tx, accountId, { ...input, email_username: 'postmaster' }, this.#deps.domain, { role: true })
    await tx.run(
      sql`INSERT INTO addresses (address, identity_id) VALUES (${`abuse@${this.#deps.domain}`}, ${made.id}) ON CONFLICT DO NOTHING`,
    )
    return (await this.ownerOf(address, tx))!
  }

  async #insert(
    tx: Transaction,
    accountId: string,
    input: NewIdentity,
    domain: string,
    { role = false, phone }: { role?: boolean; phone?: Acquired | undefined } = {},
  ): Promise<Identity> {
    const name = input.name ?? (await this.#freshName(tx, accountId))
    if (input.name !== undefined) await this.#requireFree(tx, accountId, name)
    const id = newId('ident')
    const now = iso(this.#deps.clock.now())
    const email = await this.#claim(tx, accountId, id, input.email_username, name, domain, role)
    const row = await tx.get<IdentityRow>(
      sql`INSERT INTO identities (id, account_id, name, name_key, email, date_of_birth, status, metadata, expires_at, created_at, updated_at)
        VALUES (${id}, ${accountId}, ${name}, ${nameKey(name)}, ${email}, ${input.date_of_birth ?? adultDate(this.#deps.clock.now())}, 'active',
        ${JSON.stringify(input.metadata ?? {})}, ${input.expires_at ?? null}, ${now}, ${now}) RETURNING *`,
    )
    const identity = toIdentity({ ...row!, phone_number: phone?.number ?? null })
    await this.#deps.events.append(tx, identityCreated, {
      account_id: accountId,
      identity_id: id,
      data: identity,
      refusable: !role,
    })
    await phone?.assign(tx, id)
    return identity
  }

  async #claim(
    tx: Transaction,
    accountId: string,
    id: string,
    username: string | undefined,
    name: string,
    domain: string,
    role: boolean,
  ): Promise<string> {
    const chosen = role || (await this.#mayChoose(tx, accountId, domain))
    if (username !== undefined && !chosen) throw notChosen()
    const wanted = username ?? ((chosen && localPartOf(name)) || `agent-${id.slice(-10)}`)
    for (let attempt = 1; ; attempt += 1) {
      const suffix = attempt === 1 ? '' : attempt <= 50 ? `-${attempt}` : `-${newId('ident').slice(-10)}`
      const local = `${trimEnd(wanted.slice(0, longestLocalPart - suffix.length), '._-')}${suffix}`
      const address = `${local}@${domain}`
      const free = role || !this.#isReserved(address, accountId)
      if (!free && username !== undefined) throw notForYou(address, 'email_username')
      if (free && (await claim(tx, { address, account_id: accountId, identity_id: id, alias_id: null }))) return address
      if (username !== undefined) throw await notFree(tx, address, 'email_username')
    }
  }

  /** The operator's account, and any at a domain of its own, may always choose. */
  async #mayChoose(reader: Reader, accountId: string, domain: string): Promise<boolean> {
    const { account, domain: own } = this.#deps
    return domain !== own || accountId === account || mayChoose(reader, accountId, own)
  }

  /** True if an address is a role name: at the box's own domain these belong to the operator's account, and some can never be assigned. */
  #isReserved(address: string, accountId: string): boolean {
    const at = address.lastIndexOf('@')
    const local = address.slice(0, at)
    const own = address.slice(at + 1) === this.#deps.domain
    return boxNames.has(local) || (own && accountId !== this.#deps.account && isRoleName(local))
  }

  async #freshName(tx: Transaction, accountId: string): Promise<string> {
    for (;;) {
      const name = generatedName()
      if (!(await this.#isTaken(tx, accountId, name))) return name
    }
  }

  get #phoneNumbers(): PhoneNumbers {
    if (!this.#phones) throw new Error('No SMS provider supplies numbers.')
    return this.#phones
  }

  async #requireFree(tx: Reader, accountId: string, name: string): Promise<void> {
    if (await this.#isTaken(tx, accountId, name)) throw conflict(`An identity named “${name}” exists already.`, { param: 'name' })
  }

  async #isTaken(tx: Reader, accountId: string, name: string): Promise<boolean> {
    const row = await tx.get(
      sql`SELECT 1 FROM identities WHERE account_id = ${accountId} AND name_key = ${nameKey(name)} AND status <> 'deleted'`,
    )
    return row !== undefined
  }

  #requireFuture(at: string | null | undefined): void {
    if (at && at <= this.#now()) throw invalid('expires_at', 'expires_at must be in the future.')
  }

  #now(): string {
    return iso(this.#deps.clock.now())
  }

  #hosted(accountId: string, domain: string | undefined): string {
    if (domain === undefined) return this.#deps.domain
    const name = hostNameOf(domain)
    if (name !== undefined && this.#deps.domains.mayUse(accountId, name)) return name
    throw this.#notHosted(domain)
  }

  #notHosted(domain: string): Fault {
    return invalid('email_domain', `${domain} is not a verified domain of this account; leave it out for ${this.#deps.domain}.`)
  }
}

/** Throws Fault 403, code `beyond_own`, when a key that is bound to an identity would prolong it. */
function requireNoLonger({ identity_id }: Visibility, before: IdentityRow, { expires_at }: IdentityChange): void {
  if (identity_id === null || expires_at === undefined || before.expires_at === null) return
  if (expires_at !== null && expires_at <= before.expires_at) return
  throw new Fault(
    'forbidden',
    `A key that is bound to an identity cannot prolong it: expires_at can be no later than ${before.expires_at}.`,
    { code: 'beyond_own', param: 'expires_at' },
  )
}

/** Throws Fault 403, code `beyond_own`, when a key that is bound to an identity would lift its suspension. */
function requireNotResumed({ identity_id }: Visibility, before: IdentityRow, { status }: IdentityChange): void {
  if (identity_id === null || before.status !== 'suspended' || status !== 'active') return
  throw new Fault(
    'forbidden',
    'A key that is bound to an identity cannot lift its suspension. Ask whoever manages it to set its status to active.',
    { code: 'beyond_own', param: 'status' },
  )
}

/** True if a key may access this identity; one bound to another identity answers 404. */
function mayName(caller: Visibility, id: string): boolean {
  return caller.identity_id === null || caller.identity_id === id
}
