import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Identity, Storage } from '../../../identities/model.ts'
import { type Page, patch, post, remove } from '../api.ts'
import { IdentityFrame, useIdentity } from '../identity-frame.tsx'
import type { ViewProps } from '../views.ts'
import { Action } from '../widgets/action.tsx'
import { announce } from '../widgets/announcer.tsx'
import { Bar } from '../widgets/bar.tsx'
import { Confirm, ConfirmButton } from '../widgets/dialog.tsx'
import { Field, Form } from '../widgets/form.tsx'
import { bytes, moment } from '../widgets/format.tsx'
import { Fact } from '../widgets/listing.tsx'
import { useResource } from '../loaded.ts'
import { go } from '../router.tsx'

/** The settings of one identity. */
export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{(identity) => <Settings identity={identity} />}</IdentityFrame>
}

function Settings({ identity }: { identity: Identity }): JSX.Element {
  const { reload } = useIdentity()
  const [deleting, setDeleting] = useState(false)
  const { id, name, status, storage } = identity
  const suspended = status === 'suspended'
  const change = async (input: Record<string, unknown>, said: string): Promise<void> => {
    await patch(`/v1/identities/${id}`, input)
    await reload()
    announce(said)
  }
  return (
    <>
      <section class="sheet" aria-labelledby="about">
        <h2 id="about">About</h2>
        <dl class="facts">
          <Fact name="Id" class="mono">
            {id}
          </Fact>
          <Fact name="Created">{moment(identity.created_at)}</Fact>
          <Fact name="Phone number">{identity.phone_number ?? 'none'}</Fact>
          <Fact name="Date of birth">{identity.date_of_birth}</Fact>
        </dl>
        {storage && <StorageLines identity={identity} storage={storage} />}
      </section>
      <section class="sheet" aria-labelledby="rename">
        <h2 id="rename">Name</h2>
        <Form
          submit="Rename"
          label="Rename"
          send={(typed) => change(typed, 'The name was changed. The address stays as it was.')}
        >
          <Field name="name" label="Name" defaultValue={name} autoComplete="off" />
        </Form>
      </section>
      <section class="sheet" aria-labelledby="end">
        <h2 id="end">{suspended ? 'Resume or delete' : 'Suspend or delete'}</h2>
        <div class="actions">
          {suspended ? (
            <Action run={() => change({ status: 'active' }, `${name} receives again.`)}>Resume</Action>
          ) : (
            <ConfirmButton
              label="Suspend"
              title={`Suspend ${name}?`}
              action="Suspend"
              run={() => change({ status: 'suspended' }, `${name} is suspended.`)}
            >
              <p>Mail to it is deferred, so that senders retry later, and it cannot send. Its data is kept.</p>
            </ConfirmButton>
          )}
          <button type="button" class="danger" onClick={() => setDeleting(true)}>
            Delete
          </button>
        </div>
      </section>

      {deleting && <DeleteIdentity identity={identity} onClose={() => setDeleting(false)} />}
    </>
  )
}

function StorageLines({ identity: { id, name }, storage }: { identity: Identity; storage: Storage }): JSX.Element {
  const { reload } = useIdentity()
  const { used, limit, media, trash } = storage
  return (
    <>
      {limit === null ? (
        <p>E-mail uses {bytes(used)}.</p>
      ) : (
        <Bar label="E-mail" value={used} max={limit} text={`${bytes(used)} of ${bytes(limit)}`} />
      )}
      {media > 0 && <p>Text messages and their media use {bytes(media)}.</p>}
      {trash > 0 && (
        <p>
          {bytes(trash)} of this are in the trash.{' '}
          <ConfirmButton
            label="Empty the trash"
            title="Empty the trash?"
            action="Empty the trash"
            run={() => post(`/v1/identities/${id}/trash/empty`).then(reload)}
          >
            <p>E-mails and text messages in the trash of {name} are deleted permanently.</p>
          </ConfirmButton>
        </p>
      )}
    </>
  )
}

const pageSize = 200

/** Deletes an identity after listing what is deleted with it. */
function DeleteIdentity({ identity, onClose }: { identity: Identity; onClose: () => void }): JSX.Element {
  const { id, name, email, phone_number, storage } = identity
  const threads = useAmount(`/v1/identities/${id}/threads`)
  const texts = useAmount(`/v1/identities/${id}/sms`)
  const cards = useAmount(`/v1/identities/${id}/cards`)
  const secrets = useAmount(`/v1/identities/${id}/totp`)
  const run = async (): Promise<void> => {
    await remove(`/v1/identities/${id}`)
    announce(`${name} was deleted.`)
    go('/')
  }
  return (
    <Confirm title={`Delete ${name}?`} action={`Delete ${name}`} run={run} onClose={onClose}>
      <p>This also deletes:</p>
      <ul>
        <li>
          its address <strong class="mono">{email}</strong>, which rejects mail from now on and is never reused
        </li>
        {phone_number !== undefined && (
          <li>
            its phone number <strong>{phone_number}</strong>
          </li>
        )}
        <li>
          {threads('conversation')} of e-mail{storage ? ` (${bytes(storage.used)})` : ''}, deleted permanently when the retention
          time of the trash ends
        </li>
        <li>{texts('text message')}</li>
        <li>{cards('card')}</li>
        <li>{secrets('one-time password')}</li>
      </ul>
    </Confirm>
  )
}

/** Describes the length of a list, as far as one page shows. */
function useAmount(path: string): (what: string) => string {
  const { value } = useResource<Page<unknown>>(`${path}?limit=${pageSize}`)
  return (what) => {
    if (!value) return `all of its ${what}s`
    const { length } = value.data
    if (value.has_more) return `more than ${pageSize} ${what}s`
    return `${length === 0 ? 'no' : length} ${what}${length === 1 ? '' : 's'}`
  }
}
