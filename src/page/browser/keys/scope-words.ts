import type { ApiKey } from '../../../account/model.ts'

/** What each scope lets a key do. */
export const scopeWords: Record<ApiKey['scopes'][number], string> = {
  'identities:read': 'see identities, their events and one-time codes',
  'identities:write': 'make, change and delete identities',
  'messages:read': 'read e-mail and text messages',
  'messages:write': 'send, mark and delete e-mail and text messages',
  'emails:read': 'read e-mail only',
  'emails:write': 'send, mark and delete e-mail only',
  'sms:read': 'read text messages only',
  'sms:write': 'send, mark and delete text messages only',
  'cards:read': 'see cards, and have them handed out',
  'cards:write': 'store, freeze and cancel cards, set budgets',
  'account:read': 'see keys, webhooks, domains and settings',
  'account:write': 'make and revoke keys, change webhooks and domains',
}
