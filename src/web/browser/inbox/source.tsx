import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ApiError, getText } from '../api.ts'
import { CopyButton } from '../widgets/copy-button.tsx'
import { Dialog } from '../widgets/dialog.tsx'
import { Trouble } from '../widgets/listing.tsx'

/** The most characters of a source that are shown; the file has all. */
const maxCharacters = 200_000

/** The raw message, with our Received fields. */
export function Source({ path, onClose }: { path: string; onClose: () => void }): JSX.Element {
  const [text, setText] = useState<string>()
  const [error, setError] = useState<ApiError>()
  useEffect(() => {
    getText(`${path}/raw`).then(setText, (thrown: unknown) => {
      if (!(thrown instanceof ApiError)) throw thrown
      setError(thrown)
    })
  }, [path])
  return (
    <Dialog title="Source" wide onClose={onClose}>
      {error && <Trouble error={error} />}
      {text === undefined ? (
        !error && <p class="waiting">Loading…</p>
      ) : (
        <>
          <p class="actions">
            <CopyButton text={text} what="the source" />
            <a href={`${path}/raw`} download="">
              Download
            </a>
          </p>
          <pre class="source" tabIndex={0} aria-label="Source">
            {text.slice(0, maxCharacters)}
          </pre>
          {text.length > maxCharacters && <p class="hint">The source is truncated here: download the file for all of it.</p>}
        </>
      )}
    </Dialog>
  )
}
