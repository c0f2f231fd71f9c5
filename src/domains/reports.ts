import { type Cursors, page } from '../store/page.ts'
import type { Caller } from '../core/scopes.ts'
import type { Page } from '../core/shapes.ts'
import { type Database, sql } from '../store/database.ts'
import type { Domains } from './domains.ts'
import type { DomainReport, ReportFilter } from './model.ts'

type ReportRow = Omit<DomainReport, 'data'> & { seq: number; data: string }

/** DMARC and TLS reports on mail in the name of hosted domains. */
export class DomainReports {
  readonly #database: Database
  readonly #cursors: Cursors
  readonly #domains: Domains

  constructor(parts: { database: Database; cursors: Cursors; domains: Domains }) {
    this.#database = parts.database
    this.#cursors = parts.cursors
    this.#domains = parts.domains
  }

  async list(caller: Caller, id: string, { kind, ...paging }: ReportFilter): Promise<Page<DomainReport>> {
    await this.#domains.row(caller, id)
    return page<ReportRow, DomainReport>(this.#database, this.#cursors, paging, {
      name: `domain reports ${id} ${kind ?? ''}`,
      from: sql`domain_reports`,
      account: caller.account_id,
      where: sql`domain_id = ${id}`,
      filters: kind === undefined ? [] : [sql`kind = ${kind}`],
      present: ({ reporter, report_id, begins_at, ends_at, received_at, data, kind: of }) => ({
        kind: of,
        reporter,
        report_id,
        begins_at,
        ends_at,
        received_at,
        data: JSON.parse(data) as DomainReport['data'],
      }),
    })
  }
}
