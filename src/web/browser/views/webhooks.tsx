import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Webhook } from '../../../webhooks/model.ts'
import { post } from '../api.ts'
import { useList } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import { WebhookDialog, WebhookState } from '../webhooks/webhook-form.tsx'
import { Rows } from '../widgets/listing.tsx'
import { SecretDialog } from '../widgets/dialog.tsx'

/** The webhooks of the account. */
export function View(): JSX.Element {
  const list = useList<Webhook>('/v1/webhooks', {}, ({ type }) => type === 'webhook.disabled', true)
  const [making, setMaking] = useState(false)
  const [made, setMade] = useState<{ id: string; secret: string }>()
  const create = async (input: Record<string, unknown>): Promise<void> => {
    setMade(await post<{ id: string; secret: string }>('/v1/webhooks', input))
    setMaking(false)
  }
  return (
    <>
      <div class="head">
        <h1>Webhooks</h1>
        <button type="button" class="primary" onClick={() => setMaking(true)}>
          New webhook
        </button>
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
      {making && <WebhookDialog title="New webhook" submit="Create" send={create} onClose={() => setMaking(false)} />}
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
