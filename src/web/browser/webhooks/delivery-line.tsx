import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { WebhookDelivery, WebhookDeliveryWithRequest } from '../../../webhooks/model.ts'
import { post } from '../api.ts'
import { Action } from '../widgets/action.tsx'
import { counted, Mark, moment, Time } from '../widgets/format.tsx'
import { useResource } from '../loaded.ts'
import { CopyButton } from '../widgets/copy-button.tsx'
import { WhenLoaded } from '../widgets/listing.tsx'

const tones = { delivered: 'good', pending: undefined, failed: 'bad', interrupted: 'warn' } as const

interface Props {
  path: string
  delivery: WebhookDelivery
  onChange: () => Promise<void>
}

export function DeliveryLine({ path, delivery, onChange }: Props): JSX.Element {
  const [open, setOpen] = useState(false)
  const { id, event, event_id, status, attempts, created_at, next_attempt_at } = delivery
  const again = (): Promise<void> => post(`${path}/deliveries/${id}/redeliver`).then(onChange)
  return (
    <li class="delivery">
      <span class="grow">
        <button type="button" class="plain fold" aria-expanded={open} onClick={() => setOpen(!open)}>
          {event}
        </button>
        <br />
        <span class="faint mono">{event_id}</span>
      </span>
      <span class="faint">
        {counted(attempts.length, 'attempt')}, <Time at={created_at} />
      </span>
      <Mark tone={tones[status]}>{status}</Mark>
      <Action run={again} done="Redelivery was queued." label={`Redeliver ${event} ${event_id}`}>
        Redeliver
      </Action>
      {open && (
        <div class="delivery-more">
          <h3>Request</h3>
          <DeliveryRequest path={`${path}/deliveries/${id}`} />
          <h3>Attempts</h3>
          <ol class="attempts">
            {attempts.map((attempt) => (
              <li key={attempt.started_at}>
                <Mark tone={tones[attempt.status]}>{attempt.status}</Mark> {moment(attempt.started_at)}
                {attempt.ended_at !== null && ` · ${tookOf(attempt.started_at, attempt.ended_at)}`}
                {attempt.error !== null && <p class="refusal">{attempt.error}</p>}
                {attempt.response_status !== null && <p>Response: {attempt.response_status}</p>}
                {attempt.response_body && (
                  <pre class="boxed" role="region" tabIndex={0} aria-label="Response">
                    {attempt.response_body}
                  </pre>
                )}
              </li>
            ))}
          </ol>
          {next_attempt_at !== null && <p>Next attempt at {moment(next_attempt_at)}.</p>}
        </div>
      )}
    </li>
  )
}

function tookOf(from: string, to: string): string {
  return `${(Date.parse(to) - Date.parse(from)).toLocaleString('en')} ms`
}

function DeliveryRequest({ path }: { path: string }): JSX.Element {
  const delivery = useResource<WebhookDeliveryWithRequest>(path)
  return (
    <WhenLoaded of={delivery}>
      {({ request: { url, body } }) => (
        <>
          <p class="breaks">
            <span class="mono">POST {url}</span> {body !== null && <CopyButton text={body} what="the body" />}
          </p>
          {body === null ? (
            <p>The event is no longer in the log.</p>
          ) : (
            <pre class="boxed" role="region" tabIndex={0} aria-label="Body">
              {JSON.stringify(JSON.parse(body), null, 2)}
            </pre>
          )}
        </>
      )}
    </WhenLoaded>
  )
}
