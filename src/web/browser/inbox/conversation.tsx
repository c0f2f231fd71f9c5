import type { JSX } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { Email, EmailRow, ThreadWithMessages } from '../../../mail/model.ts'
import { ApiError, get, type Page, withQuery } from '../api.ts'
import { pollInterval, type Loaded, usePages, useReadMarks } from '../loaded.ts'
import { Link } from '../router.tsx'
import { Action } from '../widgets/action.tsx'
import { WhenLoaded } from '../widgets/listing.tsx'
import { Message } from './message.tsx'

const none: Email[] = []

/** The newest messages of a conversation that are polled. */
const maxMessages = 200

/** One conversation, oldest message first; the last and the unread ones are expanded. */
export function Conversation({ id, threadId }: { id: string; threadId: string }): JSX.Element {
  const path = `/v1/identities/${id}`
  const pages = usePages<ThreadWithMessages>(
    `${path}/threads/${encodeURIComponent(threadId)}`,
    {},
    (event) => event.identity_id === id && event.type.startsWith('email.') && event.data['thread_id'] === threadId,
  )
  const thread = { ...pages, value: useMemo(() => pages.value && joined(pages.value), [pages.value]) }
  const heading = useRef<HTMLHeadingElement>(null)
  const there = thread.value !== undefined
  useEffect(() => heading.current?.focus(), [there])
  useReadMarks(`${path}/emails`, thread.value?.messages ?? none)
  useGlances(withQuery(`${path}/emails`, { thread_id: threadId, direction: 'all', limit: maxMessages }), thread)
  return (
    <>
      <p class="inbox-back">
        <Link href={`/identities/${id}/inbox`}>All conversations</Link>
      </p>
      <WhenLoaded of={thread}>
        {({ subject, messages }) => (
          <>
            <h2 ref={heading} tabIndex={-1} class="subject">
              {subject || 'Without a subject'}
            </h2>
            {messages.map((email, index) => (
              <Message key={email.id} email={email} last={index === messages.length - 1} />
            ))}
            {thread.hasMore && (
              <p class="more">
                <Action run={() => thread.more()}>Later</Action>
              </p>
            )}
          </>
        )}
      </WhenLoaded>
    </>
  )
}

/** The pages of a conversation as one. */
function joined(pages: ThreadWithMessages[]): ThreadWithMessages {
  return { ...pages.at(-1)!, messages: pages.flatMap(({ messages }) => messages) }
}

/** Polls for changes made elsewhere that emit no event, without the bodies, which may be large. */
function useGlances(path: string, { value, reload }: Loaded<ThreadWithMessages>): void {
  useEffect(() => {
    const look = async (): Promise<void> => {
      if (!value || document.visibilityState !== 'visible') return
      try {
        const shown = value.messages.filter(({ spam }) => !spam).slice(-maxMessages)
        // a further attempt emits no event, and is in no list
        if (shown.some(({ status }) => status === 'deferred')) return await reload()
        const { data } = await get<Page<EmailRow>>(path)
        // of a part of a conversation, the newest messages are not shown, and those that are shown need not be among the newest
        const changed = value.has_more
          ? marksOf(among(data, shown)) !== marksOf(among(shown, data))
          : marksOf(data) !== marksOf(shown)
        if (changed) await reload()
      } catch (error) {
        // the next poll finds it
        if (!(error instanceof ApiError)) throw error
      }
    }
    const timer = setInterval(() => void look(), pollInterval)
    return () => clearInterval(timer)
  }, [path, value, reload])
}

function among(emails: readonly EmailRow[], others: readonly EmailRow[]): EmailRow[] {
  const ids = new Set(others.map(({ id }) => id))
  return emails.filter(({ id }) => ids.has(id))
}

function marksOf(emails: readonly EmailRow[]): string {
  return emails
    .map(({ id, read, status }) => `${id} ${read} ${status}`)
    .toSorted()
    .join()
}
