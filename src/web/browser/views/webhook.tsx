import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Webhook, WebhookDelivery } from '../../../webhooks/model.ts'
import { patch, post, remove } from '../api.ts'
import { type Loaded, useList, useResource } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import type { ViewProps } from '../views.ts'
import { WebhookDialog, WebhookState } from '../webhooks/webhook-form.tsx'
import { Action } from '../widgets/action.tsx'
import { announce } from '../widgets/announcer.tsx'
import { ConfirmButton, SecretDialog } from '../widgets/dialog.tsx'
import { moment } from '../widgets/format.tsx'
import { IdentityName } from '../widgets/identity-field.tsx'
import { Fact, Rows, WhenLoaded } from '../widgets/listing.tsx'
import { DeliveryLine } from '../webhooks/delivery-line.tsx'

/** One webhook and its deliveries. */
export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  const path = `/v1/webhooks/${encodeURIComponent(id)}`
  const webhook = useResource<Webhook>(path, ({ type }) => type === 'webhook.disabled', true)
  return (
    <>
      <p>
        <Link href="/webhooks">All webhooks</Link>
      </p>
      <WhenLoaded of={webhook}>
        {(value) => (
          <>
            <div class="head">
              <h1 class="breaks">{value.url}</h1>
              <WebhookState webhook={value} />
            </div>
            <About webhook={value} path={path} loaded={webhook} />
          </>
        )}
      </WhenLoaded>
      <DeliveryList path={path} />
    </>
  )
}

interface Props {
  webhook: Webhook
  path: string
  loaded: Loaded<Webhook>
}

function About({ webhook, path, loaded }: Props): JSX.Element {
  const [changing, setChanging] = useState(false)
  const [secret, setSecret] = useState<string>()
  const close = (): void => setChanging(false)
  const change = async (input: Record<string, unknown>, said: string): Promise<void> => {
    await patch(path, input)
    await loaded.reload()
    close()
    announce(said)
  }
  const { active, events, identity_id, description, failing_since, created_at } = webhook
  return (
    <section class="sheet" aria-labelledby="about">
      <h2 id="about">About</h2>
      <dl class="facts">
        <Fact name="Events">{events.includes('*') ? 'every event' : events.join(', ')}</Fact>
        <Fact name="Of">{identity_id === null ? 'every identity' : <IdentityName id={identity_id} />}</Fact>
        {description !== null && <Fact name="Description">{description}</Fact>}
        <Fact name="Created">{moment(created_at)}</Fact>
        {failing_since !== null && <Fact name="Failing since">{moment(failing_since)}</Fact>}
      </dl>
      <div class="actions below">
        <button type="button" onClick={() => setChanging(true)}>
          Change
        </button>
        <ConfirmButton
          label="New secret"
          title="Rotate the secret?"
          action="Create a new secret"
          run={async () => setSecret((await post<{ secret: string }>(`${path}/secret/rotate`)).secret)}
        >
          <p>For 24 hours deliveries are signed with the current secret as well.</p>
        </ConfirmButton>
        {active ? (
          <ConfirmButton
            label="Disable"
            title="Disable the webhook?"
            action="Disable"
            run={() => change({ active: false }, 'The webhook is disabled.')}
          >
            <p>Nothing is sent to it until it is enabled. Events in the meantime are not delivered later.</p>
          </ConfirmButton>
        ) : (
          <Action run={() => change({ active: true }, 'The webhook is enabled.')}>Enable</Action>
        )}
        <ConfirmButton
          label="Delete"
          kind="danger"
          title="Delete the webhook?"
          action="Delete"
          run={async () => {
            await remove(path)
            announce('The webhook was deleted.')
            go('/webhooks')
          }}
        >
          <p>Nothing more is sent to {webhook.url}; its deliveries and its secret are deleted.</p>
        </ConfirmButton>
      </div>
      {changing && (
        <WebhookDialog
          title="Change the webhook"
          webhook={webhook}
          submit="Change"
          send={(input) => change(input, 'The webhook was changed.')}
          onClose={close}
        />
      )}

      {secret !== undefined && (
        <SecretDialog title="The new secret" secret={secret} what="the secret" onClose={() => setSecret(undefined)} />
      )}
    </section>
  )
}

/** The polling interval of running deliveries in milliseconds. */
const pace = 1500

/** The deliveries of a webhook, newest first. */
function DeliveryList({ path }: { path: string }): JSX.Element {
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
      <Rows list={list} empty="Nothing was sent to it yet. A test shows whether it is reachable.">
        {(delivery) => <DeliveryLine path={path} delivery={delivery} onChange={list.reload} />}
      </Rows>
    </section>
  )
}

/** True if it ends, or fails, within seconds: a failed one may wait for hours. */
function isUnderWay({ status, attempts }: WebhookDelivery): boolean {
  return status === 'pending' && attempts.every((attempt) => attempt.status === 'pending')
}
