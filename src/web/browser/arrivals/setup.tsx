import type { JSX } from 'preact'
import { post } from '../api.ts'
import { go, useLink } from '../router.tsx'
import { signIn } from '../session.ts'
import { announce } from '../widgets/announcer.tsx'
import { Field, Form, type Typed } from '../widgets/form.tsx'

/** The target of a setup link: sets the first password of an account. */
export function View(): JSX.Element {
  const token = useLink('/setup').get('token') ?? ''
  const send = async (typed: Typed): Promise<void> => {
    await post('/v1/setup', { ...typed, token }, { quiet: true })
    go('/', true)
    await signIn({ email: String(typed['email']), password: String(typed['password']) })
    announce('Your password is set, and you are signed in.')
  }
  return (
    <main class="centered" id="main">
      <h1>Welcome to Pillarbox</h1>
      {token === '' ? (
        <p>
          This address works only with the token at the end of the link. The operator creates a link with{' '}
          <code>pillarbox account setup-link</code>.
        </p>
      ) : (
        <>
          <p>Choose your e-mail address and password for signing in.</p>
          <Form send={send} submit="Set the password" label="Set the password">
            <Field name="email" label="E-mail address" type="email" autoComplete="username" first />
            <Field name="password" label="Password" hint="8 to 256 characters." type="password" autoComplete="new-password" />
          </Form>
        </>
      )}
    </main>
  )
}
