import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { QueueEntry, QueueSummary } from '../../../ops/status/model.ts'
import { post, remove } from '../api.ts'
import { useList, useResource } from '../loaded.ts'
import { Action } from '../widgets/action.tsx'
import { announce } from '../widgets/announcer.tsx'
import { Confirm } from '../widgets/dialog.tsx'
import { counted, Mark, span, Time } from '../widgets/format.tsx'
import { Rows, WhenLoaded } from '../widgets/listing.tsx'

const states = { open: 'waiting or running', failed: 'failed', done: 'done', all: 'all' }

/** The queue: its length and age, and each delivery with its last answer. */
export function QueueList(): JSX.Element {
  const [state, setState] = useState('open')
  const [dropping, setDropping] = useState<QueueEntry>()
  const summary = useResource<QueueSummary>('/v1/queue/summary', () => false, true)
  const list = useList<QueueEntry>('/v1/queue', { state, limit: 20 }, () => false, true)
  const reload = async (): Promise<void> => {
    await Promise.all([summary.reload(), list.reload()])
  }
  const retry = async ({ id }: QueueEntry): Promise<void> => {
    await post(`/v1/queue/${id}/retry`)
    await reload()
    announce('Retrying now.')
  }
  return (
    <section aria-labelledby="queue">
      <div class="head spaced">
        <h2 id="queue">Queue</h2>
        <label class="inline">
          Show{' '}
          <select value={state} onChange={({ currentTarget }) => setState(currentTarget.value)}>
            {Object.entries(states).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
      </div>
      <WhenLoaded of={summary}>{(value) => <p>{wordsOf(value)}</p>}</WhenLoaded>
      <Rows list={list} empty="Nothing.">
        {(entry) => <EntryLine entry={entry} onRetry={() => retry(entry)} onDrop={() => setDropping(entry)} />}
      </Rows>
      {dropping && (
        <Confirm
          title="Drop this delivery?"
          action="Drop"
          run={async () => {
            await remove(`/v1/queue/${dropping.id}`)
            await reload()
            announce('The delivery was dropped.')
          }}
          onClose={() => setDropping(undefined)}
        >
          <p>
            {dropping.kind} to {dropping.destination} will not be retried. A message is marked as failed for that recipient.
          </p>
        </Confirm>
      )}
    </section>
  )
}

function wordsOf({ kinds }: QueueSummary): string {
  const open = kinds.filter(({ waiting, running }) => waiting + running > 0)
  if (open.length === 0) return 'The queue is empty.'
  return open
    .map(({ kind, waiting, running, age }) => `${kind}: ${waiting} waiting, ${running} running, oldest ${span(age)}`)
    .join('; ')
}

const tones = { waiting: undefined, running: undefined, done: 'good', failed: 'bad' } as const

interface EntryProps {
  entry: QueueEntry
  onRetry: () => Promise<void>
  onDrop: () => void
}

function EntryLine({ entry, onRetry, onDrop }: EntryProps): JSX.Element {
  const { id, kind, destination, about, state, attempts, last_answer, due_at, age } = entry
  return (
    <li>
      <span class="grow">
        <strong>{kind}</strong> to {about['to'] ?? about['host'] ?? destination}
        <br />
        <span class="faint">
          {counted(attempts, 'attempt')}, {span(age)}
          {last_answer !== null && `: ${last_answer}`}
        </span>
      </span>
      {state === 'waiting' && due_at !== null && (
        <span class="faint">
          due <Time at={due_at} />
        </span>
      )}
      <Mark tone={tones[state]}>{state}</Mark>
      {(state === 'waiting' || state === 'failed') && (
        <Action run={onRetry} label={`Retry now ${id}`}>
          Retry now
        </Action>
      )}
      {state === 'waiting' && (
        <button type="button" aria-label={`Drop ${id}`} onClick={onDrop}>
          Drop
        </button>
      )}
    </li>
  )
}
