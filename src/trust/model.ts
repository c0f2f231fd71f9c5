import * as z from 'zod'
import { Timestamp } from '../core/shapes.ts'

export const Tier = z.enum(['bronze', 'silver', 'gold', 'platinum'])
export type Tier = z.output<typeof Tier>

/** How far somebody is to be trusted, and what that was worked out from. */
export const Reputation = z
  .object({
    subject: z.string().meta({ description: 'the DID of the agent, else the id of the identity' }),
    score: z.number().meta({ description: 'from 0 to 1; a new identity has 0.5' }),
    tier: Tier,
    components: z.array(
      z.object({
        name: z.string(),
        value: z.number().meta({ description: 'what was counted' }),
        effect: z.number().meta({ description: 'what it adds to the score, or takes from it' }),
        explanation: z.string(),
      }),
    ),
    counters: z.record(z.string(), z.number()),
    updated_at: Timestamp,
  })
  .meta({ id: 'Reputation' })
export type Reputation = z.output<typeof Reputation>

/** Where other capabilities ask for the reputation of a living identity. */
export interface Standing {
  of(identityId: string): Promise<Reputation>
}
