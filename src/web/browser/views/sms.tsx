import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Identity } from '../../../identities/model.ts'
import type { Sms } from '../../../sms/model.ts'
import { post } from '../api.ts'
import { IdentityFrame } from '../identity-frame.tsx'
import { listen } from '../live.ts'
import { go } from '../router.tsx'
import type { ViewProps } from '../views.ts'
import { ExchangeList } from '../sms/exchange-list.tsx'
import { PhoneNumberLine } from '../sms/number.tsx'
import { Texting } from '../sms/texting.tsx'
import { announce } from '../widgets/announcer.tsx'
import { Cancel, Dialog } from '../widgets/dialog.tsx'
import { Field, Form, TextArea } from '../widgets/form.tsx'

/** The text messages of one identity, by phone number. */
export function View({ params: { id = '', peer } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{(identity) => <Texts key={id} identity={identity} peer={peer} />}</IdentityFrame>
}

function Texts({ identity, peer }: { identity: Identity; peer: string | undefined }): JSX.Element {
  const { id, phone_number } = identity
  const [writing, setWriting] = useState(false)
  const close = (): void => setWriting(false)
  useEffect(
    () =>
      listen((event) => {
        if (event?.type !== 'sms.received' || event.identity_id !== id) return
        const { from, body } = event.data as unknown as Sms
        announce(`New text message from ${from}: ${shortened(body)}`)
      }),
    [id],
  )
  return (
    <>
      <PhoneNumberLine identity={identity} />
      <div class={peer === undefined ? 'inbox below' : 'inbox below reading'}>
        <section class="inbox-list" aria-label="Text messages">
          {phone_number !== undefined && (
            <p>
              <button type="button" class="primary" onClick={() => setWriting(true)}>
                Write
              </button>
            </p>
          )}
          <ExchangeList id={id} current={peer} />
        </section>
        <section class="inbox-one" aria-label="Conversation">
          {peer === undefined ? <p class="empty">Choose a number.</p> : <Texting key={peer} id={id} peer={peer} />}
        </section>
      </div>
      {writing && (
        <Dialog title="New text message" onClose={close}>
          <Form
            submit="Send"
            label="New text message"
            also={<Cancel onClose={close} />}
            send={async ({ to, body }) => {
              const sent = await post<Sms>(`/v1/identities/${id}/sms`, { to, body })
              close()
              announce('The text message was queued.')
              go(`/identities/${id}/sms/${encodeURIComponent(sent.to)}`)
            }}
          >
            <Field name="to" label="To" type="tel" first autoComplete="off" hint="With the country code, such as +15550100123." />
            <TextArea name="body" label="Text message" rows={3} />
          </Form>
        </Dialog>
      )}
    </>
  )
}

/** Notifications are short. */
function shortened(text: string): string {
  const characters = Array.from(text)
  return characters.length <= 100 ? text : `${characters.slice(0, 99).join('')}…`
}
