import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Webhook } from '../../../webhooks/model.ts'
import { Choices } from '../widgets/choices.tsx'
import { FormDialog } from '../widgets/dialog.tsx'
import { Field, TextArea, Tick } from '../widgets/form.tsx'
import { IdentityField } from '../widgets/identity-field.tsx'
import { eventChoices } from './event-choices.ts'
import { Mark } from '../widgets/format.tsx'

interface Props {
  title: string
  /** The current webhook; omitted for a new one. */
  webhook?: Webhook
  submit: string
  /** Announced after success. */
  done?: string
  send: (input: Record<string, unknown>) => Promise<unknown>
  onClose: () => void
}

export function WebhookDialog({ webhook, send, ...dialog }: Props): JSX.Element {
  const [all, setAll] = useState(webhook?.events.includes('*') ?? false)
  const { url = '', description, identity_id = null, headers = {} } = webhook ?? {}
  return (
    <FormDialog
      {...dialog}
      send={(typed, files) =>
        send({
          url: typed['url'],
          events: typed['all'] ? ['*'] : files.getAll('events'),
          description: typed['description'] || null,
          identity_id: typed['identity_id'] || null,
          headers: headersIn(String(typed['headers'])),
        })
      }
      wide
    >
      <Field name="url" label="URL" type="url" first autoComplete="off" defaultValue={url} hint="https, at a public address." />
      <Tick
        name="all"
        label="Every event, including future kinds"
        defaultChecked={all}
        onChange={({ currentTarget }) => setAll(currentTarget.checked)}
      />
      {!all && <Choices name="events" legend="Events" choices={choices} chosen={webhook?.events ?? ['email.received']} />}
      <IdentityField label="Of" none="every identity" chosen={identity_id} />
      <Field name="description" label="Description" autoComplete="off" defaultValue={description ?? ''} />
      <TextArea
        name="headers"
        label="Custom headers"
        rows={2}
        hint="Sent with each delivery, one per line: Name: value"
        defaultValue={Object.entries(headers)
          .map(([name, value]) => `${name}: ${value}`)
          .join('\n')}
      />
    </FormDialog>
  )
}

const choices = Object.entries(eventChoices).map(([value, hint]) => ({
  value,
  label: <span class="mono">{value}</span>,
  hint,
}))

/** An invalid line is sent unchanged: the API explains the error. */
function headersIn(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return colon === -1 ? [line.trim(), ''] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]
    }),
  )
}

const reasons = {
  gone: 'disabled: it answered 410',
  failing: 'disabled: it failed for 5 days',
  identity_deleted: 'disabled: its identity was deleted',
  key_ended: 'disabled: the key that created it expired or was revoked',
}

export function WebhookState({ webhook: { active, disabled_reason, failing_since } }: { webhook: Webhook }): JSX.Element {
  if (!active) return <Mark tone="bad">{disabled_reason ? reasons[disabled_reason] : 'disabled'}</Mark>
  return failing_since === null ? <Mark tone="good">active</Mark> : <Mark tone="warn">failing</Mark>
}
