import type { JSX } from 'preact'
import { post } from '../api.ts'
import { announce } from '../widgets/announcer.tsx'
import { Cancel, Dialog } from '../widgets/dialog.tsx'
import { Field, Form } from '../widgets/form.tsx'

interface Props {
  id: string
  onClose: () => void
  onMade: () => Promise<void>
}

/** The form for the secret of a service's second factor. */
export function NewEntryDialog({ id, onClose, onMade }: Props): JSX.Element {
  return (
    <Dialog title="New one-time password" onClose={onClose}>
      <Form
        submit="Set up"
        label="New one-time password"
        also={<Cancel onClose={onClose} />}
        send={async (typed) => {
          const given = Object.fromEntries(Object.entries(typed).filter(([, value]) => value !== ''))
          await post(`/v1/identities/${id}/totp`, given)
          await onMade()
          announce('The one-time password was created.')
          onClose()
        }}
      >
        <Field
          name="secret"
          label="Secret"
          first
          autoComplete="off"
          spellcheck={false}
          hint="As the service shows it, such as JBSW Y3DP EHPK 3PXP. It is stored encrypted and never shown again."
        />
        <Field
          name="uri"
          label="Or the link of its QR code"
          autoComplete="off"
          spellcheck={false}
          hint="otpauth://totp/…, instead of the secret."
        />
        <Field name="service_name" label="Service" autoComplete="off" hint="Empty: the name in the link." />
        <Field name="account_name" label="Account at the service" autoComplete="off" />
      </Form>
    </Dialog>
  )
}
