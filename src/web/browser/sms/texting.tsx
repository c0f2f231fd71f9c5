import type { JSX } from 'preact'
import type { Sms, SmsMediaWithUrl, SmsStatus } from '../../../sms/model.ts'
import { get, pathOf, post, remove } from '../api.ts'
import { reread } from '../live.ts'
import { eventsOf, useList, useReadMarks } from '../loaded.ts'
import { Link } from '../router.tsx'
import { Form, TextArea } from '../widgets/form.tsx'
import { WhenLoaded } from '../widgets/listing.tsx'
import { woven } from './texts.ts'
import { Codes } from '../inbox/codes-and-links.tsx'
import { Action } from '../widgets/action.tsx'
import { ConfirmButton } from '../widgets/dialog.tsx'
import { bytes, Mark, moment, Time, type Tone } from '../widgets/format.tsx'

export function Texting({ id, peer }: { id: string; peer: string }): JSX.Element {
  const path = `/v1/identities/${id}/sms`
  const concerns = eventsOf('sms.', id)
  const came = useList<Sms>(path, { direction: 'inbound', from: peer }, concerns, true)
  const went = useList<Sms>(path, { direction: 'outbound', to: peer }, concerns, true)
  // the filter matches parts of numbers as well
  const theirs = (came.value ?? []).filter(({ from }) => from === peer)
  const ours = (went.value ?? []).filter(({ to }) => to === peer)
  const messages = woven({ rows: theirs, hasMore: came.hasMore }, { rows: ours, hasMore: went.hasMore })
  useReadMarks(path, theirs)
  return (
    <>
      <p class="inbox-back">
        <Link href={`/identities/${id}/sms`}>All numbers</Link>
      </p>
      <h2 class="subject">{peer}</h2>
      {(came.hasMore || went.hasMore) && (
        <p class="more">
          <Action run={() => Promise.all([came, went].filter(({ hasMore }) => hasMore).map((list) => list.more()))}>
            Earlier
          </Action>
        </p>
      )}
      <WhenLoaded of={came}>
        {() => (
          <WhenLoaded of={went}>
            {() => (
              <ol class="texts" aria-label={`With ${peer}`}>
                {messages.map((message) => (
                  <Text key={message.id} message={message} />
                ))}
              </ol>
            )}
          </WhenLoaded>
        )}
      </WhenLoaded>
      {/^\+\d+$/.test(peer) ? (
        <Form
          submit="Send"
          label={`Write to ${peer}`}
          clears
          done="The text message was queued."
          send={({ body }) => post(path, { to: peer, body }).then(went.reload)}
        >
          <TextArea name="body" label="Text message" rows={2} />
        </Form>
      ) : (
        <p class="hint">A sender with an alphanumeric name cannot be answered.</p>
      )}
    </>
  )
}

const tones: Partial<Record<SmsStatus, Tone>> = {
  sent: 'good',
  delivered: 'good',
  failed: 'bad',
  unknown: 'warn',
}

function Text({ message }: { message: Sms }): JSX.Element {
  const { id, identity_id, direction, status, body, codes, media, error, created_at, segments } = message
  const ours = direction === 'outbound'
  const download = async (index: number): Promise<void> => {
    const { url } = await get<SmsMediaWithUrl>(`/v1/identities/${identity_id}/sms/${id}/media/${index}`)
    location.assign(pathOf(url))
  }
  return (
    <li class={ours ? 'text ours' : 'text'}>
      <p class="text-body">{body}</p>
      <Codes codes={codes} />
      {media.map(({ index, content_type, status: state, size }) => (
        <p key={index}>
          {state === 'kept' ? (
            <Action run={() => download(index)}>
              {content_type} {size !== null && bytes(size)}
            </Action>
          ) : (
            `${content_type}: ${state === 'pending' ? 'being fetched' : 'could not be fetched'}`
          )}
        </p>
      ))}
      <p class="text-foot">
        <span class="unseen">{ours ? 'Sent' : 'Received'} </span>
        <Time at={created_at} />
        {ours && <Mark tone={tones[status]}>{status}</Mark>}
        {ours && segments > 1 && <span>{segments} parts</span>}
        <ConfirmButton
          label="Delete"
          kind="plain"
          name={`Delete the text message of ${moment(created_at)}`}
          title="Delete this text message?"
          action="Delete"
          done="Deleted. It can be restored from the trash."
          run={() => remove(`/v1/identities/${identity_id}/sms/${id}`).then(reread)}
        >
          <p>It goes to the trash, from which it can be restored for a time. If it was not sent yet, it will not be.</p>
        </ConfirmButton>
      </p>
      {error !== null && (
        <p class="refusal">
          {error.message} ({error.code})
        </p>
      )}
      {status === 'unknown' && (
        <p class="hint">The provider’s answer was lost. The message may have been delivered; it is not resent automatically.</p>
      )}
    </li>
  )
}
