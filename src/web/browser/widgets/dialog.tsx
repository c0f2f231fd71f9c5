import type { ComponentChildren, JSX } from 'preact'
import { useLayoutEffect, useId, useRef } from 'preact/hooks'
import { Form } from './form.tsx'
import { CopyButton } from './copy-button.tsx'

interface DialogProps {
  title: string
  /** It was closed, by Escape too. Left out: it stays until what it asks is done. */
  onClose?: (() => void) | undefined
  wide?: boolean
  children: ComponentChildren
}

/** A question over the page; the browser keeps the focus in it and gives it back. */
export function Dialog({ title, onClose, wide = false, children }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  const heading = useId()
  const stays = onClose === undefined
  useLayoutEffect(() => {
    if (!stays) return undefined
    // browsers close it at the second Escape, whatever is said to `cancel`
    const hold = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') event.preventDefault()
    }
    document.addEventListener('keydown', hold, true)
    return () => document.removeEventListener('keydown', hold, true)
  }, [stays])
  useLayoutEffect(() => {
    const shown = dialog.current!
    const before = document.activeElement
    if (!shown.open) shown.showModal()
    return () => {
      shown.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  const cancel = (event: Event): void => {
    // a field for files says it too, when none was chosen
    if (event.target !== event.currentTarget) return
    event.preventDefault()
    onClose?.()
  }
  const closed = (): void => {
    const shown = dialog.current
    if (!shown || shown.open) return
    if (onClose) onClose()
    else shown.showModal()
  }
  return (
    <dialog ref={dialog} class={wide ? 'wide' : ''} aria-labelledby={heading} onCancel={cancel} onClose={closed}>
      <div class="dialog-head">
        <h2 id={heading}>{title}</h2>
        {onClose && (
          <button type="button" class="plain" aria-label="Close" onClick={onClose}>
            ✕
          </button>
        )}
      </div>
      {children}
    </dialog>
  )
}

interface ConfirmProps {
  title: string
  /** What the button that does it says. */
  action: string
  /** What it means, and what goes. */
  children: ComponentChildren
  run: () => Promise<unknown>
  onClose: () => void
}

/** Asks before something that cannot be taken back; an error of the API stands above the buttons. */
export function Confirm({ title, action, children, run, onClose }: ConfirmProps): JSX.Element {
  const send = async (): Promise<void> => {
    await run()
    onClose()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <Form send={send} submit={action} danger also={<Cancel onClose={onClose} />}>
        {children}
      </Form>
    </Dialog>
  )
}

/** The button that does nothing. */
export function Cancel({ onClose }: { onClose: () => void }): JSX.Element {
  return (
    <button type="button" onClick={onClose}>
      Cancel
    </button>
  )
}

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
      <p>It is shown only once: copy it before you close this.</p>
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
