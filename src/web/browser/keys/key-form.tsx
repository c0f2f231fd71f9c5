import type { JSX } from 'preact'
import { Choices } from '../widgets/choices.tsx'
import { Cancel, Dialog } from '../widgets/dialog.tsx'
import { Field, Form } from '../widgets/form.tsx'
import { IdentityField } from '../widgets/identity-field.tsx'
import { scopeWords } from './key-line.tsx'

interface Props {
  send: (input: Record<string, unknown>) => Promise<unknown>
  onClose: () => void
}

/** The form of a new key. */
export function NewKeyDialog({ send, onClose }: Props): JSX.Element {
  return (
    <Dialog title="New API key" onClose={onClose} wide>
      <Form
        submit="Create"
        label="New API key"
        also={<Cancel onClose={onClose} />}
        send={({ label, identity_id, rate_limit, expires_at }, files) =>
          send({
            scopes: files.getAll('scopes'),
            ...(label ? { label } : {}),
            ...(identity_id ? { identity_id } : {}),
            ...(rate_limit ? { rate_limit: Number(rate_limit) } : {}),
            ...(expires_at ? { expires_at: new Date(String(expires_at)).toISOString() } : {}),
          })
        }
      >
        <Field name="label" label="Name" first autoComplete="off" hint="A label, such as mail reader." />
        <Choices name="scopes" legend="Scopes" choices={choices} chosen={['identities:read', 'messages:read']} />
        <IdentityField
          label="Of"
          none="every identity"
          hint="A key of one identity has no access to the others; it is revoked with its identity."
        />
        <Field name="expires_at" label="Ends" type="datetime-local" hint="Empty: never." />
        <Field
          name="rate_limit"
          label="Calls a minute"
          inputMode="numeric"
          autoComplete="off"
          hint="Empty: the limit from the settings. 0: no limit."
        />
      </Form>
    </Dialog>
  )
}

const choices = Object.entries(scopeWords).map(([value, hint]) => ({
  value,
  label: <span class="mono">{value}</span>,
  hint,
}))
