import type { Basis } from '../basis.ts'
import type { Plan } from '../accounts/plan.ts'
import { iso, minute } from '../core/clock.ts'
import { page } from '../store/page.ts'
import { conflict, invalid, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import type { Page, Paging } from '../core/shapes.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import type { NextCheck } from './next-check.ts'
import { type RecordFindings, toDnsRecord } from './check.ts'
import type { DkimKeys } from './keys.ts'
import type { DkimKey, DomainRow, PublicKey } from './types.ts'
import type { Domain, NewDomain } from './model.ts'
import { mailDomainOf, zoneText } from './zone.ts'
import { type DomainSettings, policyText, recordsOf } from './records.ts'
import { mayRelay, type SendingRights, sendingRights, type SendingSettings } from './sending.ts'

export type { DkimKey } from './types.ts'

/** The cached fields of the domains that receive mail. */
type Known = Pick<DomainRow, 'id' | 'name' | 'account_id' | 'is_default' | 'status'>

interface Deps extends Pick<Basis, 'database' | 'clock' | 'cursors' | 'account'> {
  keys: DkimKeys
  nextCheck: NextCheck
  plan: Plan
  settings: () => DomainSettings
  outbound: () => SendingSettings
  /** The box's own domain. */
  domain: string
}

/** The domains for which the box receives and sends mail. */
export class Domains {
  readonly #deps: Deps
  #known = new Map<string, Known>()
  /** Counts the changes of `#known`. */
  #changes = 0
  readonly #leaving: ((tx: Transaction, domainId: string) => Promise<void>)[] = []

  constructor(deps: Deps) {
    this.#deps = deps
    deps.database.caches.onInvalid('domains', async () => {
      await this.load()
      deps.nextCheck.by(deps.clock.now())
    })
    deps.plan.counts(
      'domains',
      (accountId) => sql`SELECT count(*) AS n FROM domains WHERE account_id = ${accountId} AND is_default = 0`,
    )
  }

  /** Loads the domains; creates the box's own domain if there is none. Its keys are created on first use. */
  async start(): Promise<void> {
    const { database, clock, domain, account } = this.#deps
    await database.transaction(async (tx) => {
      await tx.run(sql`UPDATE domains SET is_default = 0 WHERE name <> ${domain} AND is_default = 1`)
      // the operator's box domain cannot be another account's
      await tx.run(
        sql`UPDATE domains SET receives = 0, status = 'pending' WHERE name = ${domain} AND account_id <> ${account} AND receives = 1`,
      )
      await tx.run(
        sql`INSERT INTO domains (id, account_id, name, is_default, receives, created_at) VALUES (${newId('dom')}, ${account},
          ${domain}, 1, 1, ${iso(clock.now())}) ON CONFLICT (account_id, name) DO UPDATE SET is_default = 1, receives = 1`,
      )
    })
    await this.load()
  }

  /** Loads the domains that receive mail; again when one changed meanwhile. */
  async load(): Promise<void> {
    const held = sql`SELECT id, name, account_id, is_default, status FROM domains WHERE receives = 1`
    for (;;) {
      const before = this.#changes
      const rows = await this.#deps.database.all<Known>(held)
      if (this.#changes !== before) continue
      this.#known = new Map(rows.map((row) => [row.name, row]))
      return
    }
  }

  /** True if mail for this domain (lower-case A-labels) is accepted: it was verified once, or is the box's own. */
  receives(domain: string): boolean {
    return this.#known.has(domain)
  }

  /** True if identities of the account may have addresses in the domain (lower-case A-labels). */
  mayUse(accountId: string, domain: string): boolean {
    const known = this.#known.get(domain)
    return known !== undefined && (known.is_default === 1 || (known.account_id === accountId && known.status === 'verified'))
  }

  /** Like `mayUse`, within the transaction that assigns an address: a domain being deleted gets no new address. */
  async stillUsable(reader: Reader, accountId: string, domain: string): Promise<boolean> {
    if (domain === this.#deps.domain) return true
    const row = await reader.get(
      sql`SELECT 1 FROM domains WHERE account_id = ${accountId} AND name = ${domain} AND receives = 1 AND status = 'verified'`,
    )
    return row !== undefined
  }

  /** True if mail from this domain (lower-case A-labels) authenticates. */
  isVerified(domain: string): boolean {
    return this.#known.get(domain)?.status === 'verified'
  }

  /**
   * Throws Fault conflict, `domain_not_verified`, when mail from this domain would not authenticate, and no relay may take it to this domain of
   * another server.
   */
  requireSending(from: string, to: string): void {
    if (this.isVerified(from) || (this.receives(from) && mayRelay(this.#deps.outbound(), to))) return
    throw conflict(inWords(this.sendingRights(from)), { code: 'domain_not_verified' })
  }

  /** Where mail from a domain can be sent; without one, from the box's own. */
  sendingRights(domain = this.#deps.domain): SendingRights {
    const { outbound } = this.#deps
    const known = this.#known.get(domain)
    if (known) return sendingRights(known, outbound())
    return sendingRights({ name: domain, status: 'pending', is_default: 0 }, { ...outbound(), unverified_domains: 'refuse' })
  }

  /** Why mail from a domain cannot be sent to any address, and who can change that; null when it can. */
  unsendable(domain?: string): string | null {
    const rights = this.sendingRights(domain)
    return rights.outside ? null : inWords(rights)
  }

  /** The active keys of a domain that receives mail (lower-case A-labels), created on first use; none for any other domain. */
  async signingKeys(domain: string): Promise<DkimKey[]> {
    const known = this.#known.get(domain)
    return known ? this.#deps.keys.signing(known) : []
  }

  /** The MTA-STS policy served at this host; throws Fault not_found for an unknown host. */
  policyAt(host: string): string {
    const domain = host.startsWith('mta-sts.') ? host.slice('mta-sts.'.length) : ''
    if (!this.receives(domain)) throw notFound('policy')
    return policyText(this.#deps.settings())
  }

  /** The MTA-STS policy hosts, and whether their DNS pointed to this box at the last check. */
  async policyHosts(): Promise<{ host: string; leads_here: boolean }[]> {
    const { database, settings } = this.#deps
    const finding = sql`json_extract(findings, '$."CNAME mta-sts.' || name || '"')`
    // read in a thread: the findings of all domains are long
    const rows = await database.slow<{ name: string; leads_here: number | null }>(
      sql`SELECT name, json_extract(${finding}, '$.status') = 'valid' AND json_extract(${finding}, '$.value') = ${settings().policy_host}
        AS leads_here FROM domains WHERE receives = 1 ORDER BY seq`,
      minute,
    )
    return rows.map(({ name, leads_here }) => ({ host: `mta-sts.${name}`, leads_here: leads_here === 1 }))
  }

  async create(caller: Caller, input: NewDomain, signal?: AbortSignal): Promise<Domain> {
    requireWhole(caller)
    const { database, clock, keys, nextCheck, plan } = this.#deps
    const { param, name } = wishedName(input)
    const taken = conflict(`This account has ${name} already.`, { param })
    const before = sql`SELECT 1 FROM domains WHERE account_id = ${caller.account_id} AND name = ${name}`
    // key generation is slow: checks first
    if (await database.get(before)) throw taken
    await plan.require(database, caller.account_id, 'domains')
    const [active, spare] = [await keys.make(caller.account_id, signal), await keys.make(caller.account_id, signal)]
    const made = await database.transaction(async (tx) => {
      if (await tx.get(before)) throw taken
      await plan.require(tx, caller.account_id, 'domains')
      const now = iso(clock.now())
      const row = await tx.get<DomainRow>(
        sql`INSERT INTO domains (id, account_id, name, next_check_at, created_at) VALUES (${newId('dom')}, ${caller.account_id}, ${name},
          ${now}, ${now}) RETURNING *`,
      )
      await keys.insert(tx, row!, active, 'active')
      await keys.insert(tx, row!, spare, 'spare')
      // who checks the domains has to know of it
      await database.caches.invalidate(tx, 'domains')
      return this.toDomain(tx, row!)
    })
    nextCheck.by(clock.now())
    return made
  }

  async list(caller: Caller, paging: Paging): Promise<Page<Domain>> {
    requireWhole(caller)
    const { database, cursors, keys } = this.#deps
    const rows = await page<DomainRow, DomainRow>(database, cursors, paging, {
      name: `domains ${caller.account_id}`,
      from: sql`domains`,
      account: caller.account_id,
      where: sql`account_id = ${caller.account_id}`,
      octets: sql`octet_length(findings)`,
      present: (row) => row,
    })
    const ids = rows.data.map(({ id }) => id)
    const before = await keys.of(database, ids)
    const without = rows.data.filter(({ id }) => before.get(id)!.length === 0)
    for (const row of without) await keys.ensure(row)
    const ofEach = without.length === 0 ? before : await keys.of(database, ids)
    return { ...rows, data: rows.data.map((row) => this.#present(row, ofEach.get(row.id)!)) }
  }

  async get(caller: Caller, id: string): Promise<Domain> {
    const row = await this.row(caller, id)
    await this.#deps.keys.ensure(row)
    return this.toDomain(this.#deps.database, row)
  }

  /** The records as zone-file text. */
  async zone(caller: Caller, id: string): Promise<string> {
    return zoneText(await this.get(caller, id), this.#deps.settings().hostname)
  }

  /** Registers, before `start`, a hook that runs in the transaction of each deletion. */
  onRemove(leave: (tx: Transaction, domainId: string) => Promise<void>): void {
    this.#leaving.push(leave)
  }

  /** Throws Fault conflict for the box's own domain, and while identities have addresses in it. */
  async remove(caller: Caller, id: string): Promise<{ id: string; deleted: true }> {
    const { database, keys } = this.#deps
    const gone = await database.transaction(async (tx) => {
      const { name, is_default, receives } = await this.row(caller, id, tx)
      if (is_default === 1) throw conflict(`${name} is the box's own domain; it cannot be deleted.`, { code: 'default_domain' })
      const user = sql`SELECT 1 FROM identities WHERE substr(email, instr(email, '@') + 1) = ${name} AND status <> 'deleted' LIMIT 1`
      if (receives === 1 && (await tx.get(user))) {
        throw conflict(`Identities have addresses in ${name}; delete them first.`, { code: 'domain_in_use' })
      }
      await keys.remove(tx, id)
      await tx.run(sql`DELETE FROM domain_reports WHERE domain_id = ${id}`)
      for (const leave of this.#leaving) await leave(tx, id)
      await tx.run(sql`DELETE FROM domains WHERE id = ${id}`)
      await database.caches.invalidate(tx, 'domains')
      return { name, receives }
    })
    if (gone.receives === 1) {
      this.#known.delete(gone.name)
      this.#changes += 1
    }
    keys.forget(id)
    return { id, deleted: true }
  }

  /** The row of a domain the caller may see; throws Fault not_found. */
  async row(caller: Caller, id: string, reader: Reader = this.#deps.database): Promise<DomainRow> {
    requireWhole(caller)
    const row = await reader.get<DomainRow>(sql`SELECT * FROM domains WHERE id = ${id} AND account_id = ${caller.account_id}`)
    if (!row) throw notFound('domain')
    return row
  }

  /** The row as the transaction sees it; throws Fault not_found if it was deleted. */
  async current(tx: Reader, id: string): Promise<DomainRow> {
    const row = await tx.get<DomainRow>(sql`SELECT * FROM domains WHERE id = ${id}`)
    if (!row) throw notFound('domain')
    return row
  }

  async toDomain(reader: Reader, row: DomainRow): Promise<Domain> {
    const keys = await this.#deps.keys.of(reader, [row.id])
    return this.#present(row, keys.get(row.id)!)
  }

  /** Updates the cache with the committed row of a domain that receives mail. */
  know({ id, name, account_id, is_default, status }: Known): void {
    this.#known.set(name, { id, name, account_id, is_default, status })
    this.#changes += 1
  }

  #present(row: DomainRow, keys: PublicKey[]): Domain {
    const { id, name, status, is_default, catch_all, findings, created_at, verified_at, last_checked_at } = row
    const seen = JSON.parse(findings) as RecordFindings
    const dns_records = recordsOf(name, keys, this.#deps.settings()).map((wanted) => toDnsRecord(wanted, seen))
    return { id, name, status, default: is_default === 1, catch_all, dns_records, created_at, verified_at, last_checked_at }
  }
}

function inWords({ explanation, request }: SendingRights): string {
  return request === null ? explanation : `${explanation} ${request}`
}

/** Requires a key that is not bound to one identity. */
function requireWhole(caller: Caller): void {
  if (caller.identity_id !== null) throw notFound('domain')
}

function wishedName(input: NewDomain): { param: string; name: string } {
  const given = Object.entries(input).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const names = given.map(([param, text]) => {
    const name = mailDomainOf(text)
    if (name === undefined) throw invalid(param, `${param} must be a domain that can receive mail, such as example.com.`)
    return { param, name }
  })
  const [first, ...others] = names
  if (!first) throw invalid('name', 'name is required: the domain, such as example.com.')
  const other = others.find(({ name }) => name !== first.name)
  if (other) throw invalid(other.param, `${first.param} and ${other.param} mean the same; send only one of them.`)
  return first
}
