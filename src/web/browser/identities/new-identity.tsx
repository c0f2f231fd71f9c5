import type { JSX } from 'preact'
import type { Identity } from '../../../identities/model.ts'
import { post } from '../api.ts'
import { announce } from '../widgets/announcer.tsx'
import { FormDialog } from '../widgets/dialog.tsx'
import { Field, type Typed } from '../widgets/form.tsx'

interface Props {
  onClose: () => void
  onMade: (identity: Identity) => void
}

/** The form of a new identity. */
export function NewIdentityDialog({ onClose, onMade }: Props): JSX.Element {
  const send = async (typed: Typed): Promise<void> => {
    const given = Object.fromEntries(Object.entries(typed).filter(([, value]) => value !== ''))
    const made = await post<Identity>('/v1/identities', given)
    announce(`${made.name} was created: ${made.email}`)
    onClose()
    onMade(made)
  }
  return (
    <FormDialog title="New identity" send={send} submit="Create" onClose={onClose}>
      <Field name="name" label="Name" hint="Empty: a generated name." autoComplete="off" first />
      <Field
        name="email_username"
        label="Address, before the @"
        hint="Empty: made from the name. It is never given to another identity."
        autoComplete="off"
        autoCapitalize="none"
      />
      <Field name="email_domain" label="Domain" hint="Empty: the box's own domain." autoComplete="off" autoCapitalize="none" />
    </FormDialog>
  )
}
