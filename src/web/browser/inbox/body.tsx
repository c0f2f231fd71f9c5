import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { Email } from '../../../mail/model.ts'
import { Sheet } from './sheet.tsx'

/** Detects remote images in HTML. Each space can be matched in one way only, as there may be a million. */
const remoteContent = /src\s*=[\s"']*https?:/i

/** The body of a message: as text, or its HTML in a sandboxed frame. Remote images are loaded on demand. */
export function Body({ email }: { email: Email }): JSX.Element {
  const { id, identity_id, body_html, body_text, body_truncated } = email
  const [form, setForm] = useState<'html' | 'text'>(body_html === null ? 'text' : 'html')
  const [remote, setRemote] = useState(false)
  const elsewhere = useMemo(() => body_html !== null && remoteContent.test(body_html), [body_html])
  const path = `/v1/identities/${identity_id}/emails/${id}/html`
  return (
    <div class="body">
      <div class="body-tools">
        {body_html !== null && (
          <button type="button" class="plain" onClick={() => setForm(form === 'html' ? 'text' : 'html')}>
            {form === 'html' ? 'Show as text' : 'Show as sent'}
          </button>
        )}
        {form === 'html' && elsewhere && !remote && (
          <span>
            Remote images are not loaded: they would show their owner that you opened the message.{' '}
            <button type="button" onClick={() => setRemote(true)}>
              Show images
            </button>
          </span>
        )}
      </div>
      {form === 'html' ? (
        <Sheet key={path} path={path} remote={remote} />
      ) : (
        <div class="mail-text">{body_text ?? email.text ?? ''}</div>
      )}
      {body_truncated && <p class="hint">The message is truncated here. The source is complete.</p>}
    </div>
  )
}
