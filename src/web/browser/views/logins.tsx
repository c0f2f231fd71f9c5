import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Login, RevealedLogin } from '../../../logins/model.ts'
import type { TotpEntry } from '../../../totp/model.ts'
import { patch, post, remove } from '../api.ts'
import { IdentityFrame } from '../identity-frame.tsx'
import { eventsOf, useList } from '../loaded.ts'
import type { ViewProps } from '../views.ts'
import { Action } from '../widgets/action.tsx'
import { CopyButton } from '../widgets/copy-button.tsx'
import { ConfirmButton, Dialog, DialogButton, FormDialog } from '../widgets/dialog.tsx'
import { Field, filledIn, Select, TextArea, type Typed } from '../widgets/form.tsx'
import { Fact, Rows } from '../widgets/listing.tsx'

export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{() => <Logins key={id} id={id} />}</IdentityFrame>
}

function Logins({ id }: { id: string }): JSX.Element {
  const path = `/v1/identities/${id}/logins`
  const list = useList<Login>(path, {}, eventsOf('login.', id))
  const create = (typed: Typed): Promise<void> => post(path, filledIn(typed), { idempotent: true }).then(list.reload)
  return (
    <>
      <div class="head">
        <h2>Logins</h2>
        <DialogButton
          class="primary"
          dialog={(close) => (
            <LoginDialog title="New login" submit="Store" done="The login was stored." id={id} send={create} onClose={close} />
          )}
        >
          New login
        </DialogButton>
      </div>
      <Rows
        list={list}
        empty="No login yet. User names, passwords and API keys of places elsewhere, for the agent to read one at a time."
      >
        {(login) => <Line login={login} onChange={list.reload} />}
      </Rows>
    </>
  )
}

function Line({ login, onChange }: { login: Login; onChange: () => Promise<void> }): JSX.Element {
  const { id, label, url, username } = login
  const kept = [login.has_password && 'password', login.has_api_key && 'API key', login.has_notes && 'notes'].filter(Boolean)
  const change = (typed: Typed): Promise<void> => patch(`/v1/logins/${id}`, changed(typed)).then(onChange)
  return (
    <li>
      <span class="grow">
        <strong>{label}</strong>
        <br />
        <span class="faint">{[url && new URL(url).host, username, ...kept].filter(Boolean).join(' · ')}</span>
      </span>
      <span class="actions">
        <Reveal login={login} />
        <DialogButton
          name={`Change ${label}`}
          dialog={(close) => (
            <LoginDialog
              title={`The login at ${label}`}
              submit="Change"
              done={`The login at ${label} was changed.`}
              id={login.identity_id}
              login={login}
              send={change}
              onClose={close}
            />
          )}
        >
          Change
        </DialogButton>
        <ConfirmButton
          label="Delete"
          name={`Delete ${label}`}
          title={`Delete the login at ${label}?`}
          action="Delete"
          done={`The login at ${label} was deleted.`}
          run={() => remove(`/v1/logins/${id}`).then(onChange)}
        >
          <p>What is stored of it is overwritten. The account at {label} stays as it is.</p>
        </ConfirmButton>
      </span>
    </li>
  )
}

/** As a heading, and in a sentence. */
const names = {
  username: ['User name', 'the user name'],
  password: ['Password', 'the password'],
  api_key: ['API key', 'the API key'],
  notes: ['Notes', 'the notes'],
} as const

/** What is stored, on request: each access is recorded. */
function Reveal({ login: { id, label } }: { login: Login }): JSX.Element {
  const [revealed, setRevealed] = useState<RevealedLogin>()
  const read = async (): Promise<void> =>
    setRevealed(await post<RevealedLogin>(`/v1/logins/${id}/reveal`, {}, { idempotent: true }))
  return (
    <>
      <Action run={read} label={`Show the login at ${label}`}>
        Show
      </Action>
      {revealed && (
        <Dialog title={`The login at ${label}`} onClose={() => setRevealed(undefined)}>
          <dl class="facts">
            {Object.entries(names).map(([name, [heading, what]]) => {
              const text = revealed[name as keyof typeof names]
              return (
                text !== null && (
                  <Fact key={name} name={heading} class="mono">
                    <span class="lines">{text}</span> <CopyButton text={text} what={what} />
                  </Fact>
                )
              )
            })}
          </dl>
        </Dialog>
      )}
    </>
  )
}

interface LoginDialogProps {
  title: string
  submit: string
  done: string
  /** Of the identity. */
  id: string
  login?: Login
  send: (typed: Typed) => Promise<void>
  onClose: () => void
}

/** Of a field whose text is not shown. */
function hintOf(isStored: boolean | undefined): string | undefined {
  return isStored ? 'Empty: as it is.' : undefined
}

function LoginDialog({ id, login, ...rest }: LoginDialogProps): JSX.Element {
  const passwords = useList<TotpEntry>(`/v1/identities/${id}/totp`, { limit: 200 })
  const secret = { autoComplete: 'off', spellcheck: false } as const
  const linked = login?.totp_id
  return (
    <FormDialog {...rest}>
      <Field name="label" label="Place" first autoComplete="off" defaultValue={login?.label} hint="Such as GitHub." />
      <Field
        name="url"
        label="Address"
        type="url"
        autoComplete="off"
        defaultValue={login?.url ?? ''}
        hint="https://… Its host is what a person approves, where a policy holds logins."
      />
      <Field name="username" label="User name" {...secret} defaultValue={login?.username ?? ''} />
      <Field name="password" label="Password" {...secret} hint={hintOf(login?.has_password)} />
      <Field name="api_key" label="API key" {...secret} hint={hintOf(login?.has_api_key)} />
      <TextArea name="notes" label="Notes" rows={3} {...secret} hint={hintOf(login?.has_notes)} />
      <Select name="totp_id" label="One-time password">
        <option value="">none</option>
        {linked && !passwords.value?.some((entry) => entry.id === linked) && (
          <option key={linked} value={linked} selected>
            as it is
          </option>
        )}
        {passwords.value?.map((entry) => (
          <option key={entry.id} value={entry.id} selected={entry.id === linked}>
            {entry.account_name === null ? entry.service_name : `${entry.service_name} (${entry.account_name})`}
          </option>
        ))}
      </Select>
    </FormDialog>
  )
}

/** Empty fields of what is shown are removed; of what is not shown they stay. */
function changed(typed: Typed): Record<string, unknown> {
  const shown = ['url', 'username', 'totp_id']
  const kept = Object.entries(typed).filter(([name, value]) => value !== '' || shown.includes(name))
  return Object.fromEntries(kept.map(([name, value]) => [name, value === '' ? null : value]))
}
