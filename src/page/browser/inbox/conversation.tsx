import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Email, ThreadWithMessages } from '../../../mail/model.ts'
import { ApiError, patch } from '../api.ts'
import { reread } from '../live.ts'
import { useThing } from '../loaded.ts'
import { Link } from '../router.tsx'
import { Awaited } from '../widgets/listing.tsx'
import { Message } from './message.tsx'

const none: Email[] = []

/** One conversation, oldest message first; the last is open, and so is what was not read. */
export function Conversation({ id, threadId }: { id: string; threadId: string }): JSX.Element {
  const path = `/v1/identities/${id}/threads/${encodeURIComponent(threadId)}`
  const thread = useThing<ThreadWithMessages>(
    path,
    (event) => event.identity_id === id && event.type.startsWith('email.') && event.data['thread_id'] === threadId,
    true,
  )
  const heading = useRef<HTMLHeadingElement>(null)
  const there = thread.value !== undefined
  useEffect(() => heading.current?.focus(), [there])
  useReadMarks(id, thread.value?.messages ?? none)
  return (
    <>
      <p class="inbox-back">
        <Link href={`/identities/${id}/inbox`}>All conversations</Link>
      </p>
      <Awaited of={thread}>
        {({ subject, messages }) => (
          <>
            <h2 ref={heading} tabIndex={-1} class="subject">
              {subject || 'Without a subject'}
            </h2>
            {messages.map((email, index) => (
              <Message key={email.id} email={email} last={index === messages.length - 1} />
            ))}
          </>
        )}
      </Awaited>
    </>
  )
}

/** Whoever looks at a message has read it; one that is marked unread by hand stays so while it is looked at. */
function useReadMarks(id: string, messages: Email[]): void {
  const seen = useRef(new Set<string>())
  useEffect(() => {
    const fresh = messages.filter((email) => !email.read && email.direction === 'inbound' && !seen.current.has(email.id))
    if (fresh.length === 0) return
    for (const email of fresh) seen.current.add(email.id)
    const mark = async (): Promise<void> => {
      try {
        await Promise.all(fresh.map((email) => patch(`/v1/identities/${id}/emails/${email.id}`, { read: true })))
        reread()
      } catch (error) {
        // it is read all the same, and marked when somebody looks again
        if (!(error instanceof ApiError)) throw error
      }
    }
    void mark()
  }, [id, messages])
}
