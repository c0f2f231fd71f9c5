import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Sms, SmsMediaWithUrl, SmsStatus } from '../../../sms/model.ts'
import { ApiError, get, patch, post } from '../api.ts'
import type { LiveEvent } from '../live.ts'
import { useList } from '../loaded.ts'
import { Link } from '../router.tsx'
import { announce } from '../widgets/announcer.tsx'
import { Form, TextArea } from '../widgets/form.tsx'
import { WhenLoaded } from '../widgets/listing.tsx'
import { woven } from './texts.ts'
import { Codes } from '../inbox/codes-and-links.tsx'
import { Action } from '../widgets/action.tsx'
import { bytes, Mark, Time } from '../widgets/format.tsx'

/** The conversation with one number, oldest first, with a reply form. */
export function Texting({ id, peer }: { id: string; peer: string }): JSX.Element {
  const path = `/v1/identities/${id}/sms`
  const concerns = ({ type, identity_id }: LiveEvent): boolean => identity_id === id && type.startsWith('sms.')
  const came = useList<Sms>(path, { direction: 'inbound', from: peer }, concerns, true)
  const went = useList<Sms>(path, { direction: 'outbound', to: peer }, concerns, true)
  // the filter matches parts of numbers as well
  const theirs = (came.value ?? []).filter(({ from }) => from === peer)
  const ours = (went.value ?? []).filter(({ to }) => to === peer)
  const messages = woven({ rows: theirs, hasMore: came.hasMore }, { rows: ours, hasMore: went.hasMore })
  useReadMarks(id, theirs)
  const more = async (): Promise<void> => {
    await Promise.all([came, went].filter(({ hasMore }) => hasMore).map((list) => list.more()))
  }
  return (
    <>
      <p class="inbox-back">
        <Link href={`/identities/${id}/sms`}>All numbers</Link>
      </p>
      <h2 class="subject">{peer}</h2>
      {(came.hasMore || went.hasMore) && (
        <p class="more">
          <button type="button" onClick={() => void more()}>
            Earlier
          </button>
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
          send={async ({ body }) => {
            await post(path, { to: peer, body })
            await went.reload()
            announce('The text message was queued.')
          }}
        >
          <TextArea name="body" label="Text message" rows={2} />
        </Form>
      ) : (
        <p class="hint">A sender with an alphanumeric name cannot be answered.</p>
      )}
    </>
  )
}

/** Marks displayed messages as read. */
function useReadMarks(id: string, messages: readonly Sms[]): void {
  const seen = useRef(new Set<string>())
  useEffect(() => {
    const fresh = messages.filter((message) => !message.read && !seen.current.has(message.id))
    for (const message of fresh) seen.current.add(message.id)
    const mark = async (message: Sms): Promise<void> => {
      try {
        await patch(`/v1/identities/${id}/sms/${message.id}`, { read: true })
      } catch (error) {
        // shown as read all the same, and marked at the next display
        if (!(error instanceof ApiError)) throw error
      }
    }
    for (const message of fresh) void mark(message)
  }, [id, messages])
}

const tones: Partial<Record<SmsStatus, 'good' | 'warn' | 'bad'>> = {
  sent: 'good',
  delivered: 'good',
  failed: 'bad',
  unknown: 'warn',
}

/** One text message. */
export function Text({ message }: { message: Sms }): JSX.Element {
  const { id, identity_id, direction, status, body, codes, media, error, created_at, segments } = message
  const ours = direction === 'outbound'
  const download = async (index: number): Promise<void> => {
    const { url } = await get<SmsMediaWithUrl>(`/v1/identities/${identity_id}/sms/${id}/media/${index}`)
    // the page may use another host name than the configured one
    const { pathname, search } = new URL(url)
    location.assign(pathname + search)
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
