import { performance } from 'node:perf_hooks'
import type { Basis } from '../basis.ts'
import { hour, iso } from '../core/clock.ts'
import { conflict, Fault } from '../core/fault.ts'
import type { Counter } from '../core/metrics.ts'
import type { Caller } from '../core/scopes.ts'
import type { EventType } from '../events/model.ts'
import { inquire } from '../mailauth/inquire.ts'
import { sql, type Sql, type Transaction } from '../store/database.ts'
import { longestWait, type NextCheck, recheckDelay } from './next-check.ts'
import { checkRecords, type CheckResult, type RecordFindings, weigh } from './check.ts'
import type { Domains } from './domains.ts'
import type { DomainRow } from './types.ts'
import type { DkimKeys } from './keys.ts'
import { type Domain, domainFailed, domainVerified } from './model.ts'
import { type DomainSettings, keyOf, recordsOf } from './records.ts'
import type { Judged, Unanswered } from './verdict.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'log'> {
  domains: Domains
  keys: DkimKeys
  nextCheck: NextCheck
  settings: () => DomainSettings
  checked: Counter<'outcome'>
}

interface Conclusion {
  domain: Domain
  /** All records are correct, but another account holds the name. */
  held: boolean
  outcome: CheckResult['outcome'] | 'late'
  /** The new row, when its status changed. */
  turned: DomainRow | null
}

/** A domain to check, without its findings, which are long. */
type Due = Pick<DomainRow, 'id' | 'account_id' | 'name'>

const due = sql`id, account_id, name`

/** How long the DNS of a verified domain may be wrong before it stops sending. */
const timeout = 72 * hour

/** A run of the job starts no check after this many milliseconds, so that the box can stop. */
const longestRun = 10_000

/** Minimum time between two checks requested by callers, in milliseconds. */
const recheckPause = 5000
const maxAtOnce = 8

/** Checks the DNS of hosted domains and updates their status. */
export class Verification {
  readonly #deps: Deps
  #lookedAgain = 0

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Checks now. Throws Fault conflict, `domain_held`, when all records are correct but another account holds the name. */
  async verify(caller: Caller, id: string): Promise<Domain> {
    const row = await this.#deps.domains.row(caller, id)
    const { domain, held } = await this.#check(row, true)
    if (held) {
      const why = `${row.name} is held by another account of this box. It must be deleted there first.`
      throw conflict(why, { code: 'domain_held' })
    }
    return domain
  }

  /**
   * Activates the spare keys after a check that they are published. Throws Fault conflict, `spares_not_published`, when one is not:
   * signatures could not be verified.
   */
  async rotate(caller: Caller, id: string, signal?: AbortSignal): Promise<Domain> {
    const { database, domains, keys, settings } = this.#deps
    await this.#check(await domains.row(caller, id), true)
    const fresh = await keys.make(caller.account_id, signal)
    const rotated = await database.transaction(async (tx) => {
      const row = await domains.row(caller, id, tx)
      const findings = JSON.parse(row.findings) as RecordFindings
      const listed = (await keys.of(tx, [id])).get(id)!
      const spares = recordsOf(row.name, listed, settings()).filter(({ key }) => key?.state === 'spare')
      const open = spares.filter((spare) => {
        const finding = findings[keyOf(spare)]
        return finding?.status !== 'valid' || finding.value !== spare.value
      })
      if (spares.length === 0 || open.length > 0) {
        const names = open.map(({ name }) => name).join(' and ')
        throw conflict(`The spare keys are not in the DNS yet: publish ${names} first.`, {
          code: 'spares_not_published',
        })
      }
      await keys.rotate(tx, row, fresh)
      return domains.toDomain(tx, row)
    })
    keys.forget(id)
    return rotated
  }

  /** Checks the domains that are due. */
  async checkDue(): Promise<void> {
    const { database, clock, nextCheck } = this.#deps
    if (!nextCheck.isDue(clock.now())) return
    nextCheck.clear()
    let next: string | null = iso(clock.now())
    try {
      await this.#checkAll()
      const row = await database.get<{ next: string | null; ahead: number }>(
        sql`SELECT min(next_check_at) AS next, EXISTS (SELECT 1 FROM domains WHERE ${this.#isTooFarAhead()}) AS ahead FROM domains`,
      )
      if (row?.ahead !== 1) next = row?.next ?? null
    } finally {
      if (next !== null) nextCheck.by(Date.parse(next))
    }
  }

  /** Checks all domains, as many as one run of the job allows, but not again within some seconds: callers choose the frequency. */
  async recheckAll(): Promise<void> {
    const { database, clock } = this.#deps
    if (Math.abs(clock.now() - this.#lookedAgain) < recheckPause) return
    this.#lookedAgain = clock.now()
    await this.#checkThese(
      await database.all<Due>(sql`SELECT ${due} FROM domains ORDER BY last_checked_at NULLS FIRST LIMIT 200`),
    )
  }

  async #checkAll(): Promise<void> {
    const { database, clock } = this.#deps
    const first = (which: Sql): Promise<Due[]> =>
      database.all<Due>(sql`SELECT ${due} FROM domains WHERE ${which} ORDER BY next_check_at LIMIT 200`)
    const rows = [...(await first(sql`next_check_at <= ${iso(clock.now())}`)), ...(await first(this.#isTooFarAhead()))]
    await this.#checkThese(rows.slice(0, 200))
  }

  /** The condition of domains whose next check a clock that was ahead has planned. */
  #isTooFarAhead(): Sql {
    return sql`next_check_at > ${iso(this.#deps.clock.now() + longestWait)}`
  }

  async #checkThese(rows: Due[]): Promise<void> {
    const { log } = this.#deps
    const end = performance.now() + longestRun
    const work = async (): Promise<void> => {
      for (let row = rows.shift(); row && performance.now() < end; row = rows.shift()) {
        try {
          await this.#check(row, false)
        } catch (error) {
          // deleted during the check
          if (error instanceof Fault && error.type === 'not_found') continue
          log.error({ domain: row.name, err: error }, 'DNS check of a domain failed')
        }
      }
    }
    await Promise.all(Array.from({ length: maxAtOnce }, work))
  }

  async #check(row: Due, asked: boolean): Promise<{ domain: Domain; held: boolean }> {
    const { database, clock, keys, settings, checked } = this.#deps
    await keys.ensure(row)
    const began = iso(clock.now())
    const wanted = recordsOf(row.name, (await keys.of(database, [row.id])).get(row.id)!, settings())
    const inquiry = inquire(settings())
    const seen = await checkRecords(wanted, row.name, { lookup: inquiry.lookup, spf: inquiry.spf, settings: settings() }).finally(
      () => inquiry.close(),
    )
    const { domain, held, outcome, turned } = await database.transaction((tx) =>
      this.#conclude(tx, { id: row.id, seen, began, asked }),
    )
    checked.labels(outcome).inc()
    if (turned) this.#turn(turned)
    return { domain, held }
  }

  async #conclude(
    tx: Transaction,
    { id, seen, began, asked }: { id: string; seen: Map<string, Judged | Unanswered>; began: string; asked: boolean },
  ): Promise<Conclusion> {
    const { database, keys, domains, settings, clock, nextCheck } = this.#deps
    const row = await domains.current(tx, id)
    // an older check does not overrule a newer one; one from after now is of a clock that was ahead
    if (row.last_checked_at !== null && row.last_checked_at > began && row.last_checked_at <= iso(clock.now())) {
      return { domain: await domains.toDomain(tx, row), held: false, outcome: 'late', turned: null }
    }
    const wanted = recordsOf(row.name, (await keys.of(tx, [id])).get(id)!, settings())
    const { findings, outcome } = weigh(wanted, seen, JSON.parse(row.findings) as RecordFindings, began)
    const held = outcome === 'right' && (await this.#isHeld(tx, row))
    const after: DomainRow = {
      ...moved(row, held ? 'unknown' : outcome, began),
      findings: JSON.stringify(findings),
      last_checked_at: began,
      checks: asked || row.checks === 0 ? 1 : row.checks + 1,
    }
    if (after.status !== row.status) after.checks = 1
    const next = clock.now() + recheckDelay(after.status, after.checks, outcome === 'unknown')
    after.next_check_at = iso(next)
    nextCheck.by(next)
    await tx.run(
      sql`UPDATE domains SET status = ${after.status}, receives = ${after.receives}, findings = ${after.findings}, checks = ${after.checks},
        failing_since = ${after.failing_since}, verified_at = ${after.verified_at}, last_checked_at = ${after.last_checked_at},
        next_check_at = ${after.next_check_at} WHERE id = ${id}`,
    )
    if (asked || after.status !== row.status) await database.caches.invalidate(tx, 'domains')
    const domain = await domains.toDomain(tx, after)
    const turned = after.status === row.status ? null : after
    if (turned) await this.#emit(tx, turned, domain)
    return { domain, held, outcome, turned }
  }

  async #isHeld(tx: Transaction, { id, name }: DomainRow): Promise<boolean> {
    return (await tx.get(sql`SELECT 1 FROM domains WHERE name = ${name} AND receives = 1 AND id <> ${id}`)) !== undefined
  }

  async #emit(tx: Transaction, row: DomainRow, domain: Domain): Promise<void> {
    const type: EventType<Domain> = row.status === 'verified' ? domainVerified : domainFailed
    await this.#deps.events.append(tx, type, { account_id: row.account_id, identity_id: null, data: domain })
  }

  /** Called once it is on disk. */
  #turn(row: DomainRow): void {
    const { domains, log } = this.#deps
    domains.know(row)
    if (row.status === 'verified') log.info({ domain: row.name }, 'domain verified')
    else log.warn({ domain: row.name }, 'domain failed: its DNS records were wrong for 72 hours, and it can no longer send')
  }
}

/** The next status of a domain after a check; without a clear result it stays. */
function moved(row: DomainRow, outcome: CheckResult['outcome'], now: string): DomainRow {
  if (outcome === 'unknown') return row
  if (outcome === 'right') {
    const since = row.status === 'verified' ? row.verified_at : now
    return { ...row, status: 'verified', receives: 1, verified_at: since, failing_since: null }
  }
  if (row.status === 'pending') return row
  // a time after now is of a clock that was ahead
  const failing_since = row.failing_since !== null && row.failing_since < now ? row.failing_since : now
  const lost = Date.parse(now) - Date.parse(failing_since) >= timeout
  return lost ? { ...row, status: 'pending', failing_since: null } : { ...row, failing_since }
}
