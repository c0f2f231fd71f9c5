import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Identity } from '../../../identities/model.ts'
import type { Sms } from '../../../sms/model.ts'
import { post, remove } from '../api.ts'
import { IdentityFrame, useIdentity } from '../identity-frame.tsx'
import { listen } from '../live.ts'
import { go, Link } from '../router.tsx'
import type { ViewProps } from '../views.ts'
import { Texting } from '../sms/texting.tsx'
import { announce } from '../widgets/announcer.tsx'
import { ConfirmButton, FormDialog } from '../widgets/dialog.tsx'
import { Field, Form, TextArea } from '../widgets/form.tsx'
import { useList } from '../loaded.ts'
import { counted, Time } from '../widgets/format.tsx'
import { Listing } from '../widgets/listing.tsx'
import { exchangesOf } from '../sms/texts.ts'
import { CopyButton } from '../widgets/copy-button.tsx'

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
        <FormDialog
          title="New text message"
          submit="Send"
          send={async ({ to, body }) => {
            const sent = await post<Sms>(`/v1/identities/${id}/sms`, { to, body })
            close()
            announce('The text message was queued.')
            go(`/identities/${id}/sms/${encodeURIComponent(sent.to)}`)
          }}
          onClose={close}
        >
          <Field name="to" label="To" type="tel" first autoComplete="off" hint="With the country code, such as +15550100123." />
          <TextArea name="body" label="Text message" rows={3} />
        </FormDialog>
      )}
    </>
  )
}

/** Notifications are short. */
function shortened(text: string): string {
  const characters = Array.from(text)
  return characters.length <= 100 ? text : `${characters.slice(0, 99).join('')}…`
}

/** The conversations by phone number, the latest first. */
function ExchangeList({ id, current }: { id: string; current: string | undefined }): JSX.Element {
  const list = useList<Sms>(
    `/v1/identities/${id}/sms`,
    { limit: 100 },
    ({ type, identity_id }) => identity_id === id && type.startsWith('sms.'),
    true,
  )
  return (
    <Listing list={list} empty="No text message yet.">
      {(messages) => (
        <ul class="rows mails">
          {exchangesOf(messages).map(({ peer, last, unread }) => (
            <li key={peer} class={unread > 0 ? 'unread' : ''}>
              <Link
                class="mail-link"
                href={`/identities/${id}/sms/${encodeURIComponent(peer)}`}
                aria-current={peer === current ? 'true' : undefined}
              >
                <span class="mail-head">
                  <span class="mail-who">
                    {peer}
                    {unread > 0 && <span class="unseen"> {counted(unread, 'unread message')}</span>}
                  </span>
                  <Time at={last.created_at} />
                </span>
                <span class="mail-snippet">
                  {last.direction === 'outbound' && 'You: '}
                  {last.body}
                </span>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Listing>
  )
}

/** The number of an identity, or a form to get one. */
function PhoneNumberLine({ identity: { id, name, phone_number } }: { identity: Identity }): JSX.Element {
  const { reload } = useIdentity()
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
      <ConfirmButton
        label="Release"
        kind="plain"
        title={`Release ${phone_number}?`}
        action="Release it"
        run={async () => {
          await remove(`/v1/identities/${id}/phone`)
          await reload()
          announce('The number was released.')
        }}
      >
        <p>It returns to the provider, which may assign it to another customer. Stored messages are kept.</p>
      </ConfirmButton>
    </p>
  )
}
