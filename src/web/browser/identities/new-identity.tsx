import type { JSX } from 'preact'
import type { Identity } from '../../../identities/model.ts'
import { post } from '../api.ts'
import { announce } from '../widgets/announcer.tsx'
import { Cancel, Dialog } from '../widgets/dialog.tsx'
import { Field, Form, type Typed } from '../widgets/form.tsx'

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
    <Dialog title="New identity" onClose={onClose}>
      <Form send={send} submit="Create" also={<Cancel onClose={onClose} />}>
        <Field name="name" label="Name" hint="Empty: a generated name." autoComplete="off" first />
        <Field
          name="email_username"
          label="Address, before the @"
          hint="Empty: derived from the name. It is never reused."
          autoComplete="off"
          autoCapitalize="none"
        />
        <Field name="email_domain" label="Domain" hint="Empty: the domain of the box." autoComplete="off" autoCapitalize="none" />
      </Form>
    </Dialog>
  )
}
