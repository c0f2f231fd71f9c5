import * as z from 'zod'
import { Timestamp } from '../../core/shapes.ts'

const maxEntries = 500

const Entries = z.array(z.string().trim().min(3).max(320)).max(maxEntries)

const Rules = z.strictObject({
  allow: Entries.meta({
    description: 'addresses (ada@example.net) and domains (@example.net) that may write; empty: everyone',
  }),
  block: Entries.meta({ description: 'those that may not' }),
  require_dmarc: z.boolean().meta({ description: 'only senders whose domain is verified (DMARC pass)' }),
  replies: z.boolean().meta({
    description: 'accept a verified answer to a sent message from one who was written to, whatever allow says',
  }),
  max_score: z.int().min(0).max(100).nullable().meta({
    description: 'sets messages with a higher score of screening aside; null: none',
  }),
})
export type Rules = z.output<typeof Rules>

/** What changes of who may write to an identity, or to all identities of an account; lists are replaced. */
export const SenderRulesInput = Rules.partial().meta({ id: 'SenderRulesInput' })
export type SenderRulesInput = z.output<typeof SenderRulesInput>

export const SenderRules = z
  .object({ ...Rules.shape, updated_at: Timestamp.nullable() })
  .meta({ id: 'SenderRules', description: 'updated_at is null where none were set: everyone may write' })
export type SenderRules = z.output<typeof SenderRules>
