import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { TotpEntry } from '../../../totp/model.ts'
import { remove } from '../api.ts'
import { IdentityFrame } from '../identity-frame.tsx'
import { useList } from '../loaded.ts'
import type { ViewProps } from '../views.ts'
import { Code } from '../totp/code.tsx'
import { NewEntryDialog } from '../totp/new-entry.tsx'
import { announce } from '../widgets/announcer.tsx'
import { ConfirmButton } from '../widgets/dialog.tsx'
import { Rows } from '../widgets/listing.tsx'

/** The one-time passwords of one identity. */
export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{() => <Entries key={id} id={id} />}</IdentityFrame>
}

function Entries({ id }: { id: string }): JSX.Element {
  const [making, setMaking] = useState(false)
  const list = useList<TotpEntry>(
    `/v1/identities/${id}/totp`,
    {},
    ({ type, identity_id }) => identity_id === id && (type === 'totp.created' || type === 'totp.deleted'),
  )
  return (
    <>
      <div class="head">
        <h2>One-time passwords</h2>
        <button type="button" class="primary" onClick={() => setMaking(true)}>
          New one-time password
        </button>
      </div>
      <Rows list={list} empty="None yet. A service that asks for codes of an app can be answered from here.">
        {(entry) => (
          <li>
            <span class="grow">
              <strong>{entry.service_name}</strong>
              <br />
              <span class="faint">
                {entry.account_name !== null && `${entry.account_name} · `}
                {entry.digits} digits, {entry.period} s, {entry.algorithm}
              </span>
            </span>
            <Code entry={entry} />
            <ConfirmButton
              label="Delete"
              name={`Delete ${entry.service_name}`}
              title={`Delete the one-time password of ${entry.service_name}?`}
              action="Delete"
              run={async () => {
                await remove(`/v1/identities/${id}/totp/${entry.id}`)
                await list.reload()
                announce(`The one-time password of ${entry.service_name} was deleted.`)
              }}
            >
              <p>
                Its secret is deleted. Where it is the only second factor, disable that at {entry.service_name} first, or nobody
                gets in.
              </p>
            </ConfirmButton>
          </li>
        )}
      </Rows>
      {making && <NewEntryDialog id={id} onClose={() => setMaking(false)} onMade={list.reload} />}
    </>
  )
}
