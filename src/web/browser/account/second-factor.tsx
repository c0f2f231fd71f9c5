import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Account, SecondFactorSetup } from '../../../accounts/model.ts'
import { post, remove } from '../api.ts'
import { announce } from '../widgets/announcer.tsx'
import { CopyButton } from '../widgets/copy-button.tsx'
import { Cancel } from '../widgets/dialog.tsx'
import { Field, Form } from '../widgets/form.tsx'
import { Mark } from '../widgets/format.tsx'

interface Props {
  account: Account
  onChange: () => Promise<void>
}

/** The second factor: added with a code of the app, removed with the password. */
export function SecondFactor({ account, onChange }: Props): JSX.Element {
  return (
    <section class="sheet" aria-labelledby="factor">
      <h2 id="factor">Second factor {account.totp_enabled ? <Mark tone="good">on</Mark> : <Mark>off</Mark>}</h2>
      {account.totp_enabled ? <Removing account={account} onChange={onChange} /> : <Adding onChange={onChange} />}
    </section>
  )
}

function Adding({ onChange }: Pick<Props, 'onChange'>): JSX.Element {
  const [setup, setSetup] = useState<SecondFactorSetup>()
  const begin = async ({ password }: Record<string, string | true>): Promise<void> =>
    setSetup(await post<SecondFactorSetup>('/v1/account/totp', { password }))
  if (!setup) {
    return (
      <>
        <p>With a second factor, signing in also requires a code of an authenticator app.</p>
        <Form submit="Add a second factor" label="Add a second factor" send={begin}>
          <Field name="password" label="Password" type="password" autoComplete="current-password" />
        </Form>
      </>
    )
  }
  const confirm = async (code: string): Promise<void> => {
    await post('/v1/account/totp/confirm', { code })
    await onChange()
    announce('The second factor is on. Your other sessions have ended.')
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
        send={({ code }) => confirm(String(code))}
      >
        <Field name="code" label="Code of the app" autoComplete="one-time-code" inputMode="numeric" />
      </Form>
    </>
  )
}

function Removing({ account, onChange }: Props): JSX.Element {
  const send = async ({ password }: Record<string, string | true>): Promise<void> => {
    await remove('/v1/account/totp', { password })
    await onChange()
    announce('The second factor is off. Your other sessions have ended.')
  }
  return (
    <>
      <p>Recovery codes left: {account.recovery_codes_left}.</p>
      <Form submit="Remove" label="Remove the second factor" danger send={send}>
        <Field name="password" label="Password" type="password" autoComplete="current-password" />
      </Form>
    </>
  )
}
