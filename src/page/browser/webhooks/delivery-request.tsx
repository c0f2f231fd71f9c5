import type { JSX } from 'preact'
import type { WebhookDeliveryWithRequest } from '../../../webhooks/model.ts'
import { useThing } from '../loaded.ts'
import { CopyButton } from '../widgets/copy-button.tsx'
import { Awaited } from '../widgets/listing.tsx'

/** What is posted for a delivery. */
export function DeliveryRequest({ path }: { path: string }): JSX.Element {
  const delivery = useThing<WebhookDeliveryWithRequest>(path)
  return (
    <Awaited of={delivery}>
      {({ request: { url, body } }) => (
        <>
          <p class="breaks">
            <span class="mono">POST {url}</span> {body !== null && <CopyButton text={body} what="the body" />}
          </p>
          {body === null ? (
            <p>The event is no longer in the log.</p>
          ) : (
            <pre class="boxed" role="region" tabIndex={0} aria-label="Body">
              {laidOut(body)}
            </pre>
          )}
        </>
      )}
    </Awaited>
  )
}

function laidOut(text: string): string {
  return JSON.stringify(JSON.parse(text), null, 2)
}
