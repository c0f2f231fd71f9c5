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
import { TrashList } from '../sms/trash.tsx'
import { announce } from '../widgets/announcer.tsx'
import { ConfirmButton, DialogButton, FormDialog } from '../widgets/dialog.tsx'
import { Field, filledIn, Form, TextArea, type Typed } from '../widgets/form.tsx'
import { eventsOf, useList } from '../loaded.ts'
import { counted, Time } from '../widgets/format.tsx'
import { Listing, Section } from '../widgets/listing.tsx'
import { exchangesOf } from '../sms/texts.ts'
import { CopyButton } from '../widgets/copy-button.tsx'

export function View({ params: { id = '', peer } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{(identity) => <Texts key={id} identity={identity} peer={peer} />}</IdentityFrame>
}

function Texts({ identity, peer }: { identity: Identity; peer: string | undefined }): JSX.Element {
  const { id, phone_number } = identity
  const [trash, setTrash] = useState(false)
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
          <div class="inbox-tools">
            {phone_number !== undefined && (
              <DialogButton class="primary" dialog={(close) => <NewTextDialog id={id} onClose={close} />}>
                Write
              </DialogButton>
            )}
            <label class="unseen" for="folder">
              Show
            </label>
            <select
              id="folder"
              value={trash ? 'trash' : 'conversations'}
              onChange={({ currentTarget }) => setTrash(currentTarget.value === 'trash')}
            >
              <option value="conversations">Conversations</option>
              <option value="trash">Trash</option>
            </select>
          </div>
          {trash ? <TrashList id={id} /> : <ExchangeList id={id} current={peer} />}
        </section>
        <section class="inbox-one" aria-label="Conversation">
          {peer === undefined ? <p class="empty">Choose a number.</p> : <Texting key={peer} id={id} peer={peer} />}
        </section>
      </div>
    </>
  )
}

function NewTextDialog({ id, onClose }: { id: string; onClose: () => void }): JSX.Element {
  const send = async (typed: Typed): Promise<void> => {
    const { to } = await post<Sms>(`/v1/identities/${id}/sms`, typed)
    go(`/identities/${id}/sms/${encodeURIComponent(to)}`)
  }
  return (
    <FormDialog title="New text message" submit="Send" done="The text message was queued." send={send} onClose={onClose}>
      <Field name="to" label="To" type="tel" first autoComplete="off" hint="With the country code, such as +15550100123." />
      <TextArea name="body" label="Text message" rows={3} />
    </FormDialog>
  )
}

/** Notifications are short. */
function shortened(text: string): string {
  const characters = Array.from(text)
  return characters.length <= 100 ? text : `${characters.slice(0, 99).join('')}…`
}

function ExchangeList({ id, current }: { id: string; current: string | undefined }): JSX.Element {
  const list = useList<Sms>(`/v1/identities/${id}/sms`, { limit: 100 }, eventsOf('sms.', id), true)
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

function PhoneNumberLine({ identity: { id, name, phone_number } }: { identity: Identity }): JSX.Element {
  const { reload } = useIdentity()
  if (phone_number === undefined) {
    return (
      <Section sheet id="number" title={`${name} has no phone number`}>
        <Form
          submit="Get a number"
          label="Get a number"
          done={`${name} has a phone number.`}
          send={(typed) => post(`/v1/identities/${id}/phone`, filledIn(typed)).then(reload)}
        >
          <Field
            name="country"
            label="Country"
            autoComplete="off"
            maxLength={2}
            hint="Two letters, such as US. Empty: the country from the settings."
          />
        </Form>
      </Section>
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
        done="The number was released."
        run={() => remove(`/v1/identities/${id}/phone`).then(reload)}
      >
        <p>It returns to the provider, which may assign it to another customer. Stored messages are kept.</p>
      </ConfirmButton>
    </p>
  )
}
