import type { JSX } from 'preact'
import type { Sms } from '../../../sms/model.ts'
import { useList } from '../loaded.ts'
import { Link } from '../router.tsx'
import { counted, Time } from '../widgets/format.tsx'
import { Listing } from '../widgets/listing.tsx'
import { exchangesOf } from './texts.ts'

/** The conversations by phone number, the latest first. */
export function ExchangeList({ id, current }: { id: string; current: string | undefined }): JSX.Element {
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
