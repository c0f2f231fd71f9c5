import type { JSX } from 'preact'
import type { DomainReport } from '../../../domains/model.ts'
import { useList } from '../loaded.ts'
import { counted, moment } from '../widgets/format.tsx'
import { Listing } from '../widgets/listing.tsx'
import { Mark } from '../widgets/mark.tsx'

/** DMARC and TLS reports of other servers on a domain. */
export function ReportList({ path }: { path: string }): JSX.Element {
  const list = useList<DomainReport>(`${path}/reports`)
  return (
    <section aria-labelledby="reports">
      <h2 id="reports">Reports</h2>
      <Listing list={list} empty="No report yet. Other servers send them about once a day, when they get mail in its name.">
        {(rows) => (
          <ul class="rows">
            {rows.map((report, index) => (
              <li key={`${report.reporter} ${report.report_id} ${index}`}>
                <span class="grow">
                  <strong>{report.reporter}</strong> <Mark>{report.kind === 'dmarc' ? 'DMARC' : 'TLS'}</Mark>
                  <br />
                  <span class="faint">
                    {report.begins_at !== null && `${moment(report.begins_at)} – `}
                    {moment(report.ends_at ?? report.received_at)}
                  </span>
                </span>
                <span>{wordsOf(report)}</span>
              </li>
            ))}
          </ul>
        )}
      </Listing>
    </section>
  )
}

function wordsOf({ kind, data }: DomainReport): string {
  if (kind === 'dmarc') return `${counted(numberOf(data['pass']), 'message')} passed, ${numberOf(data['fail'])} failed`
  const policies = Array.isArray(data['policies']) ? (data['policies'] as Record<string, unknown>[]) : []
  const sum = (what: string): number => policies.reduce((total, policy) => total + numberOf(policy[what]), 0)
  return `${counted(sum('successful'), 'session')} with TLS, ${sum('failed')} failed`
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}
