import type { JSX } from 'preact'
import type { EmailRow } from '../../../mail/model.ts'
import { eventsOf, useList } from '../loaded.ts'
import { Link } from '../router.tsx'
import { Rows } from '../widgets/listing.tsx'
import { Mark, Time } from '../widgets/format.tsx'
import { TrashActions } from '../widgets/action.tsx'
import { StatusMark } from './deliveries.tsx'

interface Props {
  id: string
  folder: Mailbox
  query: string
  current: string | undefined
}

export function EmailList({ id, folder, query, current }: Props): JSX.Element {
  const path = `/v1/identities/${id}/emails${query === '' ? '' : '/search'}`
  const list = useList<EmailRow>(
    path,
    query === '' ? folders[folder].query : { query, direction: 'all' },
    eventsOf('email.', id),
    true,
  )
  const pathOf = (email: EmailRow): string => `/v1/identities/${id}/emails/${email.id}`
  return (
    <Rows class="rows mails" list={list} empty={query === '' ? 'No e-mail.' : 'No results.'}>
      {(email) => (
        <li class={email.read ? '' : 'unread'}>
          {email.deleted_at === undefined ? (
            <Link
              href={`/identities/${id}/inbox/${email.thread_id}`}
              class="mail-link"
              aria-current={email.thread_id === current ? 'true' : undefined}
            >
              <EmailLine email={email} />
            </Link>
          ) : (
            <div class="mail-link">
              <EmailLine email={email} />
              <TrashActions path={pathOf(email)} />
            </div>
          )}
        </li>
      )}
    </Rows>
  )
}

function EmailLine({ email }: { email: EmailRow }): JSX.Element {
  const { direction, from, from_name, to, subject, snippet, status, spam, received_at } = email
  return (
    <>
      <span class="mail-head">
        <span class="mail-who">{direction === 'outbound' ? `To ${to}` : from_name || from}</span>
        <Time at={received_at} />
      </span>
      <span class="mail-subject">
        {subject || 'Without a subject'} {direction === 'outbound' && <StatusMark status={status} />}{' '}
        {spam && <Mark tone="warn">spam</Mark>}
      </span>
      <span class="mail-snippet">{snippet}</span>
    </>
  )
}

export const folders = {
  conversations: { label: 'Conversations', query: {} },
  received: { label: 'Received', query: {} },
  sent: { label: 'Sent', query: { direction: 'outbound' } },
  unread: { label: 'Unread', query: { unread: true } },
  spam: { label: 'Spam', query: { spam: true } },
  trash: { label: 'Trash', query: { trash: true } },
} as const

export type Mailbox = keyof typeof folders
