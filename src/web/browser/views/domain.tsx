import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Domain } from '../../../domains/model.ts'
import { post, remove } from '../api.ts'
import { AliasList } from '../domains/alias-list.tsx'
import { DomainState } from '../domains/domain-state.tsx'
import { RecordLine } from '../domains/record-line.tsx'
import { ReportList } from '../domains/report-list.tsx'
import { useResource } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import type { ViewProps } from '../views.ts'
import { Action } from '../widgets/action.tsx'
import { announce } from '../widgets/announcer.tsx'
import { Confirm } from '../widgets/dialog.tsx'
import { WhenLoaded } from '../widgets/listing.tsx'
import { Time } from '../widgets/format.tsx'

/** One domain: its expected DNS records and their status. */
export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  const path = `/v1/domains/${encodeURIComponent(id)}`
  // the box's automatic checks emit an event for changes only
  const domain = useResource<Domain>(path, ({ type }) => type.startsWith('domain.'), true)
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

interface ToolsProps {
  domain: Domain
  path: string
  onChange: () => Promise<void>
}

function Tools({ domain, path, onChange }: ToolsProps): JSX.Element {
  const [asking, setAsking] = useState<'rotate' | 'delete'>()
  const close = (): void => setAsking(undefined)
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
        <button type="button" onClick={() => setAsking('rotate')}>
          Rotate the DKIM keys
        </button>
        {!domain.default && (
          <button type="button" class="danger" onClick={() => setAsking('delete')}>
            Delete
          </button>
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
      {asking === 'rotate' && (
        <Confirm
          title="Rotate the DKIM keys?"
          action="Rotate"
          run={async () => {
            await post(`${path}/dkim/rotate`)
            await onChange()
            announce('The spare keys sign from now on.')
          }}
          onClose={close}
        >
          <p>The spare keys sign from now on, and new spares are listed to be published. The old ones stay listed for 7 days.</p>
        </Confirm>
      )}
      {asking === 'delete' && (
        <Confirm
          title={`Delete ${name}?`}
          action={`Delete ${name}`}
          run={async () => {
            await remove(path)
            announce(`${name} was deleted.`)
            go('/domains')
          }}
          onClose={close}
        >
          <p>Mail to it is refused from then on. A domain can be deleted only when no identity has an address in it.</p>
        </Confirm>
      )}
    </>
  )
}
