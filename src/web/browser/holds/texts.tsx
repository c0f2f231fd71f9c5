import type { JSX } from 'preact'
import type { Email } from '../../../mail/model.ts'

/** All that is written in a message, also what its HTML would hide, and where its links lead. */
export function Texts({ email: { body_text, body_html, body_truncated, text, links } }: { email: Email }): JSX.Element {
  const ofHtml = body_html === null ? '' : textIn(body_html)
  return (
    <>
      {body_html === null && <pre class="scrolls">{body_text ?? text}</pre>}
      {body_html !== null && (
        <>
          <h2>The text of its HTML</h2>
          <pre class="scrolls">{ofHtml}</pre>
        </>
      )}
      {body_html !== null && body_text !== null && (
        <>
          <h2>Its plain text</h2>
          <pre class="scrolls">{body_text}</pre>
        </>
      )}
      {body_truncated && <p class="hint">It is truncated here. Sign in to see the whole of it.</p>}
      {links.length > 0 && (
        <>
          <h2>Its links</h2>
          <ul>
            {links.map(({ url }, index) => (
              <li key={index} class="mono breaks">
                {url}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  )
}

/** Elements whose text is never shown, and those that end a line. */
const unshown = 'script, style, head'
const lines = 'br, div, h1, h2, h3, h4, h5, h6, li, p, td, th, tr'

/** Parsed only: nothing in it runs or is loaded. */
function textIn(html: string): string {
  const page = new DOMParser().parseFromString(html, 'text/html')
  for (const one of page.querySelectorAll(unshown)) one.remove()
  for (const one of page.querySelectorAll(lines)) one.after('\n')
  return (page.body.textContent ?? '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('\n')
}
