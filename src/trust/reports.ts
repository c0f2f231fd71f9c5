import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { invalid } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import type { Identities } from '../identities/identities.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import { isCounted, annotationOf } from './facts.ts'
import { type NewReport, type Report, reputationReported } from './model.ts'
import type { Counters } from './score.ts'
import type { Subject, Subjects } from './subjects.ts'

interface Deps extends Pick<Basis, 'database' | 'clock' | 'events'> {
  identities: Identities
  subjects: Subjects
}

/** The most reports of one account on one subject that count on one day (UTC). */
export const dailyMost = 5

export class TrustReports {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Stores a report, and emits an event for both sides. Throws Fault invalid_request for an unknown `about`. */
  async create(caller: Caller, identityId: string, input: NewReport): Promise<Report> {
    const { database, identities, subjects } = this.#deps
    await identities.row(caller, identityId)
    const subject = await subjects.named(caller, input.about ?? identityId)
    if (subject.kind === 'unknown') {
      throw invalid(
        'about',
        'about must name a subject: the id, handle, DID or address of an agent, or the id of an identity of your account.',
      )
    }
    return database.transaction(async (tx) => {
      await identities.row(caller, identityId, tx)
      return this.#store(tx, { account: caller.account_id, identity: identityId }, subject, input)
    })
  }

  /** The reports of the box's accounts on an outside subject, except those of the account that has its address, as counters. */
  async about(name: string, except: string | null = null): Promise<Pick<Counters, 'positive' | 'negative' | 'disputed'>> {
    const rows = await this.#deps.database.all<{ type: string; counted: number }>(
      sql`SELECT type, sum(counted) AS counted FROM reputation_reports WHERE subject = ${name} AND account_id IS DISTINCT FROM ${except} GROUP BY type`,
    )
    const of = (type: string): number => rows.find((row) => row.type === type)?.counted ?? 0
    return { positive: of('positive'), negative: of('negative'), disputed: of('dispute') }
  }

  async #store(tx: Transaction, by: { account: string; identity: string }, subject: Known, input: NewReport): Promise<Report> {
    const { clock, events } = this.#deps
    const now = clock.now()
    const own = subject.kind !== 'did' && subject.account_id === by.account
    const name = subject.kind === 'local' ? subject.identity_id : subject.name
    const weight = own ? 0 : input.weight
    const counted = isCounted(input.type) && !own ? await this.#counted(tx, by.account, name, input, now) : 0
    const id = newId('rep')
    const created_at = iso(now)
    // a report that counts nothing is in the log only: an account can make as many as it likes, and each score sums the rows
    if (counted > 0) {
      await tx.run(
        sql`INSERT INTO reputation_reports (id, account_id, identity_id, subject, type, counted, created_at)
          VALUES (${id}, ${by.account}, ${by.identity}, ${name}, ${input.type}, ${counted}, ${created_at})`,
      )
    }
    const report: Report = {
      id,
      direction: 'given',
      type: input.type,
      about: input.about ?? null,
      subject: subjectName(subject, own),
      weight,
      counted_weight: counted / 1000,
      note: input.note ?? null,
      data: input.data ?? {},
      created_at,
    }
    await events.append(tx, reputationReported, {
      account_id: by.account,
      identity_id: by.identity,
      data: report,
      refusable: true,
    })
    if (counted > 0 && subject.kind === 'local' && isCounted(input.type)) {
      await events.append(tx, reputationReported, {
        account_id: subject.account_id,
        identity_id: subject.identity_id,
        // the reporter and the text stay private to the reporter
        data: { ...report, direction: 'received', about: null, note: null, data: {} },
        annotation: annotationOf(input.type, counted),
      })
    }
    return report
  }

  /** Half the weight of the previous report of its kind: one account changes a score by a bounded amount. In thousandths. */
  async #counted(tx: Reader, account: string, subject: string, { type, weight }: NewReport, now: number): Promise<number> {
    const today = iso(now).slice(0, 10)
    const row = await tx.get<{ alike: number; today: number }>(
      sql`SELECT count(*) FILTER (WHERE type = ${type}) AS alike, count(*) FILTER (WHERE created_at >= ${today}) AS today
        FROM reputation_reports WHERE subject = ${subject} AND account_id = ${account}`,
    )
    return row!.today >= dailyMost ? 0 : Math.round((weight * 1000) / 2 ** row!.alike)
  }
}

type Known = Exclude<Subject, { kind: 'unknown' }>

/** Another account's identity is shown by its public name only. */
function subjectName(subject: Known, own: boolean): string {
  if (subject.kind !== 'local') return subject.name
  return subject.agent?.did ?? (own ? subject.identity_id : subject.email)
}
