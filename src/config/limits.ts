import type { Planned } from '../core/planned.ts'
import type * as z from 'zod'
import { bytes, Group, Size, Whole } from './values.ts'

const most = 1_000_000_000
const none = 'no limit'

/** What each account may have and use, unless state.json says otherwise of it. */
export const limits = Group({
  identities: Whole(0, most).optional().meta({ description: 'Identities at once', otherwise: none, example: 1000 }),
  domains: Whole(0, most)
    .optional()
    .meta({ description: "Domains at once, the box's own not counted", otherwise: none, example: 10 }),
  aliases: Whole(0, most)
    .optional()
    .meta({ description: 'Aliases at once, of all domains together', otherwise: none, example: 1000 }),
  webhooks: Whole(0, most).optional().meta({ description: 'Webhooks at once', otherwise: none, example: 100 }),
  api_keys: Whole(0, most).optional().meta({ description: 'API keys that work at once', otherwise: none, example: 100 }),
  phone_numbers: Whole(0, most).optional().meta({ description: 'Phone numbers at once', otherwise: none, example: 10 }),
  cards: Whole(0, most)
    .optional()
    .meta({ description: 'Cards at once, cancelled ones not counted', otherwise: none, example: 1000 }),
  totp_entries: Whole(0, most).optional().meta({ description: 'One-time passwords at once', otherwise: none, example: 1000 }),
  agents: Whole(0, most).optional().meta({ description: 'Agents at once', otherwise: none, example: 1000 }),
  storage_bytes: Size(0).optional().meta({
    description:
      "Mail, text messages, pictures and long texts in events kept at once, of all of an account's identities together; above it mail is put off (452) and nothing is sent",
    unit: bytes,
    otherwise: none,
    example: '50 GiB',
  }),
  emails_sent: Whole(0, most).optional().meta({
    description: 'Messages sent in a calendar month (UTC), however many recipients each has',
    unit: 'messages',
    otherwise: none,
    example: 10_000,
  }),
  sms_sent: Whole(0, most).optional().meta({
    description: 'Text messages sent in a calendar month (UTC), however many segments each has',
    unit: 'messages',
    otherwise: none,
    example: 500,
  }),
} satisfies Record<Planned, z.ZodType>)
