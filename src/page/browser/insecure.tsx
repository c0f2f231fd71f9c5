import type { JSX } from 'preact'

/** Instead of the page over plain http, where browsers neither keep a session of the box nor give the page what it calls the API with. */
export function Insecure(): JSX.Element {
  return (
    <main class="door" id="main">
      <h1>This page needs https, or localhost</h1>
      <p>You came by plain http: whoever is on the way could read your password and your mail. Nobody can sign in like this.</p>
      <p class="hint">
        The operator sets <code>http.tls</code>, or puts a proxy with TLS in front, and sets <code>public_url</code> to https.
      </p>
    </main>
  )
}
