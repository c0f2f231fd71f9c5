import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Webhook, WebhookDelivery } from '../../../webhooks/model.ts'
import { patch, post, remove } from '../api.ts'
import type { LiveEvent } from '../live.ts'
import { useList, useResource } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import type { ViewProps } from '../views.ts'
import { WebhookDialog, WebhookState } from './webhook-form.tsx'
import { Action } from '../widgets/action.tsx'
import { ConfirmButton, DialogButton, SecretDialog } from '../widgets/dialog.tsx'
import { moment } from '../widgets/format.tsx'
import { IdentityName } from '../widgets/identity-field.tsx'
import { Fact, Rows, Section, WhenLoaded } from '../widgets/listing.tsx'
import { DeliveryLine } from './delivery-line.tsx'

/** Events that may change a webhook: it ends with the keys that made it. */
export function webhookEvents({ type }: LiveEvent): boolean {
  return type.startsWith('webhook.') || type === 'key.revoked'
}

export function WebhookView({ params: { id = '' } }: ViewProps): JSX.Element {
  const path = `/v1/webhooks/${encodeURIComponent(id)}`
  const webhook = useResource<Webhook>(path, webhookEvents, true)
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

/** Milliseconds between readings while an attempt is under way. */
const pace = 1500

/** The longest timer of a browser. */
const longest = 2 ** 31 - 1

function DeliveryList({ path }: { path: string }): JSX.Element {
  // any event may be delivered to it; attempts have no events, and are read when they are due, until they have ended
  const list = useList<WebhookDelivery>(`${path}/deliveries`, {}, () => true, true)
  useEffect(() => {
    const next = Math.min(...(list.value ?? []).flatMap(nextChange))
    if (next === Infinity) return undefined
    const timer = setTimeout(() => void list.reload(), Math.min(longest, Math.max(pace, next - Date.now())))
    return () => clearTimeout(timer)
  }, [list.value])
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

/** When a delivery changes next: now while an attempt is under way, else when one is due. */
function nextChange({ status, next_attempt_at }: WebhookDelivery): number[] {
  if (status !== 'pending') return []
  return [next_attempt_at === null ? 0 : Date.parse(next_attempt_at)]
}
