import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Email, Thread } from '../../../mail/model.ts'
import { IdentityFrame } from '../identity-frame.tsx'
import { ComposeDialog } from '../inbox/compose.tsx'
import { EmailList, folders, type Mailbox } from '../inbox/email-list.tsx'
import { Conversation } from '../inbox/conversation.tsx'
import { listen } from '../live.ts'
import { go, Link } from '../router.tsx'
import type { ViewProps } from '../views.ts'
import { announce } from '../widgets/announcer.tsx'
import { DialogButton } from '../widgets/dialog.tsx'
import { eventsOf, useList, useSearch } from '../loaded.ts'
import { Rows } from '../widgets/listing.tsx'
import { Mark, Time } from '../widgets/format.tsx'

export function View({ params: { id = '', thread_id } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{({ email }) => <Inbox key={id} id={id} own={email} threadId={thread_id} />}</IdentityFrame>
}

function Inbox({ id, own, threadId }: { id: string; own: string; threadId: string | undefined }): JSX.Element {
  const [folder, setFolder] = useState<Mailbox>('conversations')
  const [query, search] = useSearch()
  useEffect(
    () =>
      listen((event) => {
        if (event?.type !== 'email.received' || event.identity_id !== id) return
        const { from_name, from, subject, spam } = event.data as unknown as Email
        if (!spam) announce(`New mail from ${from_name || from}: ${subject || 'without a subject'}`)
      }),
    [id],
  )
  const threads = query === '' && folder === 'conversations'
  return (
    <div class={threadId === undefined ? 'inbox' : 'inbox reading'}>
      <section class="inbox-list" aria-label="Mail">
        <div class="inbox-tools">
          <DialogButton
            class="primary"
            dialog={(close) => (
              <ComposeDialog id={id} onClose={close} onSent={(sent) => go(`/identities/${id}/inbox/${sent.thread_id}`)} />
            )}
          >
            Write
          </DialogButton>
          <label class="unseen" for="find">
            Search mail
          </label>
          <input
            id="find"
            placeholder="Search mail"
            title={'Words, "phrases", prefix*, -not, from:, subject:, has:attachment'}
            {...search}
          />
          <label class="unseen" for="folder">
            Show
          </label>
          <select id="folder" value={folder} onChange={({ currentTarget }) => setFolder(currentTarget.value as Mailbox)}>
            {Object.entries(folders).map(([name, { label }]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </div>
        {threads ? (
          <ThreadList id={id} own={own} current={threadId} />
        ) : (
          <EmailList id={id} folder={folder} query={query} current={threadId} />
        )}
      </section>
      <section class="inbox-one" aria-label="Conversation">
        {threadId === undefined ? (
          <p class="empty">Choose a conversation.</p>
        ) : (
          <Conversation key={threadId} id={id} threadId={threadId} />
        )}
      </section>
    </div>
  )
}

function ThreadList({ id, own, current }: { id: string; own: string; current: string | undefined }): JSX.Element {
  const list = useList<Thread>(`/v1/identities/${id}/threads`, {}, eventsOf('email.', id), true)
  return (
    <Rows class="rows mails" list={list} empty="No mail yet. New mail appears here automatically.">
      {(thread) => <ThreadLine thread={thread} own={own} current={thread.id === current} />}
    </Rows>
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
