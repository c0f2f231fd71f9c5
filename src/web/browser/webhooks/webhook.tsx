import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Webhook, WebhookDelivery } from '../../../webhooks/model.ts'
import { patch, post, remove } from '../api.ts'
import { eventsOf, useList, useResource } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import type { ViewProps } from '../views.ts'
import { WebhookDialog, WebhookState } from './webhook-form.tsx'
import { Action } from '../widgets/action.tsx'
import { ConfirmButton, DialogButton, SecretDialog } from '../widgets/dialog.tsx'
import { moment } from '../widgets/format.tsx'
import { IdentityName } from '../widgets/identity-field.tsx'
import { Fact, Rows, Section, WhenLoaded } from '../widgets/listing.tsx'
import { DeliveryLine } from './delivery-line.tsx'

export function WebhookView({ params: { id = '' } }: ViewProps): JSX.Element {
  const path = `/v1/webhooks/${encodeURIComponent(id)}`
  const webhook = useResource<Webhook>(path, eventsOf('webhook.disabled'), true)
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
            <About webhook={value} path={path} onChange={webhook.reload} />
          </>
        )}
      </WhenLoaded>
      <DeliveryList path={path} />
    </>
  )
}

function About({ webhook, path, onChange }: { webhook: Webhook; path: string; onChange: () => Promise<void> }): JSX.Element {
  const [secret, setSecret] = useState<string>()
  const change = (input: object): Promise<void> => patch(path, input).then(onChange)
  const { active, events, identity_id, description, failing_since, created_at } = webhook
  return (
    <Section sheet id="about" title="About">
      <dl class="facts">
        <Fact name="Events">{events.includes('*') ? 'every event' : events.join(', ')}</Fact>
        <Fact name="Of">{identity_id === null ? 'every identity' : <IdentityName id={identity_id} />}</Fact>
        {description !== null && <Fact name="Description">{description}</Fact>}
        <Fact name="Created">{moment(created_at)}</Fact>
        {failing_since !== null && <Fact name="Failing since">{moment(failing_since)}</Fact>}
      </dl>
      <div class="actions below">
        <DialogButton
          dialog={(close) => (
            <WebhookDialog
              title="Change the webhook"
              webhook={webhook}
              submit="Change"
              done="The webhook was changed."
              send={change}
              onClose={close}
            />
          )}
        >
          Change
        </DialogButton>
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
            done="The webhook is disabled."
            run={() => change({ active: false })}
          >
            <p>Nothing is sent to it until it is enabled. Events in the meantime are not delivered later.</p>
          </ConfirmButton>
        ) : (
          <Action run={() => change({ active: true })} done="The webhook is enabled.">
            Enable
          </Action>
        )}
        <ConfirmButton
          label="Delete"
          kind="danger"
          title="Delete the webhook?"
          action="Delete"
          done="The webhook was deleted."
          run={() => remove(path).then(() => go('/webhooks'))}
        >
          <p>Nothing more is sent to {webhook.url}; its deliveries and its secret are deleted.</p>
        </ConfirmButton>
      </div>
      {secret !== undefined && (
        <SecretDialog title="The new secret" secret={secret} what="the secret" onClose={() => setSecret(undefined)} />
      )}
    </Section>
  )
}

const pace = 1500

function DeliveryList({ path }: { path: string }): JSX.Element {
  // deliveries emit no events: recent ones are polled until they have ended
  const list = useList<WebhookDelivery>(`${path}/deliveries`, {}, () => true, true)
  const underWay = (list.value ?? []).some(isUnderWay)
  useEffect(() => {
    const timer = underWay ? setInterval(() => void list.reload(), pace) : undefined
    return () => clearInterval(timer)
  }, [underWay, path])
  const test = (
    <Action run={() => post(`${path}/test`).then(list.reload)} done="A test event was queued.">
      Send a test
    </Action>
  )
  return (
    <Section id="deliveries" title="Deliveries" tools={test}>
      <Rows list={list} empty="Nothing was sent to it yet. A test shows whether it is reachable.">
        {(delivery) => <DeliveryLine path={path} delivery={delivery} onChange={list.reload} />}
      </Rows>
    </Section>
  )
}

/** True if it ends, or fails, within seconds: a failed one may wait for hours. */
function isUnderWay({ status, attempts }: WebhookDelivery): boolean {
  return status === 'pending' && attempts.every((attempt) => attempt.status === 'pending')
}
