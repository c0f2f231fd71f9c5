import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Invitation, InvitationLink, Person } from '../../../accounts/model.ts'
import { patch, post, remove } from '../api.ts'
import { useList } from '../loaded.ts'
import { session } from '../session.ts'
import { ConfirmButton, DialogButton, FormDialog, SecretDialog } from '../widgets/dialog.tsx'
import { Field, Select } from '../widgets/form.tsx'
import { Mark, moment, Time } from '../widgets/format.tsx'
import { Rows, Section } from '../widgets/listing.tsx'

const roleWords: Record<Person['role'], string> = {
  owner: 'owner: everything',
  approver: 'approver: reads, and decides what is held',
  reader: 'reader: reads',
}

/** Who signs in to the account; an owner changes it. */
export function View(): JSX.Element {
  const people = useList<Person>('/v1/people', {}, () => false, true)
  const invitations = useList<Invitation>('/v1/people/invitations', {}, () => false, true)
  const [made, setMade] = useState<InvitationLink>()
  const isOwner = session.value?.person.role === 'owner'
  const show = (link: InvitationLink): Promise<void> => {
    setMade(link)
    return invitations.reload()
  }
  return (
    <>
      <div class="head">
        <h1>People</h1>
        {isOwner && (
          <DialogButton class="primary" dialog={(close) => <InviteDialog onMade={show} onClose={close} />}>
            Invite
          </DialogButton>
        )}
      </div>
      <Rows list={people} empty="Nobody.">
        {(person) => <PersonLine person={person} editable={isOwner} onChange={people.reload} />}
      </Rows>
      <Section id="invitations" title="Invitations">
        <Rows list={invitations} empty="None is open.">
          {({ id, email, role, expires_at }) => (
            <li>
              <span class="grow">
                <strong>{email}</strong> <Mark>{role}</Mark>
                <br />
                <span class="faint">expires {moment(expires_at)}</span>
              </span>
              {isOwner && (
                <ConfirmButton
                  label="Withdraw"
                  name={`Withdraw the invitation of ${email}`}
                  title={`Withdraw the invitation of ${email}?`}
                  action="Withdraw"
                  done="Withdrawn."
                  run={() => remove(`/v1/people/invitations/${id}`).then(invitations.reload)}
                >
                  <p>The link no longer works.</p>
                </ConfirmButton>
              )}
            </li>
          )}
        </Rows>
      </Section>
      {made && (
        <SecretDialog
          title={`The invitation of ${made.email}`}
          secret={made.url}
          what="the link"
          onClose={() => setMade(undefined)}
        >
          <p>Give this link to them. It works once, until {moment(made.expires_at)}.</p>
        </SecretDialog>
      )}
    </>
  )
}

interface LineProps {
  person: Person
  editable: boolean
  onChange: () => Promise<void>
}

function PersonLine({ person: { id, email, role, totp_enabled, created_at }, editable, onChange }: LineProps): JSX.Element {
  const own = session.value?.person.id === id
  return (
    <li>
      <span class="grow">
        <strong>{email}</strong> <Mark>{role}</Mark> {own && <Mark tone="good">you</Mark>}{' '}
        {!totp_enabled && <Mark tone="warn">no second factor</Mark>}
      </span>
      <span class="faint">
        since <Time at={created_at} />
      </span>
      {editable && (
        <span class="actions">
          <DialogButton
            name={`Role of ${email}`}
            dialog={(close) => (
              <FormDialog
                title={`The role of ${email}`}
                submit="Change"
                done="Changed."
                send={(typed) => patch(`/v1/people/${id}`, typed).then(onChange)}
                onClose={close}
              >
                <p>{own ? 'You are signed out, and sign in again.' : 'They are signed out, and sign in again.'}</p>
                <RoleField role={role} />
              </FormDialog>
            )}
          >
            Role
          </DialogButton>
          <ConfirmButton
            label="Remove"
            name={`Remove ${email}`}
            title={`Remove ${email}?`}
            action={`Remove ${email}`}
            done={`${email} was removed.`}
            run={() => remove(`/v1/people/${id}`).then(onChange)}
          >
            <p>
              Their sessions end, and they cannot sign in any more. Keys that they made stay: revoke those too, if they should not
              be used.
            </p>
          </ConfirmButton>
        </span>
      )}
    </li>
  )
}

function RoleField({ role }: { role: Person['role'] }): JSX.Element {
  return (
    <Select name="role" label="Role">
      {Object.entries(roleWords).map(([value, words]) => (
        <option key={value} value={value} selected={value === role}>
          {words}
        </option>
      ))}
    </Select>
  )
}

function InviteDialog({
  onMade,
  onClose,
}: {
  onMade: (link: InvitationLink) => Promise<void>
  onClose: () => void
}): JSX.Element {
  return (
    <FormDialog
      title="Invite a person"
      submit="Make a link"
      send={(typed) => post<InvitationLink>('/v1/people/invitations', typed).then(onMade)}
      onClose={onClose}
    >
      <Field
        name="email"
        label="E-mail address"
        hint="They sign in with it. Nothing is mailed: you get a link for them."
        type="email"
        autoComplete="off"
        first
      />
      <RoleField role="approver" />
      <Field name="password" label="Your password" type="password" autoComplete="current-password" />
    </FormDialog>
  )
}
