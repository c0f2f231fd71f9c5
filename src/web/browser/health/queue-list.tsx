import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { QueueEntry, QueueSummary } from '../../../ops/status/model.ts'
import { post, remove } from '../api.ts'
import { useList, useResource } from '../loaded.ts'
import { Action } from '../widgets/action.tsx'
import { ConfirmButton } from '../widgets/dialog.tsx'
import { counted, Mark, span, Time } from '../widgets/format.tsx'
import { Rows, Section, WhenLoaded } from '../widgets/listing.tsx'

const states = { open: 'waiting or running', failed: 'failed', done: 'done', all: 'all' }

export function QueueList(): JSX.Element {
  const [state, setState] = useState('open')
  const summary = useResource<QueueSummary>('/v1/queue/summary', () => false, true)
  const list = useList<QueueEntry>('/v1/queue', { state, limit: 20 }, () => false, true)
  const reload = (): Promise<unknown> => Promise.all([summary.reload(), list.reload()])
  return (
    <Section
      id="queue"
      title="Queue"
      tools={
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
      }
    >
      <WhenLoaded of={summary}>{(value) => <p>{wordsOf(value)}</p>}</WhenLoaded>
      <Rows list={list} empty="Nothing.">
        {(entry) => <EntryLine entry={entry} onChange={reload} />}
      </Rows>
    </Section>
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

function EntryLine({ entry, onChange }: { entry: QueueEntry; onChange: () => Promise<unknown> }): JSX.Element {
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
        <Action
          run={() => post(`/v1/queue/${id}/retry`, {}, { idempotent: true }).then(onChange)}
          done="Retrying now."
          label={`Retry now ${id}`}
        >
          Retry now
        </Action>
      )}
      {state === 'waiting' && (
        <ConfirmButton
          label="Drop"
          name={`Drop ${id}`}
          title="Drop this delivery?"
          action="Drop"
          done="The delivery was dropped."
          run={() => remove(`/v1/queue/${id}`).then(onChange)}
        >
          <p>
            {kind} to {destination} will not be retried. A message is marked as failed for that recipient.
          </p>
        </ConfirmButton>
      )}
    </li>
  )
}
