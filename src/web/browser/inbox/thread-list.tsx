import type { JSX } from 'preact'
import type { Thread } from '../../../mail/model.ts'
import { useList } from '../loaded.ts'
import { Link } from '../router.tsx'
import { Listing } from '../widgets/listing.tsx'
import { Mark } from '../widgets/mark.tsx'
import { Time } from '../widgets/format.tsx'

/** The conversations of an identity, newest first, updated live. */
export function ThreadList({ id, own, current }: { id: string; own: string; current: string | undefined }): JSX.Element {
  const list = useList<Thread>(
    `/v1/identities/${id}/threads`,
    {},
    (event) => event.identity_id === id && event.type.startsWith('email.'),
    true,
  )
  return (
    <Listing list={list} empty="No mail yet. What comes appears here by itself.">
      {(rows) => (
        <ul class="rows mails">
          {rows.map((thread) => (
            <ThreadLine key={thread.id} thread={thread} own={own} current={thread.id === current} />
          ))}
        </ul>
      )}
    </Listing>
  )
}

function ThreadLine({ thread, own, current }: { thread: Thread; own: string; current: boolean }): JSX.Element {
  const { id, identity_id, subject, participants, message_count, unread_count, last_message_at, snippet } = thread
  return (
    <li class={unread_count > 0 ? 'unread' : ''}>
      <Link href={`/identities/${identity_id}/inbox/${id}`} class="mail-link" aria-current={current ? 'true' : undefined}>
        <span class="mail-head">
          <span class="mail-who">{participants.filter((one) => one !== own).join(', ') || own}</span>
          <Time at={last_message_at} />
        </span>
        <span class="mail-subject">
          {subject || 'Without a subject'} {message_count > 1 && <span class="faint">({message_count})</span>}{' '}
          {unread_count > 0 && <Mark>{unread_count} new</Mark>}
        </span>
        <span class="mail-snippet">{snippet}</span>
      </Link>
    </li>
  )
}
