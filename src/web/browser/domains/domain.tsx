import type { JSX } from 'preact'
import type { Domain, DomainReport } from '../../../domains/model.ts'
import { post, remove } from '../api.ts'
import { AliasList } from './alias-list.tsx'
import { DomainState, RecordLine } from './record-line.tsx'
import { eventsOf, useList, useResource } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import type { ViewProps } from '../views.ts'
import { Action } from '../widgets/action.tsx'
import { announce } from '../widgets/announcer.tsx'
import { ConfirmButton } from '../widgets/dialog.tsx'
import { Rows, Section, WhenLoaded } from '../widgets/listing.tsx'
import { counted, Mark, moment, Time } from '../widgets/format.tsx'

export function DomainView({ params: { id = '' } }: ViewProps): JSX.Element {
  const path = `/v1/domains/${encodeURIComponent(id)}`
  // the box's automatic checks emit an event for changes only
  const domain = useResource<Domain>(path, eventsOf('domain.'), true)
  return (
    <>
      <p>
        <Link href="/domains">All domains</Link>
      </p>
      <WhenLoaded of={domain}>
        {(value) => (
          <>
            <div class="head">
              <h1 class="breaks">{value.name}</h1>
              <DomainState domain={value} />
            </div>
            <Tools domain={value} path={path} onChange={domain.reload} />
            <h2>Records</h2>
            <ul class="rows">
              {value.dns_records.map((record) => (
                <RecordLine key={`${record.type} ${record.name} ${record.value}`} record={record} />
              ))}
            </ul>
            <AliasList domain={value} path={path} onChange={domain.reload} />
            <ReportList path={path} />
          </>
        )}
      </WhenLoaded>
    </>
  )
}

function Tools({ domain, path, onChange }: { domain: Domain; path: string; onChange: () => Promise<void> }): JSX.Element {
  const { name, last_checked_at } = domain
  const check = async (): Promise<void> => {
    const { status, dns_records } = await post<Domain>(`${path}/verify`, {}, { idempotent: true })
    await onChange()
    const wrong = dns_records.filter((record) => record.status !== 'valid').length
    announce(
      `${name} is ${status}; ${wrong === 0 ? 'every record is correct' : `${wrong} of ${dns_records.length} records are not`}.`,
    )
  }
  return (
    <>
      <div class="actions">
        <Action run={check} kind="primary">
          Check now
        </Action>
        <a class="button" href={`${path}/zone`} download={`${name}.zone`}>
          Zone file
        </a>
        <ConfirmButton
          label="Rotate the DKIM keys"
          title="Rotate the DKIM keys?"
          action="Rotate"
          done="The spare keys sign from now on."
          run={() => post(`${path}/dkim/rotate`).then(onChange)}
        >
          <p>The spare keys sign from now on, and new spares are listed to be published. The old ones stay listed for 7 days.</p>
        </ConfirmButton>
        {!domain.default && (
          <ConfirmButton
            label="Delete"
            kind="danger"
            title={`Delete ${name}?`}
            action={`Delete ${name}`}
            done={`${name} was deleted.`}
            run={() => remove(path).then(() => go('/domains'))}
          >
            <p>Mail to it is rejected from then on. A domain can be deleted only when no identity has an address in it.</p>
          </ConfirmButton>
        )}
      </div>
      <p class="faint">
        {last_checked_at === null ? (
          'Not checked yet.'
        ) : (
          <>
            Looked up <Time at={last_checked_at} />.
          </>
        )}{' '}
        The box keeps checking automatically.
      </p>
    </>
  )
}

function ReportList({ path }: { path: string }): JSX.Element {
  const list = useList<DomainReport>(`${path}/reports`)
  return (
    <Section id="reports" title="Reports">
      <Rows list={list} empty="No report yet. Other servers send them about once a day if they receive mail in its name.">
        {(report) => (
          <li>
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
        )}
      </Rows>
    </Section>
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
