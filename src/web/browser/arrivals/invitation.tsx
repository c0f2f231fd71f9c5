import type { JSX } from 'preact'
import { post } from '../api.ts'
import { go, useLink } from '../router.tsx'
import { signIn } from '../session.ts'
import { announce } from '../widgets/announcer.tsx'
import { Field, Form, type Typed } from '../widgets/form.tsx'

/** The target of an invitation: sets the password of a new person. */
export function View(): JSX.Element {
  const link = useLink('/invitation')
  const [token, email] = [link.get('token') ?? '', link.get('email') ?? '']
  const send = async ({ password }: Typed): Promise<void> => {
    const person = await post<{ email: string }>('/v1/people/invitations/accept', { token, password }, { quiet: true })
    go('/', true)
    await signIn({ email: person.email, password: String(password) })
    announce('Your password is set, and you are signed in.')
  }
  return (
    <main class="centered" id="main">
      <h1>Welcome to Pillarbox</h1>
      {token === '' ? (
        <p>
          This address works only with the token at the end of the link. An owner of the account invites people on the page of the
          account.
        </p>
      ) : (
        <>
          <p>You were invited. Choose the password that you will sign in with.</p>
          <Form send={send} submit="Accept" label="Accept the invitation">
            <Field name="email" label="E-mail address" type="email" autoComplete="username" value={email} readOnly />
            <Field
              name="password"
              label="Password"
              hint="8 to 256 characters."
              type="password"
              autoComplete="new-password"
              first
            />
          </Form>
        </>
      )}
    </main>
  )
}
