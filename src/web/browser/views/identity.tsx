import type { JSX } from 'preact'
import type { Identity, Storage } from '../../../identities/model.ts'
import { type Page, patch, post, remove } from '../api.ts'
import { IdentityFrame, useIdentity } from '../identity-frame.tsx'
import type { ViewProps } from '../views.ts'
import { Action } from '../widgets/action.tsx'
import { Bar } from '../widgets/bar.tsx'
import { ConfirmButton } from '../widgets/dialog.tsx'
import { Field, Form } from '../widgets/form.tsx'
import { bytes, localTime, moment, typedTime } from '../widgets/format.tsx'
import { Fact, Section } from '../widgets/listing.tsx'
import { useResource } from '../loaded.ts'
import { go } from '../router.tsx'

export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{(identity) => <Settings identity={identity} />}</IdentityFrame>
}

function Settings({ identity }: { identity: Identity }): JSX.Element {
  const { reload } = useIdentity()
  const { id, name, status, storage } = identity
  const suspended = status === 'suspended'
  const change = (input: object): Promise<void> => patch(`/v1/identities/${id}`, input).then(reload)
  return (
    <>
      <Section sheet id="about" title="About">
        <dl class="facts">
          <Fact name="Id" class="mono">
            {id}
          </Fact>
          <Fact name="Created">{moment(identity.created_at)}</Fact>
          <Fact name="Deleted">{identity.expires_at === null ? 'never by itself' : moment(identity.expires_at)}</Fact>
          <Fact name="Phone number">{identity.phone_number ?? 'none'}</Fact>
          <Fact name="Date of birth">{identity.date_of_birth}</Fact>
        </dl>
        {storage && <StorageLines identity={identity} storage={storage} />}
      </Section>
      <Section sheet id="rename" title="Name">
        <Form submit="Rename" label="Rename" done="The name was changed. The address stays as it was." send={change}>
          <Field name="name" label="Name" defaultValue={name} autoComplete="off" />
        </Form>
      </Section>
      <Section sheet id="expiry" title="Time of deletion">
        <Form
          submit="Change"
          label="Time of deletion"
          done="The time of deletion was changed."
          send={({ expires_at }) => change({ expires_at: typedTime(expires_at) ?? null })}
        >
          <Field
            name="expires_at"
            label="Delete at"
            type="datetime-local"
            defaultValue={identity.expires_at === null ? '' : localTime(identity.expires_at)}
            hint="Empty: never by itself."
          />
        </Form>
      </Section>
      <Section sheet id="end" title={suspended ? 'Resume or delete' : 'Suspend or delete'}>
        <div class="actions">
          {suspended ? (
            <Action run={() => change({ status: 'active' })} done={`${name} receives again.`}>
              Resume
            </Action>
          ) : (
            <ConfirmButton
              label="Suspend"
              title={`Suspend ${name}?`}
              action="Suspend"
              done={`${name} is suspended.`}
              run={() => change({ status: 'suspended' })}
            >
              <p>Mail to it is deferred, so that senders retry later, and it cannot send. Its data is kept.</p>
            </ConfirmButton>
          )}
          <ConfirmButton
            label="Delete"
            kind="danger"
            title={`Delete ${name}?`}
            action={`Delete ${name}`}
            done={`${name} was deleted.`}
            run={() => remove(`/v1/identities/${id}`).then(() => go('/'))}
          >
            <DeletedWith identity={identity} />
          </ConfirmButton>
        </div>
      </Section>
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
            run={() => post(`/v1/identities/${id}/trash/empty`, {}, { idempotent: true }).then(reload)}
          >
            <p>E-mails and text messages in the trash of {name} are deleted permanently.</p>
          </ConfirmButton>
        </p>
      )}
    </>
  )
}

const pageSize = 200

function DeletedWith({ identity: { id, email, phone_number, storage } }: { identity: Identity }): JSX.Element {
  const threads = useAmount(`/v1/identities/${id}/threads`)
  const texts = useAmount(`/v1/identities/${id}/sms`)
  const cards = useAmount(`/v1/identities/${id}/cards`)
  const secrets = useAmount(`/v1/identities/${id}/totp`)
  const logins = useAmount(`/v1/identities/${id}/logins`)
  return (
    <>
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
        <li>{logins('login')}</li>
      </ul>
    </>
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
