import type { JSX } from 'preact'
import type { Webhook } from '../../../webhooks/model.ts'
import { Mark } from '../widgets/mark.tsx'

const reasons = {
  gone: 'switched off: it answered 410',
  failing: 'switched off: it failed for 5 days',
  identity_deleted: 'switched off: its identity was deleted',
  key_ended: 'switched off: the key that made it ended',
}

/** How a webhook is, in a word or a few. */
export function WebhookState({ webhook: { active, disabled_reason, failing_since } }: { webhook: Webhook }): JSX.Element {
  if (!active) return <Mark tone="bad">{disabled_reason ? reasons[disabled_reason] : 'switched off'}</Mark>
  return failing_since === null ? <Mark tone="good">active</Mark> : <Mark tone="warn">failing</Mark>
}
