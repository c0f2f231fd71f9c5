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
import { Confirm } from '../widgets/dialog.tsx'
import { Listing } from '../widgets/listing.tsx'

/** The one-time passwords of one identity. */
export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{() => <Entries key={id} id={id} />}</IdentityFrame>
}

function Entries({ id }: { id: string }): JSX.Element {
  const [making, setMaking] = useState(false)
  const [deleting, setDeleting] = useState<TotpEntry>()
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
      <Listing list={list} empty="None yet. A service that asks for codes of an app can be answered from here.">
        {(rows) => (
          <ul class="rows">
            {rows.map((entry) => (
              <li key={entry.id}>
                <span class="grow">
                  <strong>{entry.service_name}</strong>
                  <br />
                  <span class="faint">
                    {entry.account_name !== null && `${entry.account_name} · `}
                    {entry.digits} digits, {entry.period} s, {entry.algorithm}
                  </span>
                </span>
                <Code entry={entry} />
                <button type="button" aria-label={`Delete ${entry.service_name}`} onClick={() => setDeleting(entry)}>
                  Delete
                </button>
              </li>
            ))}
          </ul>
        )}
      </Listing>
      {making && <NewEntryDialog id={id} onClose={() => setMaking(false)} onMade={list.reload} />}
      {deleting && (
        <Confirm
          title={`Delete the one-time password of ${deleting.service_name}?`}
          action="Delete"
          run={async () => {
            await remove(`/v1/identities/${id}/totp/${deleting.id}`)
            await list.reload()
            announce(`The one-time password of ${deleting.service_name} was deleted.`)
          }}
          onClose={() => setDeleting(undefined)}
        >
          <p>
            Its secret is deleted. Where it is the only second factor, disable that at {deleting.service_name} first, or nobody
            gets in.
          </p>
        </Confirm>
      )}
    </>
  )
}
