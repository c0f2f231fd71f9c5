import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Webhook } from '../../../webhooks/model.ts'
import { post } from '../api.ts'
import { useList } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import { WebhookDialog, WebhookState } from '../webhooks/webhook-form.tsx'
import { Rows } from '../widgets/listing.tsx'
import { DialogButton, SecretDialog } from '../widgets/dialog.tsx'
import type { ViewProps } from '../views.ts'
import { webhookEvents, WebhookView } from '../webhooks/webhook.tsx'

/** All webhooks, or one. */
export function View({ params }: ViewProps): JSX.Element {
  return params['id'] === undefined ? <List /> : <WebhookView params={params} />
}

function List(): JSX.Element {
  // failures have no events
  const list = useList<Webhook>('/v1/webhooks', {}, webhookEvents, true)
  const [made, setMade] = useState<{ id: string; secret: string }>()
  const create = (input: object): Promise<void> => post<{ id: string; secret: string }>('/v1/webhooks', input).then(setMade)
  return (
    <>
      <div class="head">
        <h1>Webhooks</h1>
        <DialogButton
          class="primary"
          dialog={(close) => <WebhookDialog title="New webhook" submit="Create" send={create} onClose={close} />}
        >
          New webhook
        </DialogButton>
      </div>
      <Rows list={list} empty="No webhook yet. Events are posted to each webhook, signed, with retries until it accepts them.">
        {(webhook) => (
          <li>
            <span class="grow">
              <Link href={`/webhooks/${webhook.id}`}>
                <strong>{webhook.url}</strong>
              </Link>
              <br />
              <span class="faint">
                {webhook.description !== null && `${webhook.description} · `}
                {webhook.events.includes('*') ? 'every event' : webhook.events.join(', ')}
              </span>
            </span>
            <WebhookState webhook={webhook} />
          </li>
        )}
      </Rows>
      {made && (
        <SecretDialog
          title="The secret of the webhook"
          secret={made.secret}
          what="the secret"
          onClose={() => go(`/webhooks/${made.id}`)}
        >
          <p>The receiver verifies with it that events are from this box.</p>
        </SecretDialog>
      )}
    </>
  )
}
