import { type Clock, iso } from '../core/clock.ts'
import { lruMap } from '../core/memory.ts'
import { type Cursors, page } from '../store/page.ts'
import { invalid, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import { type Caller, makerOf, type Scope, scopes as allScopes } from '../core/scopes.ts'
import type { Page } from '../core/shapes.ts'
import type { EventLog } from '../events/log.ts'
import { requireIdentity } from '../identities/row.ts'
import { type Database, type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import { requireScopes, requireWithin } from './granting.ts'
import { KeyLimits, makesOthers } from './key-limits.ts'
import { endingWith, endOfSecret, isStopped, type KeyRow, Origins } from './key-ancestry.ts'
import { KeyDeletion } from './key-deletion.ts'
import { type ApiKey, type ApiKeyFilter, keyCreated, keyRevoked, type KeyRevoked, keyRotated, type NewApiKey } from './model.ts'
import type { Plan } from './plan.ts'
import { keyHash, newKey } from './secret.ts'

type NewRow = Pick<ApiKey, 'label' | 'scopes' | 'identity_id' | 'expires_at' | 'created_by'> & {
  rate_limit: number | null
  former_until: string | null
}

type LivingRow = KeyRow & { stopped: number; identity_expires_at: string | null }

/** A cached key: all that admission needs without a query. */
interface Known {
  id: string
  admits: Identified
}

/** The rights of a key or session; `until` is when it ends. */
export type Holder = Identified

type Identified = Omit<Caller, 'ip' | 'user_agent'>

/** Kinds of objects that are created with keys and end with them. */
type Made = Exclude<keyof KeyRevoked['ended'], 'api_keys'>

/** Ends, in the transaction, these objects (a subquery of their ids); returns how many. */
type End = (tx: Transaction, ids: Sql) => Promise<number>

/** The API keys of every account. Used keys are cached until they change, so a call needs no query. */
export class Keys {
  readonly origins: Origins
  readonly deletion: KeyDeletion
  readonly #database: Database
  readonly #events: EventLog
  readonly #clock: Clock
  readonly #cursors: Cursors
  readonly #plan: Plan
  readonly #limits: KeyLimits
  #defaultRate: number
  #known = lruMap<Known>(10_000)
  /** Milliseconds since the Unix epoch. */
  readonly #used = new Map<string, number>()
  readonly #changed = new Set<(id: string) => void>()
  readonly #ends = new Map<Made, { objects: Sql; end: End }>()

  constructor(deps: { database: Database; events: EventLog; clock: Clock; cursors: Cursors; plan: Plan; rateLimit: number }) {
    this.#database = deps.database
    this.#events = deps.events
    this.#clock = deps.clock
    this.origins = new Origins(deps.clock)
    this.deletion = new KeyDeletion(deps.database, this.origins)
    this.#limits = new KeyLimits(this.origins, () => this.#defaultRate)
    this.#cursors = deps.cursors
    this.#plan = deps.plan
    this.#defaultRate = deps.rateLimit
    deps.database.caches.onInvalid('keys', () => this.#forgetKnown())
    deps.events.invalidatedBy((event) => {
      // a key bound to an identity ends with it
      if (event.type === 'identity.deleted') this.#forgetKnown()
      else if (event.type === 'identity.updated') this.#forgetBound(event.identity_id)
    })
  }

  /** Sets the calls a minute of keys without a limit of their own; 0 means no limit. */
  reload(rateLimit: number): void {
    this.#defaultRate = rateLimit
    this.#forgetKnown()
  }

  /** The rights of this key; undefined when it is unknown, revoked, expired, or bound to a deleted identity. */
  authenticate(key: string): Identified | undefined | Promise<Identified | undefined> {
    const hash = keyHash(key)
    const kept = this.#database.caches.valid ? this.#known.get(hash) : undefined
    // its identity may have been given a later end
    return (kept && this.#admitted(kept)) ?? this.#find(hash).then((found) => found && this.#admitted(found))
  }

  #admitted({ id, admits }: Known): Identified | undefined {
    if (admits.until <= this.#clock.now()) return undefined
    this.noteUsed(id)
    return admits
  }

  /**
   * The current rights of a secret of a key; undefined once the key is revoked, expired, or bound to a deleted identity, the secret was
   * replaced, or while the account is stopped.
   */
  async holder(id: string, secret: number): Promise<Holder | undefined> {
    const held = await this.evenStopped(id, secret)
    return held?.stopped ? undefined : held
  }

  /** The same, also while the account is stopped. */
  async evenStopped(id: string, secret: number): Promise<Holder | undefined> {
    const row = await this.#living(sql`api_keys.id = ${id}`)
    const held = row && this.#identified(row, secret)
    return held && held.until > this.#clock.now() ? held : undefined
  }

  /** Notes that a key was used by a token that stands for it. */
  noteUsed(id: string): void {
    this.#used.set(id, this.#clock.now())
  }

  /** The account of all of these keys is stopped or resumed in this transaction: once that is on disk, what they opened ends. */
  async accountChanges(tx: Transaction, accountId: string): Promise<void> {
    const rows = await tx.all<{ id: string }>(sql`SELECT id FROM api_keys WHERE account_id = ${accountId} AND revoked_at IS NULL`)
    await this.#database.caches.invalidate(tx, 'keys')
    tx.afterCommit(() => this.#forget(rows.map(({ id }) => id)))
  }

  /** The listener gets the id of each key that was revoked or rotated, or whose account was stopped or resumed, once that is on disk. */
  onChange(listener: (id: string) => void): void {
    this.#changed.add(listener)
  }

  /**
   * Registers, before the first call, one kind of object that ends with the key that created it: a query of the objects' `id` and `created_by`, and
   * how they end when the key is revoked.
   */
  ends(what: Made, objects: Sql, end: End): void {
    this.#ends.set(what, { objects, end })
    this.deletion.add(objects)
  }

  /** True if the secret that admitted a caller is still valid. Throws Fault 403, code `account_stopped`. */
  async stillAdmits(caller: Caller): Promise<boolean> {
    return (await this.origins.until(this.#database, caller)) !== undefined
  }

  async create(caller: Caller, input: NewApiKey): Promise<ApiKey & { key: string }> {
    const identityId = input.identity_id ?? caller.identity_id
    // who decides about what keys send is named, never meant
    const meant = [...caller.scopes].filter(
      (scope) => scope !== 'holds:decide' && (identityId === null || scope !== 'audit:read'),
    )
    const scopes = input.scopes ?? meant
    requireScopes(caller, scopes)
    if (identityId !== null && scopes.includes('audit:read')) {
      throw invalid(
        'scopes',
        'A key that is bound to one identity cannot have audit:read: the audit log is of the whole account.',
      )
    }
    if (caller.identity_id !== null && identityId !== caller.identity_id) throw notFound('identity')
    if (input.expires_at !== undefined && Date.parse(input.expires_at) <= this.#clock.now()) {
      throw invalid('expires_at', 'expires_at must be in the future.')
    }
    if (identityId !== null) await requireIdentity(this.#database, this.#clock, caller.account_id, identityId)
    const key = newKey()
    const row = await this.#database.transaction(async (tx) => {
      const bounds = await this.#limits.bounds(tx, caller)
      const rate_limit = input.rate_limit ?? bounds.usualRate
      const expires_at = input.expires_at ?? bounds.expires_at
      requireWithin(bounds, { rate_limit: rate_limit ?? this.#defaultRate, expires_at })
      await this.#plan.require(tx, caller.account_id, 'api_keys')
      await this.#limits.requireFew(tx, caller.account_id)
      await this.#limits.requireGeneration(tx, caller)
      const former = await this.origins.formerUntil(tx, caller)
      const former_until = former === Infinity ? null : iso(former)
      const made = { label: input.label, scopes, identity_id: identityId, rate_limit, expires_at, created_by: makerOf(caller) }
      const inserted = await this.#insert(tx, caller.account_id, { ...made, former_until }, key)
      await this.origins.inherit(tx, inserted.id, caller)
      const about = { account_id: caller.account_id, identity_id: identityId, data: this.#toApiKey(inserted) }
      await this.#events.append(tx, keyCreated, { ...about, refusable: true })
      return inserted
    })
    return { ...this.#toApiKey(row), key }
  }

  /** Creates the box's first key, with every scope; it replaces one that was never used. Null when there are other keys, or it was used. */
  async first(accountId: string, given: string | undefined): Promise<string | null> {
    const key = given ?? newKey()
    return this.#database.transaction(async (tx) => {
      const others = await tx.all<Pick<KeyRow, 'last_used_at' | 'label' | 'created_by'>>(
        sql`SELECT last_used_at, label, created_by FROM api_keys LIMIT 2`,
      )
      const isUnused = ({ last_used_at, label, created_by }: (typeof others)[number]): boolean =>
        last_used_at === null && created_by === null && label === firstLabel
      if (others.length > 1 || !others.every(isUnused)) return null
      await tx.run(sql`DELETE FROM api_keys`)
      await this.#database.caches.invalidate(tx, 'keys')
      await this.#insert(
        tx,
        accountId,
        {
          label: firstLabel,
          scopes: everyScope,
          identity_id: null,
          rate_limit: null,
          expires_at: null,
          created_by: null,
          former_until: null,
        },
        key,
      )
      return key
    })
  }

  list(caller: Caller, { created_by, ...paging }: ApiKeyFilter): Promise<Page<ApiKey>> {
    const by = created_by === undefined ? [] : [sql`created_by = ${created_by}`]
    const own = caller.identity_id === null ? [] : [sql`identity_id = ${caller.identity_id}`]
    return page<KeyRow, ApiKey>(this.#database, this.#cursors, paging, {
      name: `api-keys ${caller.account_id} ${created_by ?? ''}`,
      from: sql`api_keys`,
      account: caller.account_id,
      where: sql`account_id = ${caller.account_id}`,
      filters: [sql`revoked_at IS NULL`, ...own, ...by],
      present: this.#toApiKey,
    })
  }

  /**
   * Gives the key a new secret; the old one stays valid for `grace` seconds. Throws Fault 403, code `former_secret`, when called with an
   * old secret.
   */
  async rotate(caller: Caller, id: string, grace: number): Promise<ApiKey & { key: string }> {
    const key = newKey()
    const row = await this.#database.transaction(async (tx) => {
      const bounds = await this.#limits.bounds(tx, caller)
      const before = await this.#row(tx, caller, id)
      requireScopes(caller, JSON.parse(before.scopes) as Scope[])
      await this.#limits.requireCurrent(tx, caller)
      requireWithin(bounds, this.#toApiKey(before))
      const until = iso(this.#clock.now() + grace * 1000)
      // a key that rotates itself discloses its new secret to no other key
      const itself = caller.key_id === id
      const rotated_by = itself ? before.rotated_by : makerOf(caller)
      await (itself ? this.origins.renewed(tx, id) : this.origins.rotated(tx, id, caller, until))
      const after = await tx.get<KeyRow>(
        sql`UPDATE api_keys SET hash = ${keyHash(key)}, key_prefix = ${prefixOf(key)}, previous_hash = ${grace > 0 ? before.hash : null},
          previous_expires_at = ${until}, rotations = rotations + 1, rotated_by = ${rotated_by} WHERE id = ${id} RETURNING *`,
      )
      const { account_id, identity_id } = before
      await this.#events.append(tx, keyRotated, { account_id, identity_id, data: this.#toApiKey(after!) })
      await this.#database.caches.invalidate(tx, 'keys')
      return after!
    })
    this.#forget([id])
    return { ...this.#toApiKey(row), key }
  }

  /**
   * Revokes a key: the next call with it is 401. What was created with it ends too, unless `keep`: keys, also those it rotated, what those
   * created, and every kind registered with `ends`; but not the calling key. Throws Fault 409, code `last_key`, where no permanent key that
   * can create others would be left; 403, code `former_secret`, when the caller uses an old secret, or a key that was created with one, and
   * did not create this key.
   */
  revoke(caller: Caller, id: string, keep: boolean): Promise<KeyRevoked> {
    return this.#revoke(id, keep, caller.key_id, async (tx) => {
      await this.origins.requireAdmitted(tx, caller)
      const row = await this.#row(tx, caller, id)
      requireScopes(caller, JSON.parse(row.scopes) as Scope[])
      await this.#limits.requireCurrent(tx, caller)
      await this.#limits.requireOwn(tx, caller, id)
      return row
    })
  }

  /**
   * Revokes the key of a grant, and what was created with it, for who holds a token of the grant: a leaked token ends also while the account is
   * stopped, and after the key was rotated. Throws Fault 404 once the key is revoked.
   */
  revokeGrant(holder: Holder, id: string): Promise<KeyRevoked> {
    return this.#revoke(id, false, null, (tx) => this.#row(tx, holder, id))
  }

  /** `found` reads the key, and checks who revokes it; `spared` is a key that does not end with this one. */
  async #revoke(
    id: string,
    keep: boolean,
    spared: string | null,
    found: (tx: Transaction) => Promise<KeyRow>,
  ): Promise<KeyRevoked> {
    const [ids, ended] = await this.#database.transaction(async (tx) => {
      const row = await found(tx)
      // before all that it created is looked for
      const maker = await tx.get(sql`SELECT 1 FROM api_keys WHERE id = ${id} AND ${makesOthers}`)
      if (maker) await this.#limits.requireAnother(tx, row, keep)
      const all = keep ? [id] : await this.origins.madeWith(tx, id, spared)
      const which = sql`SELECT value FROM json_each(${JSON.stringify(all)})`
      const revoked_at = iso(this.#clock.now())
      const revoked = await tx.all<{ id: string; makes: number }>(
        sql`UPDATE api_keys SET revoked_at = ${revoked_at}, kept = ${Number(keep)} WHERE id IN (${which}) AND revoked_at IS NULL
          RETURNING id, ${makesOthers} AS makes`,
      )
      if (revoked.some(({ makes }) => makes === 1)) await this.#limits.requireAnother(tx, row, keep)
      const counts = { api_keys: revoked.length - 1, webhooks: 0, jobs: 0, scheduled_emails: 0, holds: 0 }
      if (!keep) {
        // what keys below it were to keep when they were revoked
        await tx.run(sql`UPDATE api_keys SET kept = 0 WHERE id IN (${which}) AND kept = 1`)
        for (const [what, { objects, end }] of this.#ends) counts[what] = await end(tx, endingWith(which, objects))
      }
      const { account_id, identity_id } = row
      const data = { ...this.#toApiKey({ ...row, revoked_at }), ended: counts }
      // one event: ten thousand keys may end with it
      await this.#events.append(tx, keyRevoked, { account_id, identity_id, data })
      await this.#database.caches.invalidate(tx, 'keys')
      return [revoked.map((one) => one.id), counts] as const
    })
    this.#forget(ids)
    // they are revoked already; what fails here is tried again by the sweep
    await this.deletion.deleteUnneeded(ids).catch(() => undefined)
    return { id, deleted: true, ended }
  }

  /** Stores when each key was last used. Runs on a schedule, so that calls do not write. */
  async noteUse(): Promise<void> {
    if (this.#used.size === 0) return
    const used = [...this.#used]
    await this.#database.transaction(async (tx) => {
      for (const [id, at] of used) {
        const isLater = sql`(last_used_at IS NULL OR last_used_at < ${iso(at)})`
        await tx.run(sql`UPDATE api_keys SET last_used_at = ${iso(at)} WHERE id = ${id} AND ${isLater}`)
      }
    })
    for (const [id, at] of used) if (this.#used.get(id) === at) this.#used.delete(id)
  }

  async #find(hash: string): Promise<Known | undefined> {
    // what is read before a change must not be found after it
    const cache = this.#known
    const row = await this.#living(sql`(hash = ${hash} OR previous_hash = ${hash})`)
    if (!row) return undefined
    const line = row.created_by === null ? [] : await this.#limits.line(this.#database, row.id)
    const made_by = line.slice(1).filter(({ rate_limit }) => rate_limit)
    const secret = row.hash === hash ? row.rotations : row.rotations - 1
    const known: Known = { id: row.id, admits: { ...this.#identified(row, secret), made_by } }
    cache.set(hash, known)
    return known
  }

  async #living(condition: Sql): Promise<LivingRow | undefined> {
    const row = await this.#database.get<LivingRow & { identity_status: string | null }>(
      sql`SELECT api_keys.*, identities.status AS identity_status, identities.expires_at AS identity_expires_at,
        ${isStopped} AS stopped FROM api_keys LEFT JOIN identities ON identities.id = api_keys.identity_id
        WHERE ${condition} AND revoked_at IS NULL`,
    )
    return row?.identity_status === 'deleted' ? undefined : row
  }

  /** Forgets the keys of an identity, which may end at another time. */
  #forgetBound(identityId: string | null): void {
    for (const [hash, { admits }] of this.#known.entries()) if (admits.identity_id === identityId) this.#known.delete(hash)
  }

  #forgetKnown(): void {
    this.#known = lruMap<Known>(10_000)
  }

  /** These keys changed on disk. */
  #forget(ids: readonly string[]): void {
    this.#forgetKnown()
    for (const id of ids) for (const listener of this.#changed) listener(id)
  }

  #identified(row: LivingRow, secret: number): Identified {
    const { account_id, id, identity_id } = row
    const scopes = new Set(JSON.parse(row.scopes) as Scope[])
    const rate_limit = row.rate_limit ?? this.#defaultRate
    const stopped = row.stopped === 1 ? { stopped: true as const } : {}
    const ended = row.identity_expires_at
    const until = Math.min(endOfSecret(row, secret), ended === null ? Infinity : Date.parse(ended))
    return { account_id, key_id: id, session_id: null, secret, scopes, identity_id, rate_limit, until, ...stopped }
  }

  async #insert(tx: Transaction, accountId: string, made: NewRow, key: string): Promise<KeyRow> {
    const row = await tx.get<KeyRow>(
      sql`INSERT INTO api_keys (id, account_id, label, scopes, key_prefix, hash, identity_id, rate_limit, created_at, expires_at, created_by, former_until)
        VALUES (${newId('key')}, ${accountId}, ${made.label}, ${JSON.stringify(made.scopes)}, ${prefixOf(key)}, ${keyHash(key)},
        ${made.identity_id}, ${made.rate_limit}, ${iso(this.#clock.now())}, ${made.expires_at}, ${made.created_by}, ${made.former_until}) RETURNING *`,
    )
    return row!
  }

  readonly #toApiKey = (row: KeyRow): ApiKey => {
    const { id, label, key_prefix, identity_id, created_at, created_by, rotated_by, last_used_at, expires_at, revoked_at } = row
    const scopes = JSON.parse(row.scopes) as Scope[]
    const rate_limit = row.rate_limit ?? this.#defaultRate
    const dates = { created_at, last_used_at, expires_at, revoked_at }
    return { id, label, scopes, key_prefix, identity_id, rate_limit, created_by, rotated_by, ...dates }
  }

  async #row(reader: Reader, caller: Holder, id: string): Promise<KeyRow> {
    const row = await reader.get<KeyRow>(
      sql`SELECT * FROM api_keys WHERE id = ${id} AND account_id = ${caller.account_id} AND revoked_at IS NULL`,
    )
    if (!row || (caller.identity_id !== null && row.identity_id !== caller.identity_id)) throw notFound('API key')
    return row
  }
}

function prefixOf(key: string): string {
  return key.slice(0, key.startsWith('pbx_') ? 12 : 6)
}

/** The label of the box's first key, and its scopes. */
const firstLabel = 'first key'
const everyScope: Scope[] = [...allScopes]
