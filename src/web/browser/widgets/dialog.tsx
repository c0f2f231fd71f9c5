import type { ComponentChildren, JSX } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Form, type FormProps } from './form.tsx'
import { CopyButton } from './copy-button.tsx'

interface DialogProps {
  title: string
  /** Called on closing, also by Escape. Omitted: the dialog cannot be closed. */
  onClose?: (() => void) | undefined
  wide?: boolean
  children: ComponentChildren
}

/** A modal dialog; the browser manages the focus. */
export function Dialog({ title, onClose, wide = false, children }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  const heading = useId()
  const stays = onClose === undefined
  useLayoutEffect(() => {
    if (!stays) return undefined
    // browsers close it at the second Escape, whatever the handler of `cancel` does
    const hold = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') event.preventDefault()
    }
    document.addEventListener('keydown', hold, true)
    return () => document.removeEventListener('keydown', hold, true)
  }, [stays])
  useLayoutEffect(() => {
    const element = dialog.current!
    const before = document.activeElement
    if (!element.open) element.showModal()
    return () => {
      element.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  const cancel = (event: Event): void => {
    // a file field fires `cancel` too, when no file was chosen
    if (event.target !== event.currentTarget) return
    event.preventDefault()
    onClose?.()
  }
  const closed = (): void => {
    const element = dialog.current
    if (!element || element.open) return
    if (onClose) onClose()
    else element.showModal()
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
  /** The label of the confirm button. */
  action: string
  /** The explanation. */
  children: ComponentChildren
  run: () => Promise<unknown>
  onClose: () => void
}

/** Asks before a destructive action; an API error is shown above the buttons. */
export function Confirm({ title, action, children, run, onClose }: ConfirmProps): JSX.Element {
  const send = async (): Promise<void> => {
    await run()
    onClose()
  }
  return (
    <FormDialog title={title} submit={action} danger send={send} onClose={onClose}>
      {children}
    </FormDialog>
  )
}

interface ConfirmButtonProps extends Omit<ConfirmProps, 'onClose'> {
  label: string
  /** The accessible label, where the visible one is ambiguous. */
  name?: string
  kind?: 'danger' | 'plain'
}

/** A button that asks before it acts. */
export function ConfirmButton({ label, name, kind, ...confirm }: ConfirmButtonProps): JSX.Element {
  const [asking, setAsking] = useState(false)
  return (
    <>
      <button type="button" class={kind ?? ''} aria-label={name} onClick={() => setAsking(true)}>
        {label}
      </button>
      {asking && <Confirm {...confirm} onClose={() => setAsking(false)} />}
    </>
  )
}

interface FormDialogProps extends Omit<FormProps, 'also'> {
  title: string
  onClose: () => void
  wide?: boolean
}

/** A dialog with a form, which `send` closes when it is done. */
export function FormDialog({ title, onClose, wide = false, label = title, ...form }: FormDialogProps): JSX.Element {
  return (
    <Dialog title={title} onClose={onClose} wide={wide}>
      <Form {...form} label={label} also={<Cancel onClose={onClose} />} />
    </Dialog>
  )
}

/** The cancel button. */
export function Cancel({ onClose }: { onClose: () => void }): JSX.Element {
  return (
    <button type="button" onClick={onClose}>
      Cancel
    </button>
  )
}

interface Props {
  title: string
  /** A secret that is shown only once. */
  secret: string
  /** The name of the secret for screen readers: `the key`. */
  what: string
  /** Further instructions. */
  children?: ComponentChildren
  onClose: () => void
}

/** Shows a secret once. */
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
