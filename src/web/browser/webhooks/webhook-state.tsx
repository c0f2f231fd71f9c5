import type { JSX } from 'preact'
import type { Webhook } from '../../../webhooks/model.ts'
import { Mark } from '../widgets/format.tsx'

const reasons = {
  gone: 'disabled: it answered 410',
  failing: 'disabled: it failed for 5 days',
  identity_deleted: 'disabled: its identity was deleted',
  key_ended: 'disabled: the key that created it expired or was revoked',
}

/** The state of a webhook in a few words. */
export function WebhookState({ webhook: { active, disabled_reason, failing_since } }: { webhook: Webhook }): JSX.Element {
  if (!active) return <Mark tone="bad">{disabled_reason ? reasons[disabled_reason] : 'disabled'}</Mark>
  return failing_since === null ? <Mark tone="good">active</Mark> : <Mark tone="warn">failing</Mark>
}
