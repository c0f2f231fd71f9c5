import type { JSX } from 'preact'
import type { Sms, SmsMediaWithUrl, SmsStatus } from '../../../sms/model.ts'
import { get } from '../api.ts'
import { Action } from '../widgets/action.tsx'
import { CopyButton } from '../widgets/copy-button.tsx'
import { bytes, Time } from '../widgets/format.tsx'
import { Mark } from '../widgets/mark.tsx'

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
      {codes.length > 0 && (
        <ul class="codes" aria-label="Codes">
          {codes.map((code) => (
            <li key={code}>
              <strong class="mono">{code}</strong> <CopyButton text={code} what={`the code ${code}`} />
            </li>
          ))}
        </ul>
      )}
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
