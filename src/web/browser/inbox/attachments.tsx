import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { AttachmentWithUrl, Email } from '../../../mail/model.ts'
import { ApiError, get } from '../api.ts'
import { bytes } from '../widgets/format.tsx'
import { Trouble } from '../widgets/listing.tsx'

/** The attachments of a message; a download URL is created on demand. */
export function AttachmentList({ email: { id, identity_id, attachments } }: { email: Email }): JSX.Element | null {
  const [error, setError] = useState<ApiError>()
  if (attachments.length === 0) return null
  const download = async (index: number): Promise<void> => {
    try {
      const { url } = await get<AttachmentWithUrl>(`/v1/identities/${identity_id}/emails/${id}/attachments/${index}`)
      setError(undefined)
      // the page may use another host name than the configured one
      const { pathname, search } = new URL(url)
      location.assign(pathname + search)
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      setError(thrown)
    }
  }
  return (
    <>
      {error && <Trouble error={error} />}
      <ul class="attachments" aria-label="Attachments">
        {attachments.map(({ index, filename, size, content_type }) => (
          <li key={index}>
            <button type="button" onClick={() => void download(index)} title={content_type}>
              {filename} <span class="faint">{bytes(size)}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  )
}
