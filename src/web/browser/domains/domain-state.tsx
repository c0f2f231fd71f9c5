import type { JSX } from 'preact'
import type { Domain } from '../../../domains/model.ts'
import { Mark } from '../widgets/mark.tsx'

/** The DNS status of a domain, and the number of wrong records. */
export function DomainState({ domain: { status, dns_records } }: { domain: Domain }): JSX.Element {
  const wrong = dns_records.filter((record) => record.status !== 'valid').length
  return (
    <span>
      {status === 'verified' ? <Mark tone="good">verified</Mark> : <Mark tone="warn">pending</Mark>}
      {wrong > 0 && (
        <span class="faint">
          {' '}
          {wrong} of {dns_records.length} records not correct
        </span>
      )}
    </span>
  )
}
