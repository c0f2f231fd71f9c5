import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Identity } from '../../../identities/model.ts'
import { post, remove } from '../api.ts'
import { useIdentity } from '../identity-frame.tsx'
import { announce } from '../widgets/announcer.tsx'
import { CopyButton } from '../widgets/copy-button.tsx'
import { Confirm } from '../widgets/dialog.tsx'
import { Field, Form } from '../widgets/form.tsx'

/** The number of an identity, or a form to get one. */
export function PhoneNumberLine({ identity: { id, name, phone_number } }: { identity: Identity }): JSX.Element {
  const { reload } = useIdentity()
  const [asking, setAsking] = useState(false)
  if (phone_number === undefined) {
    return (
      <section class="sheet" aria-labelledby="number">
        <h2 id="number">{name} has no phone number</h2>
        <Form
          submit="Get a number"
          label="Get a number"
          send={async ({ country }) => {
            await post(`/v1/identities/${id}/phone`, country ? { country } : {})
            await reload()
            announce(`${name} has a phone number.`)
          }}
        >
          <Field
            name="country"
            label="Country"
            autoComplete="off"
            maxLength={2}
            hint="Two letters, such as US. Empty: the country from the settings."
          />
        </Form>
      </section>
    )
  }
  return (
    <p class="actions middle">
      <span class="mono">{phone_number}</span> <CopyButton text={phone_number} what="the number" />
      <button type="button" class="plain" onClick={() => setAsking(true)}>
        Release
      </button>
      {asking && (
        <Confirm
          title={`Release ${phone_number}?`}
          action="Release it"
          run={async () => {
            await remove(`/v1/identities/${id}/phone`)
            await reload()
            announce('The number was released.')
          }}
          onClose={() => setAsking(false)}
        >
          <p>It returns to the provider, which may assign it to another customer. Stored messages are kept.</p>
        </Confirm>
      )}
    </p>
  )
}
