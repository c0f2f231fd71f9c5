import type { Planned } from '../core/planned.ts'
import type * as z from 'zod'
import { bytes, Group, Size, Whole } from './values.ts'

const most = 1_000_000_000
const none = 'no limit'

/** The limits of each account, unless state.json overrides them. */
export const limits = Group({
  identities: Whole(0, most).optional().meta({ description: 'Maximum number of identities', otherwise: none, example: 1000 }),
  domains: Whole(0, most)
    .optional()
    .meta({ description: 'Maximum number of domains, not counting mail.domain', otherwise: none, example: 10 }),
  aliases: Whole(0, most)
    .optional()
    .meta({ description: 'Maximum number of aliases, over all domains', otherwise: none, example: 1000 }),
  webhooks: Whole(0, most).optional().meta({ description: 'Maximum number of webhooks', otherwise: none, example: 100 }),
  api_keys: Whole(0, most).optional().meta({ description: 'Maximum number of active API keys', otherwise: none, example: 100 }),
  phone_numbers: Whole(0, most).optional().meta({ description: 'Maximum number of phone numbers', otherwise: none, example: 10 }),
  cards: Whole(0, most)
    .optional()
    .meta({ description: 'Maximum number of cards, not counting cancelled ones', otherwise: none, example: 1000 }),
  totp_entries: Whole(0, most).optional().meta({ description: 'Maximum number of TOTP secrets', otherwise: none, example: 1000 }),
  agents: Whole(0, most).optional().meta({ description: 'Maximum number of agents', otherwise: none, example: 1000 }),
  storage_bytes: Size(0).optional().meta({
    description:
      'Storage quota for mail, text messages, pictures and long texts in events, over all identities of an account; when it is full, mail is deferred (452) and nothing is sent',
    unit: bytes,
    otherwise: none,
    example: '50 GiB',
  }),
  emails_sent: Whole(0, most).optional().meta({
    description: 'E-mail messages sent in a calendar month (UTC), regardless of the number of recipients',
    unit: 'messages',
    otherwise: none,
    example: 10_000,
  }),
  sms_sent: Whole(0, most).optional().meta({
    description: 'Text messages sent in a calendar month (UTC), regardless of the number of segments',
    unit: 'messages',
    otherwise: none,
    example: 500,
  }),
} satisfies Record<Planned, z.ZodType>)
