import { hash } from 'node:crypto'
import { type Clock, iso } from '../core/clock.ts'
import { isOfLiving } from '../identities/row.ts'
import type { HeldReveals } from '../policy/held-reveals.ts'
import type { PolicyModule } from '../policy/module.ts'
import { sql } from '../store/database.ts'
import { cardApproved, cardExpired, cardHeld, cardRejected } from './model.ts'
import { type CardRow, toCard } from './row.ts'

export type HeldCardReveals = HeldReveals<'card', CardRow>

export function heldCardReveals(policy: PolicyModule, clock: Clock): HeldCardReveals {
  return policy.heldReveals({
    kind: 'card',
    find: (reader, id) =>
      reader.get<CardRow>(sql`SELECT * FROM cards WHERE id = ${id} AND ${isOfLiving(sql`identity_id`, iso(clock.now()))}`),
    digest: ({ id }, { amount_cents, purpose }) => hash('sha256', `${id}\n${amount_cents ?? ''}\n${purpose ?? ''}`),
    isExact: false,
    show: (row, { amount_cents, purpose, used_at, hold }) => ({
      ...toCard(row, clock.now()),
      amount_cents,
      purpose,
      used_at,
      hold,
    }),
    repeated: 'the same key and this amount or a smaller one',
    events: { held: cardHeld, approved: cardApproved, rejected: cardRejected, expired: cardExpired },
  })
}
