import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import type { WebhookDelivery } from '../../../webhooks/model.ts'
import { post } from '../api.ts'
import { useList } from '../loaded.ts'
import { Action } from '../widgets/action.tsx'
import { announce } from '../widgets/announcer.tsx'
import { Listing } from '../widgets/listing.tsx'
import { DeliveryLine } from './delivery-line.tsx'

/** The polling interval of running deliveries in milliseconds. */
const pace = 1500

/** The deliveries of a webhook, newest first. */
export function DeliveryList({ path }: { path: string }): JSX.Element {
  // deliveries emit no events: recent ones are polled until they have ended
  const list = useList<WebhookDelivery>(`${path}/deliveries`, {}, () => true, true)
  const underWay = (list.value ?? []).some(isUnderWay)
  useEffect(() => {
    const timer = underWay ? setInterval(() => void list.reload(), pace) : undefined
    return () => clearInterval(timer)
  }, [underWay, path])
  const test = async (): Promise<void> => {
    await post(`${path}/test`)
    await list.reload()
    announce('A test event was queued.')
  }
  return (
    <section aria-labelledby="deliveries">
      <div class="head spaced">
        <h2 id="deliveries">Deliveries</h2>
        <span class="actions">
          <Action run={test}>Send a test</Action>
        </span>
      </div>
      <Listing list={list} empty="Nothing was sent to it yet. A test shows whether it is reachable.">
        {(rows) => (
          <ul class="rows">
            {rows.map((delivery) => (
              <DeliveryLine key={delivery.id} path={path} delivery={delivery} onChange={list.reload} />
            ))}
          </ul>
        )}
      </Listing>
    </section>
  )
}

/** True if it ends, or fails, within seconds: a failed one may wait for hours. */
function isUnderWay({ status, attempts }: WebhookDelivery): boolean {
  return status === 'pending' && attempts.every((attempt) => attempt.status === 'pending')
}
