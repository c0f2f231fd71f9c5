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
import { ConfirmButton, SecretDialog } from '../widgets/dialog.tsx'
import { moment } from '../widgets/format.tsx'
import { IdentityName } from '../widgets/identity-field.tsx'
import { Fact, WhenLoaded } from '../widgets/listing.tsx'

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
          title="A new secret?"
          action="Make a new secret"
          run={async () => setSecret((await post<{ secret: string }>(`${path}/secret/rotate`)).secret)}
        >
          <p>For 24 hours deliveries are signed with the current secret as well.</p>
        </ConfirmButton>
        {active ? (
          <ConfirmButton
            label="Disable"
            title="Disable the webhook?"
            action="Switch off"
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
          <p>Nothing more is sent to {webhook.url}; its deliveries and its secret are gone.</p>
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
