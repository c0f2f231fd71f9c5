import { hash } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import type { HeldReveals } from '../policy/held-reveals.ts'
import type { PolicyModule } from '../policy/module.ts'
import { loginApproved, loginExpired, loginHeld, loginRejected } from './model.ts'
import { hostOf, livingRow, type LoginRow, noted } from './row.ts'

export type HeldLoginReveals = HeldReveals<'login', LoginRow>

/** Their place is known once one was approved. */
export function heldLoginReveals(policy: PolicyModule, clock: Clock): HeldLoginReveals {
  return policy.heldReveals({
    kind: 'login',
    find: (reader, id) => livingRow(reader, clock, id),
    // the place is approved too, and a changed login may have other secrets
    digest: ({ id, label, url, place, updated_at }, { purpose }) =>
      hash('sha256', [id, label, url ?? '', place, updated_at, purpose ?? ''].join('\n')),
    isExact: true,
    show: (row, { purpose, used_at, hold }) => ({ ...noted(row), host: hostOf(row.url), purpose, used_at, hold }),
    events: { held: loginHeld, approved: loginApproved, rejected: loginRejected, expired: loginExpired },
    repeated: 'the same key and purpose',
    approved: (tx, { identity_id, place }) => policy.policyCheck.notePlace(tx, identity_id, place),
  })
}
