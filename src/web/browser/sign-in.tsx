import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError } from './api.ts'
import { session, signIn } from './session.ts'
import { Dialog } from './widgets/dialog.tsx'
import { Field, Form, type Typed } from './widgets/form.tsx'

/** E-mail address, password and, once the API requires it, a code. */
function SignInForm({ email }: { email?: string | undefined }): JSX.Element {
  const [coded, setCoded] = useState(false)
  const send = async ({ totp, ...typed }: Typed): Promise<void> => {
    const input = { ...(typed as Record<string, string>), ...(totp ? { totp: String(totp) } : {}) }
    try {
      await signIn(input)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'totp_required') throw error
      // the code is requested for the first time, which is no error
      if (coded) throw error
      setCoded(true)
    }
  }
  return (
    <Form send={send} submit="Sign in" label="Sign in">
      <Field name="email" label="E-mail address" type="email" autoComplete="username" required first defaultValue={email} />
      <Field name="password" label="Password" type="password" autoComplete="current-password" required />
      {coded && (
        <Field
          name="totp"
          label="Code"
          hint="From your authenticator app, or a recovery code."
          autoComplete="one-time-code"
          inputMode="text"
          required
          first
        />
      )}
    </Form>
  )
}

export function SignInPage(): JSX.Element {
  return (
    <main class="centered" id="main">
      <h1>Pillarbox</h1>
      <SignInForm />
      <p class="hint">
        No password yet? The operator can create a link with <code>pillarbox account setup-link</code>.
      </p>
    </main>
  )
}

/** A dialog over the page once a session has ended: typed text stays, and calls continue. */
export function SignInAgain(): JSX.Element {
  return (
    <Dialog title="Sign in again">
      <p>Your session has ended. Your input is kept.</p>
      <SignInForm email={session.value?.account.email} />
    </Dialog>
  )
}

/** Shown over plain http, where browsers neither store the session cookie nor provide the APIs that the page needs. */
export function Insecure(): JSX.Element {
  return (
    <main class="centered" id="main">
      <h1>This page needs https, or localhost</h1>
      <p>This connection is plain http: others on the network could read your password and mail. Signing in is disabled.</p>
      <p class="hint">
        The operator sets <code>http.tls</code>, or puts a reverse proxy with TLS in front, and sets <code>public_url</code> to
        https.
      </p>
    </main>
  )
}
