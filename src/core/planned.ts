/** The resources a plan can limit: how many of each an account may have, or use in the current period. */
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

/** The limits of an account; undefined and null mean no limit. */
export type PlanLimits = { [What in Planned]?: number | null | undefined }
