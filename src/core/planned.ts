/** What a plan can limit: how many of each an account may have at once, or use in the current period. */
export const planned = [
  'identities',
  'domains',
  'aliases',
  'webhooks',
  'api_keys',
  'phone_numbers',
  'cards',
  'totp_entries',
  'agents',
  'storage_bytes',
  'emails_sent',
  'sms_sent',
] as const
export type Planned = (typeof planned)[number]

/** The limits that an account has; what is left out, or null, has none. */
export type PlanLimits = { [What in Planned]?: number | null | undefined }
