import type { JSX } from 'preact'
import { post } from '../api.ts'
import { announce } from '../widgets/announcer.tsx'
import { FormDialog } from '../widgets/dialog.tsx'
import { Field } from '../widgets/form.tsx'

interface Props {
  id: string
  onClose: () => void
  onMade: () => Promise<void>
}

/** The form for the secret of a service's second factor. */
export function NewEntryDialog({ id, onClose, onMade }: Props): JSX.Element {
  return (
    <FormDialog
      title="New one-time password"
      submit="Set up"
      send={async (typed) => {
        const given = Object.fromEntries(Object.entries(typed).filter(([, value]) => value !== ''))
        await post(`/v1/identities/${id}/totp`, given)
        await onMade()
        announce('The one-time password is set up.')
        onClose()
      }}
      onClose={onClose}
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
        hint="otpauth://totp/…, in place of the secret."
      />
      <Field name="service_name" label="Service" autoComplete="off" hint="Empty: as the link names it." />
      <Field name="account_name" label="Account there" autoComplete="off" />
    </FormDialog>
  )
}
