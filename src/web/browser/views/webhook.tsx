import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Webhook } from '../../../webhooks/model.ts'
import { patch, post, remove } from '../api.ts'
import { type Loaded, useResource } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import type { ViewProps } from '../views.ts'
import { DeliveryList } from '../webhooks/delivery-list.tsx'
import { WebhookDialog } from '../webhooks/webhook-form.tsx'
import { WebhookState } from '../webhooks/webhook-state.tsx'
import { Action } from '../widgets/action.tsx'
import { announce } from '../widgets/announcer.tsx'
import { Confirm, SecretDialog } from '../widgets/dialog.tsx'
import { moment } from '../widgets/format.tsx'
import { IdentityName } from '../widgets/identity-field.tsx'
import { WhenLoaded } from '../widgets/listing.tsx'

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

type Asking = 'change' | 'rotate' | 'delete' | 'off'

interface Props {
  webhook: Webhook
  path: string
  loaded: Loaded<Webhook>
}

function About({ webhook, path, loaded }: Props): JSX.Element {
  const [asking, setAsking] = useState<Asking>()
  const [secret, setSecret] = useState<string>()
  const close = (): void => setAsking(undefined)
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
        <dt>Events</dt>
        <dd>{events.includes('*') ? 'every event' : events.join(', ')}</dd>
        <dt>Of</dt>
        <dd>{identity_id === null ? 'every identity' : <IdentityName id={identity_id} />}</dd>
        {description !== null && (
          <>
            <dt>Description</dt>
            <dd>{description}</dd>
          </>
        )}
        <dt>Created</dt>
        <dd>{moment(created_at)}</dd>
        {failing_since !== null && (
          <>
            <dt>Failing since</dt>
            <dd>{moment(failing_since)}</dd>
          </>
        )}
      </dl>
      <div class="actions below">
        <button type="button" onClick={() => setAsking('change')}>
          Change
        </button>
        <button type="button" onClick={() => setAsking('rotate')}>
          New secret
        </button>
        {active ? (
          <button type="button" onClick={() => setAsking('off')}>
            Disable
          </button>
        ) : (
          <Action run={() => change({ active: true }, 'The webhook is enabled.')}>Enable</Action>
        )}
        <button type="button" class="danger" onClick={() => setAsking('delete')}>
          Delete
        </button>
      </div>
      {asking === 'change' && (
        <WebhookDialog
          title="Change the webhook"
          webhook={webhook}
          submit="Change"
          send={(input) => change(input, 'The webhook was changed.')}
          onClose={close}
        />
      )}
      {asking === 'rotate' && (
        <Confirm
          title="A new secret?"
          action="Make a new secret"
          run={async () => setSecret((await post<{ secret: string }>(`${path}/secret/rotate`)).secret)}
          onClose={close}
        >
          <p>For 24 hours deliveries are signed with the current secret as well.</p>
        </Confirm>
      )}
      {asking === 'off' && (
        <Confirm
          title="Disable the webhook?"
          action="Switch off"
          run={() => change({ active: false }, 'The webhook is disabled.')}
          onClose={close}
        >
          <p>Nothing is sent to it until it is enabled. Events in the meantime are not delivered later.</p>
        </Confirm>
      )}
      {asking === 'delete' && (
        <Confirm
          title="Delete the webhook?"
          action="Delete"
          run={async () => {
            await remove(path)
            announce('The webhook was deleted.')
            go('/webhooks')
          }}
          onClose={close}
        >
          <p>Nothing more is sent to {webhook.url}; its deliveries and its secret are gone.</p>
        </Confirm>
      )}
      {secret !== undefined && (
        <SecretDialog title="The new secret" secret={secret} what="the secret" onClose={() => setSecret(undefined)} />
      )}
    </section>
  )
}
