import type { Basis } from '../basis.ts'
import type { Plan } from '../accounts/plan.ts'
import { hour, iso, minute } from '../core/clock.ts'
import { conflict, Fault, invalid, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import type { Queue } from '../queue/queue.ts'
import type { Identities } from '../identities/identities.ts'
import type { Identity } from '../identities/model.ts'
import { type Acquired, isOfLiving } from '../identities/row.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import { phoneProvisioned } from './model.ts'
import { type NumberRow, releaseKind, type ReleaseLoad, toPhoneNumber } from './rows.ts'
import { isOf } from './phone-codes.ts'
import type { ProviderNumber, SmsProvider } from './provider.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'log' | 'account'> {
  queue: Queue
  plan: Plan
  identities: Identities
  /** Undefined when no provider is configured. */
  provider: SmsProvider | undefined
  /** The default country of a number. */
  country: () => string
}

/** The most bought numbers that an account can return within 30 days and still buy another: each is charged to the operator for a month. */
const maxReturned = 10
const month = 30 * 24 * hour

/** The age in milliseconds up to which an intent may be one that another box is buying for: three requests to the provider, and the database. */
const longestPurchase = 10 * minute

/**
 * Phone numbers and their identities. A purchase is first stored as an intent, whose id is the name that the number is bought under:
 * however the purchase ends, the number is found by it and is assigned or released.
 */
export class Numbers {
  readonly #deps: Deps
  /** Intents that this process is buying for now. */
  readonly #buying = new Set<string>()

  constructor(deps: Deps) {
    this.#deps = deps
    deps.plan.counts(
      'phone_numbers',
      (accountId) =>
        sql`SELECT count(*) AS n FROM phone_numbers WHERE account_id = ${accountId} AND status IN ('wanted', 'active')`,
    )
  }

  /** Assigns a number to an identity. */
  async provision(caller: Caller, identityId: string, country: string | undefined): Promise<Identity> {
    const { database, identities } = this.#deps
    const row = await identities.row(caller, identityId)
    if (row.phone_number !== null) throw hasOne(row.phone_number)
    const acquired = await this.acquire(row.account_id, country, identityId)
    try {
      await database.transaction(async (tx) => {
        // it may have been deleted meanwhile
        await identities.row(caller, identityId, tx)
        await acquired.assign(tx, identityId)
      })
    } catch (error) {
      await acquired.giveBack()
      throw error
    }
    return identities.get(caller, identityId)
  }

  /**
   * Gets an unassigned number. Throws Fault invalid_request, code `sms_not_configured`, without a provider, and internal_error, code
   * `sms_provider_error`, when the provider fails; nothing is left behind then.
   */
  async acquire(accountId: string, wanted: string | undefined, identityId: string | null = null): Promise<Acquired> {
    const { provider, database, log, country: usual } = this.#deps
    if (!provider) throw notConfigured(identityId === null ? 'provision_phone' : undefined)
    const country = wanted ?? usual()
    const id = newId('phone')
    this.#buying.add(id)
    let held: ProviderNumber | undefined
    try {
      await this.#want(id, accountId, identityId, country, provider)
      held = provider.provision ? await provider.provision(country, id) : await this.#take(provider, id, wanted)
      const { number, provider_id } = held
      await database.transaction((tx) =>
        tx.run(sql`UPDATE phone_numbers SET number = ${number}, provider_id = ${provider_id} WHERE id = ${id}`),
      )
      return {
        number,
        assign: (tx, owner) => this.#assign(tx, id, owner).then(() => tx.afterCommit(() => this.#buying.delete(id))),
        giveBack: () => this.#giveBack(id),
      }
    } catch (error) {
      // if the number was bought anyway, it is found by the name of the intent; a provider's Fault is from before the purchase
      const bought = held !== undefined || !(error instanceof Fault)
      // another box, which took the purchase for interrupted, may have assigned or released the number
      const open = sql`id = ${id} AND status = 'wanted'`
      await this.#abandonIntent(id, (tx) =>
        tx.run(
          bought ? sql`UPDATE phone_numbers SET status = 'void' WHERE ${open}` : sql`DELETE FROM phone_numbers WHERE ${open}`,
        ),
      )
      if (error instanceof Fault) throw identityId === null ? ofIdentity(error) : error
      log.error({ err: error, provider: provider.name, country, intent: id }, 'phone number could not be provisioned')
      const reason = error instanceof Error ? error.message : 'it failed'
      throw new Fault('internal_error', `The SMS provider supplied no number: ${reason}`, {
        code: 'sms_provider_error',
        cause: error,
      })
    }
  }

  /** Takes the number from an identity; the queue releases it at the provider. */
  async remove(caller: Caller, identityId: string): Promise<{ id: string; deleted: true }> {
    const { database, identities } = this.#deps
    return database.transaction(async (tx) => {
      const row = await identities.row(caller, identityId, tx)
      if (row.phone_number === null) throw notFound('phone number: the identity has none')
      await this.#release(tx, sql`identity_id = ${identityId} AND status = 'active'`)
      await tx.run(sql`UPDATE identities SET phone_number = NULL, updated_at = ${this.#now()} WHERE id = ${identityId}`)
      return { id: identityId, deleted: true }
    })
  }

  /** Releases the number of a deleted identity. */
  async abandon(tx: Transaction, identityId: string): Promise<void> {
    await this.#release(tx, sql`identity_id = ${identityId} AND status = 'active'`)
    await tx.run(sql`UPDATE identities SET phone_number = NULL WHERE id = ${identityId}`)
  }

  /** The active holder of one of our numbers, whose identity has not expired. */
  async holder(number: string, reader: Reader = this.#deps.database): Promise<NumberRow | undefined> {
    return reader.get<NumberRow>(
      sql`SELECT * FROM phone_numbers WHERE number = ${number} AND status = 'active' AND ${isOfLiving(sql`identity_id`, this.#now())}`,
    )
  }

  /** The number of an identity; throws Fault conflict, code `no_phone_number`. */
  async of(reader: Reader, identityId: string): Promise<NumberRow & { number: string }> {
    const row = await reader.get<NumberRow & { number: string }>(
      sql`SELECT * FROM phone_numbers WHERE identity_id = ${identityId} AND status = 'active'`,
    )
    if (!row) throw noNumber()
    return row
  }

  /** Reconciles the provider's numbers with ours: assigns numbers of pending intents, and releases the rest. */
  async reconcile(): Promise<void> {
    const { provider, log, database } = this.#deps
    if (!provider) return
    const bought = (await provider.bought?.()) ?? new Map<string, ProviderNumber>()
    for (const [name, held] of bought) {
      if (this.#buying.has(name)) continue
      const known = await database.transaction((tx) => this.#settle(tx, name, held))
      if (held.astray && (await this.holder(held.number))) {
        await provider.redirect?.(held)
        log.warn({ number: held.number }, 'callback URL of a number differed and was corrected')
      }
      if (!known) log.warn({ number: held.number, name }, 'the provider has a number with a name that this box does not know')
    }
    // an intent of another provider has expired; if that provider returns, its number is found by name
    await database.transaction((tx) =>
      tx.run(sql`UPDATE phone_numbers SET identity_id = NULL WHERE status = 'wanted' AND provider <> ${provider.name}`),
    )
    const voided = await database.all<{ id: string }>(
      sql`SELECT id FROM phone_numbers WHERE status = 'void' AND provider = ${provider.name} AND created_at < ${this.#monthAgo()}`,
    )
    for (const { id } of voided) {
      if (!bought.has(id)) await database.transaction((tx) => tx.run(sql`DELETE FROM phone_numbers WHERE id = ${id}`))
    }
    // an intent of a process that has ended and bought nothing
    const open = await database.all<NumberRow>(
      sql`SELECT * FROM phone_numbers WHERE status = 'wanted' AND provider = ${provider.name}`,
    )
    for (const row of open) {
      const { id } = row
      if (this.#isBuying(row) || bought.has(id)) continue
      await database.transaction((tx) =>
        tx.run(sql`UPDATE phone_numbers SET status = 'void' WHERE id = ${id} AND status = 'wanted'`),
      )
    }
  }

  /** Returns false for a name that is not ours. */
  async #settle(tx: Transaction, id: string, held: ProviderNumber): Promise<boolean> {
    const row = await tx.get<NumberRow>(sql`SELECT * FROM phone_numbers WHERE id = ${id}`)
    if (!row) return false
    if (row.status === 'active' || row.status === 'releasing' || this.#isBuying(row)) return true
    await tx.run(sql`UPDATE phone_numbers SET number = ${held.number}, provider_id = ${held.provider_id} WHERE id = ${id}`)
    const { identity_id } = row
    const owner =
      identity_id === null || row.status !== 'wanted'
        ? undefined
        : await tx.get(sql`SELECT 1 FROM identities WHERE id = ${identity_id} AND status <> 'deleted' AND phone_number IS NULL`)
    if (owner) await this.#assign(tx, id, identity_id!)
    else await this.#release(tx, sql`id = ${id}`)
    tx.afterCommit(() =>
      this.#deps.log.warn(
        { number: held.number, intent: id, identity_id },
        owner ? 'number bought before a crash was adopted' : 'unassigned number released',
      ),
    )
    return true
  }

  async #want(id: string, account: string, identity: string | null, country: string, provider: SmsProvider): Promise<void> {
    await this.#deps.database.transaction(async (tx) => {
      const other =
        identity === null
          ? undefined
          : await tx.get(sql`SELECT 1 FROM phone_numbers WHERE identity_id = ${identity} AND status IN ('wanted', 'active')`)
      if (other) throw conflict('A number is being provisioned for this identity.', { code: 'phone_number_exists' })
      await this.#deps.plan.require(tx, account, 'phone_numbers')
      if (account !== this.#deps.account) await this.#requireFewReturned(tx, account)
      await tx.run(
        sql`INSERT INTO phone_numbers (id, account_id, identity_id, provider, country, status, created_at)
          VALUES (${id}, ${account}, ${identity}, ${provider.name}, ${country}, 'wanted', ${this.#now()})`,
      )
    })
  }

  async #requireFewReturned(tx: Transaction, account: string): Promise<void> {
    const returned = await tx.get<{ n: number }>(
      sql`SELECT count(*) AS n FROM phone_numbers WHERE account_id = ${account} AND provider_id IS NOT NULL
        AND status IN ('releasing', 'released') AND (released_at IS NULL OR released_at > ${this.#monthAgo()})`,
    )
    if (returned!.n < maxReturned) return
    throw new Fault(
      'forbidden',
      `This account has released ${returned!.n} bought phone numbers in the last 30 days, and none is bought above ${maxReturned}: use the numbers it has, or wait until fewer were released in 30 days.`,
      { code: 'too_many_numbers_released' },
    )
  }

  /** Takes one of the configured numbers. */
  async #take(provider: SmsProvider, id: string, country: string | undefined): Promise<ProviderNumber> {
    const pool = (provider.pool ?? []).filter((number) => country === undefined || isOf(number, [country]))
    if (pool.length === 0) throw noSuchCountry(country!)
    return this.#deps.database.transaction(async (tx) => {
      const rows = await tx.all<{ number: string }>(
        sql`SELECT number FROM phone_numbers WHERE number IS NOT NULL AND status IN ('wanted', 'active', 'releasing')`,
      )
      const taken = new Set(rows.map(({ number }) => number))
      const free = pool.find((number) => !taken.has(number))
      if (free === undefined)
        throw conflict(`All numbers of sms.${provider.name}.numbers are in use.`, { code: 'no_free_number' })
      await tx.run(sql`UPDATE phone_numbers SET number = ${free} WHERE id = ${id}`)
      return { number: free, provider_id: null }
    })
  }

  async #assign(tx: Transaction, id: string, identityId: string): Promise<void> {
    const row = await tx.get<NumberRow>(
      sql`UPDATE phone_numbers SET status = 'active', identity_id = ${identityId} WHERE id = ${id} AND status = 'wanted' RETURNING *`,
    )
    if (!row) return this.#requireAssigned(tx, id, identityId)
    const { changes } = await tx.run(
      sql`UPDATE identities SET phone_number = ${row.number}, updated_at = ${this.#now()} WHERE id = ${identityId} AND phone_number IS NULL`,
    )
    if (changes === 0) throw hasOne('another one')
    const { account_id } = row
    await this.#deps.events.append(tx, phoneProvisioned, { account_id, identity_id: identityId, data: toPhoneNumber(row) })
  }

  /** Releases the number unless it was assigned, also by a transaction of which the database said only that it may be stored. */
  #giveBack(id: string): Promise<void> {
    return this.#abandonIntent(id, (tx) => this.#release(tx, sql`id = ${id} AND status = 'wanted'`))
  }

  /** Stores that an intent is given up. Where that fails, the next `reconcile` gives it up: the caller is told why there is no number. */
  async #abandonIntent(id: string, store: (tx: Transaction) => Promise<unknown>): Promise<void> {
    try {
      await this.#deps.database.transaction(store)
    } catch (error) {
      this.#deps.log.error({ err: error, intent: id }, 'phone number could not be given back')
    } finally {
      this.#buying.delete(id)
    }
  }

  async #release(tx: Transaction, where: ReturnType<typeof sql>): Promise<void> {
    const rows = await tx.all<NumberRow>(sql`UPDATE phone_numbers SET status = 'releasing' WHERE ${where} RETURNING *`)
    for (const row of rows) {
      const load: ReleaseLoad = { phone_id: row.id }
      await this.#deps.queue.enqueue(tx, { kind: releaseKind, lane: row.provider, load })
    }
  }

  /** Throws unless another box, which took the purchase for interrupted, has assigned its number to this identity. */
  async #requireAssigned(tx: Transaction, id: string, identityId: string): Promise<void> {
    const assigned = sql`id = ${id} AND identity_id = ${identityId} AND status = 'active'`
    if (await tx.get(sql`SELECT 1 FROM phone_numbers WHERE ${assigned}`)) return
    throw new Fault('internal_error', 'The SMS provider supplied the number too late, and it was given back. Try again.', {
      code: 'sms_provider_error',
    })
  }

  /** True if a purchase for this intent may be under way, here or at another box. */
  #isBuying({ id, status, created_at }: NumberRow): boolean {
    if (this.#buying.has(id)) return true
    const { database, clock } = this.#deps
    return database.run.shared && status === 'wanted' && Math.abs(clock.now() - Date.parse(created_at)) < longestPurchase
  }

  #now(): string {
    return iso(this.#deps.clock.now())
  }

  #monthAgo(): string {
    return iso(this.#deps.clock.now() - month)
  }
}

/** No provider is configured. */
export function notConfigured(param?: string): Fault {
  return new Fault('invalid_request', 'No SMS provider is configured on this box: set sms.provider.', {
    code: 'sms_not_configured',
    ...(param === undefined ? {} : { param }),
  })
}

function hasOne(number: string): Fault {
  return conflict(`This identity has a number already: ${number}.`, { code: 'phone_number_exists' })
}

function noNumber(): Fault {
  return conflict('This identity has no phone number; POST …/phone provisions one.', { code: 'no_phone_number' })
}

/** The fault when an identity is created: the country is in another parameter. */
function ofIdentity(fault: Fault): Fault {
  if (fault.param !== 'country') return fault
  return new Fault(fault.type, fault.message, {
    param: 'phone_country',
    ...(fault.code === undefined ? {} : { code: fault.code }),
  })
}

/** A country without numbers. */
export function noSuchCountry(country: string, known?: readonly string[]): Fault {
  return invalid(
    'country',
    `No numbers are available in ${country}${known ? `; available are ${known.join(', ')}` : ''}.`,
    'no_numbers',
  )
}
