import type { ComponentChildren, JSX } from 'preact'
import { CopyButton } from './copy-button.tsx'
import { Dialog } from './dialog.tsx'

interface Props {
  title: string
  /** What is shown this once. */
  secret: string
  /** What it is called, for the ear: `the key`. */
  what: string
  /** What to do with it. */
  children?: ComponentChildren
  onClose: () => void
}

/** Shows a secret this once. */
export function SecretDialog({ title, secret, what, children, onClose }: Props): JSX.Element {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>It is shown only now: put it where it is needed before you close this.</p>
      {children}
      <p class="secret">
        <strong class="mono">{secret}</strong> <CopyButton text={secret} what={what} />
      </p>
      <div class="actions">
        <button type="button" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  )
}
