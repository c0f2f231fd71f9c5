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

interface DialogButtonProps {
  class?: string | undefined
  /** The accessible label, where the visible one is ambiguous. */
  name?: string | undefined
  /** The dialog that it opens, given the function that closes it. */
  dialog: (close: () => void) => ComponentChildren
  children: ComponentChildren
}

export function DialogButton({ class: kind = '', name, dialog, children }: DialogButtonProps): JSX.Element {
  const [open, setOpen] = useState(false)
  return (
    <>
      <button type="button" class={kind} aria-label={name} onClick={() => setOpen(true)}>
        {children}
      </button>
      {open && dialog(() => setOpen(false))}
    </>
  )
}

interface ConfirmButtonProps {
  label: string
  name?: string
  kind?: 'danger' | 'plain'
  title: string
  action: string
  /** Announced after success. */
  done?: string
  run: () => Promise<unknown>
  children: ComponentChildren
}

/** A button that asks before a destructive action; an API error is shown above the buttons. */
export function ConfirmButton({ label, name, kind, title, action, done, run, children }: ConfirmButtonProps): JSX.Element {
  return (
    <DialogButton
      class={kind}
      name={name}
      dialog={(close) => (
        <FormDialog title={title} submit={action} danger send={run} done={done} onClose={close}>
          {children}
        </FormDialog>
      )}
    >
      {label}
    </DialogButton>
  )
}

interface FormDialogProps extends Omit<FormProps, 'also'> {
  title: string
  onClose: () => void
  wide?: boolean
}

/** A dialog with a form, closed after success. */
export function FormDialog({ title, onClose, wide = false, label = title, send, ...form }: FormDialogProps): JSX.Element {
  const sendAndClose: FormProps['send'] = async (typed, files) => {
    await send(typed, files)
    onClose()
  }
  return (
    <Dialog title={title} onClose={onClose} wide={wide}>
      <Form {...form} send={sendAndClose} label={label} also={<Cancel onClose={onClose} />} />
    </Dialog>
  )
}

export function Cancel({ onClose }: { onClose: () => void }): JSX.Element {
  return (
    <button type="button" onClick={onClose}>
      Cancel
    </button>
  )
}

interface Props {
  title: string
  secret: string
  /** The name of the secret for screen readers: `the key`. */
  what: string
  children?: ComponentChildren
  onClose: () => void
}

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
