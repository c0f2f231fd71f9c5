import type { JSX } from 'preact'
import type { Account } from '../../../accounts/model.ts'
import { post } from '../api.ts'
import { announce } from '../widgets/announcer.tsx'
import { Field, Form } from '../widgets/form.tsx'

interface Props {
  account: Account
  onChange: () => Promise<void>
}

/** Changes the address or password for signing in. */
export function PasswordForm({ account, onChange }: Props): JSX.Element {
  return (
    <section class="sheet" aria-labelledby="password">
      <h2 id="password">Signing in</h2>
      <Form
        submit="Change"
        label="Change the password"
        clears
        send={async (typed) => {
          await post('/v1/account/password', typed)
          await onChange()
          announce('Changed. Your other sessions have ended.')
        }}
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
    </section>
  )
}
