import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Identity } from '../../../identities/model.ts'
import { patch, post } from '../api.ts'
import { DeleteIdentity } from '../identities/delete-identity.tsx'
import { IdentityFrame, useIdentity } from '../identity-frame.tsx'
import type { ViewProps } from '../views.ts'
import { Action } from '../widgets/action.tsx'
import { announce } from '../widgets/announcer.tsx'
import { Bar } from '../widgets/bar.tsx'
import { Confirm } from '../widgets/dialog.tsx'
import { Field, Form } from '../widgets/form.tsx'
import { bytes, moment } from '../widgets/format.tsx'

/** The settings of one identity. */
export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{(identity) => <Settings identity={identity} />}</IdentityFrame>
}

function Settings({ identity }: { identity: Identity }): JSX.Element {
  const { reload } = useIdentity()
  const [asking, setAsking] = useState<'delete' | 'suspend' | 'empty'>()
  const { id, name, status, storage } = identity
  const suspended = status === 'suspended'
  const change = async (input: Record<string, unknown>, said: string): Promise<void> => {
    await patch(`/v1/identities/${id}`, input)
    await reload()
    announce(said)
  }
  const close = (): void => setAsking(undefined)
  return (
    <>
      <section class="sheet" aria-labelledby="about">
        <h2 id="about">About</h2>
        <dl class="facts">
          <dt>Id</dt>
          <dd class="mono">{id}</dd>
          <dt>Created</dt>
          <dd>{moment(identity.created_at)}</dd>
          <dt>Phone number</dt>
          <dd>{identity.phone_number ?? 'none'}</dd>
          <dt>Date of birth</dt>
          <dd>{identity.date_of_birth}</dd>
        </dl>
        {storage && <StorageLines storage={storage} onEmpty={() => setAsking('empty')} />}
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
            <button type="button" onClick={() => setAsking('suspend')}>
              Suspend
            </button>
          )}
          <button type="button" class="danger" onClick={() => setAsking('delete')}>
            Delete
          </button>
        </div>
      </section>
      {asking === 'suspend' && (
        <Confirm
          title={`Suspend ${name}?`}
          action="Suspend"
          run={() => change({ status: 'suspended' }, `${name} is suspended.`)}
          onClose={close}
        >
          <p>Mail to it is deferred, so that senders retry later, and it cannot send. Its data is kept.</p>
        </Confirm>
      )}
      {asking === 'empty' && (
        <Confirm
          title="Empty the trash?"
          action="Empty the trash"
          run={() => post(`/v1/identities/${id}/trash/empty`).then(reload)}
          onClose={close}
        >
          <p>E-mails and text messages in the trash of {name} go for good.</p>
        </Confirm>
      )}
      {asking === 'delete' && <DeleteIdentity identity={identity} onClose={close} />}
    </>
  )
}

function StorageLines({ storage, onEmpty }: { storage: NonNullable<Identity['storage']>; onEmpty: () => void }): JSX.Element {
  const { used, limit, media, trash } = storage
  return (
    <>
      {limit === null ? (
        <p>E-mail takes {bytes(used)}.</p>
      ) : (
        <Bar label="E-mail" value={used} max={limit} text={`${bytes(used)} of ${bytes(limit)}`} />
      )}
      {media > 0 && <p>Text messages and what came with them take {bytes(media)}.</p>}
      {trash > 0 && (
        <p>
          {bytes(trash)} of it are in the trash.{' '}
          <button type="button" onClick={onEmpty}>
            Empty the trash
          </button>
        </p>
      )}
    </>
  )
}
