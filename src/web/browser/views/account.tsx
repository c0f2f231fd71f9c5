import type { JSX } from 'preact'
import type { Account, SecondFactorSetup, SessionEntry } from '../../../accounts/model.ts'
import { useList, useResource } from '../loaded.ts'
import { Rows, Section, WhenLoaded } from '../widgets/listing.tsx'
import { post, remove } from '../api.ts'
import { Link } from '../router.tsx'
import { announce } from '../widgets/announcer.tsx'
import { Field, Form } from '../widgets/form.tsx'
import { useState } from 'preact/hooks'
import { session } from '../session.ts'
import { CopyButton } from '../widgets/copy-button.tsx'
import { Cancel, ConfirmButton } from '../widgets/dialog.tsx'
import { counted, Mark, moment, Time } from '../widgets/format.tsx'

export function View(): JSX.Element {
  const account = useResource<Account>('/v1/account')
  return (
    <>
      <div class="head">
        <h1>Account</h1>
        <span class="actions">
          <Link href="/account/people">People</Link>
          <Link href="/account/audit">Audit log</Link>
        </span>
      </div>
      <WhenLoaded of={account}>
        {(value) => (
          <>
            <PasswordForm account={value} onChange={account.reload} />
            <SecondFactor account={value} onChange={account.reload} />
            <SessionList />
            <Stopping account={value} onChange={account.reload} />
          </>
        )}
      </WhenLoaded>
    </>
  )
}

interface Props {
  account: Account
  onChange: () => Promise<void>
}

function PasswordForm({ account, onChange }: Props): JSX.Element {
  return (
    <Section sheet id="password" title="Signing in">
      <Form
        submit="Change"
        label="Change the password"
        clears
        done="Changed. Your other sessions have ended."
        send={(typed) => post('/v1/account/password', typed).then(onChange)}
      >
        <Field name="email" label="E-mail address" type="email" autoComplete="username" defaultValue={account.email ?? ''} />
        <Field name="current_password" label="Current password" type="password" autoComplete="current-password" />
        <Field
          name="password"
          label="New password"
          hint="8 to 256 characters. Changing it ends your other sessions."
          type="password"
          autoComplete="new-password"
        />
      </Form>
    </Section>
  )
}

function SecondFactor({ account, onChange }: Props): JSX.Element {
  return (
    <Section sheet id="factor" title={<>Second factor {account.totp_enabled ? <Mark tone="good">on</Mark> : <Mark>off</Mark>}</>}>
      {account.totp_enabled ? <Removing account={account} onChange={onChange} /> : <Adding onChange={onChange} />}
    </Section>
  )
}

function Adding({ onChange }: Pick<Props, 'onChange'>): JSX.Element {
  const [setup, setSetup] = useState<SecondFactorSetup>()
  if (!setup) {
    return (
      <>
        <p>With a second factor, signing in also requires a code of an authenticator app.</p>
        <Form
          submit="Add a second factor"
          label="Add a second factor"
          send={(typed) => post<SecondFactorSetup>('/v1/account/totp', typed).then(setSetup)}
        >
          <Field name="password" label="Password" type="password" autoComplete="current-password" />
        </Form>
      </>
    )
  }
  return (
    <>
      <p>
        Type this key into your app, or <a href={setup.uri}>open it there</a>:
      </p>
      <p>
        <strong class="mono">{setup.secret}</strong> <CopyButton text={setup.secret} what="the key" />
      </p>
      <p>
        Keep these recovery codes: each replaces one code. They are shown only now:{' '}
        <CopyButton text={setup.recovery_codes.join('\n')} what="the recovery codes" />
      </p>
      <ul class="mono">
        {setup.recovery_codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ul>
      <Form
        submit="Confirm"
        label="Confirm the second factor"
        also={<Cancel onClose={() => setSetup(undefined)} />}
        done="The second factor is on. Your other sessions have ended."
        send={(typed) => post('/v1/account/totp/confirm', typed).then(onChange)}
      >
        <Field name="code" label="Code of the app" autoComplete="one-time-code" inputMode="numeric" />
      </Form>
    </>
  )
}

function Removing({ account, onChange }: Props): JSX.Element {
  return (
    <>
      <p>Recovery codes left: {account.recovery_codes_left}.</p>
      <Form
        submit="Remove"
        label="Remove the second factor"
        danger
        done="The second factor is off. Your other sessions have ended."
        send={(typed) => remove('/v1/account/totp', typed).then(onChange)}
      >
        <Field name="password" label="Password" type="password" autoComplete="current-password" />
      </Form>
    </>
  )
}

function Stopping({ account: { stopped_at }, onChange }: Props): JSX.Element {
  const role = session.value?.person.role
  const change = (how: 'stop' | 'resume') => post(`/v1/account/${how}`, {}).then(onChange)
  return (
    <Section sheet id="stop" title={<>All agents {stopped_at !== null && <Mark tone="bad">stopped</Mark>}</>}>
      {stopped_at === null ? (
        <p>Stopped at once: no key does anything, and nothing is sent, until an owner resumes the account. Mail is received.</p>
      ) : (
        <p>Stopped since {moment(stopped_at)}: no key does anything, and nothing is sent. An owner resumes the account.</p>
      )}
      <p class="actions">
        {stopped_at === null && role !== 'reader' && (
          <ConfirmButton
            label="Stop everything"
            kind="danger"
            title="Stop everything?"
            action="Stop everything"
            done="Stopped."
            run={() => change('stop')}
          >
            <p>
              No key of this account does anything from now on. E-mails, text messages and webhooks wait. Only an owner resumes
              it.
            </p>
          </ConfirmButton>
        )}
        {stopped_at !== null && role === 'owner' && (
          <ConfirmButton label="Resume" title="Resume the account?" action="Resume" done="Resumed." run={() => change('resume')}>
            <p>All keys work again, and what waits is sent.</p>
          </ConfirmButton>
        )}
      </p>
    </Section>
  )
}

function SessionList(): JSX.Element {
  const list = useList<SessionEntry>('/v1/account/sessions')
  const end = async (): Promise<void> => {
    const { count } = await remove<{ count: number }>('/v1/account/sessions')
    await list.reload()
    announce(`${counted(count, 'session')} ended.`)
  }
  return (
    <Section
      sheet
      id="sessions"
      title="Sessions"
      tools={
        <ConfirmButton label="Sign out everywhere else" title="Sign out everywhere else?" action="Sign out elsewhere" run={end}>
          <p>Every session of yours ends but this one.</p>
        </ConfirmButton>
      }
    >
      <Rows list={list} empty="None.">
        {({ current, ip, user_agent, last_used_at }) => (
          <li>
            <span class="grow">
              <span class="mono">{ip}</span> {current && <Mark tone="good">this one</Mark>}
              <br />
              <span class="faint">{user_agent}</span>
            </span>
            <span class="faint">
              used <Time at={last_used_at} />
            </span>
          </li>
        )}
      </Rows>
    </Section>
  )
}
