import { hash } from 'node:crypto'
import type { Basis } from '../basis.ts'
import type { Clock } from '../core/clock.ts'
import { type Caller, readerOf } from '../core/scopes.ts'
import type { HeldReveals } from '../policy/held-reveals.ts'
import type { PolicyModule } from '../policy/module.ts'
import type { PolicyCheck } from '../policy/policy-check.ts'
import type { Transaction } from '../store/database.ts'
import {
  loginApproved,
  loginExpired,
  loginHeld,
  type LoginPurpose,
  loginRejected,
  loginRevealed,
  type LoginSecrets,
  type RevealedLogin,
} from './model.ts'
import { hostOf, livingRow, type LoginRow, noted, rowOf } from './row.ts'
import type { Secrets } from './secrets.ts'

type HeldLoginReveals = HeldReveals<'login', LoginRow>

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock'> {
  secrets: Secrets
  policyCheck: PolicyCheck
  heldReveals: HeldLoginReveals
}

/** What is revealed, or the id of the hold that a person decides. Both are committed; the identity is for the audit log. */
type Outcome = (RevealedLogin & { identity_id: string }) | { hold: string }

/** Reveals logins; each reveal is committed before the caller gets it. */
export class Reveals {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Throws Fault forbidden `policy_refused`, and conflict `held` where a person must approve it first. */
  async reveal(caller: Caller, id: string, input: LoginPurpose): Promise<RevealedLogin> {
    const purpose = input.purpose ?? null
    const outcome = await this.#deps.database.transaction<Outcome>(async (tx) => {
      const login = await rowOf(tx, this.#deps.clock, caller, id)
      const hold = await this.#hold(tx, caller, login, purpose)
      return hold === undefined ? this.#open(tx, caller, login, purpose) : { hold }
    })
    if (!('hold' in outcome)) return outcome
    throw this.#deps.heldReveals.fault(outcome.hold)
  }

  /** The id of the hold of a reveal that may not take place yet. Uses an approval where one is needed. */
  async #hold(tx: Transaction, caller: Caller, login: LoginRow, purpose: string | null): Promise<string | undefined> {
    const { policyCheck, heldReveals } = this.#deps
    const owner = { id: login.identity_id, account_id: login.account_id }
    const held = policyCheck.admitted(await policyCheck.login(tx, caller, { owner, place: login.place }))
    if (held === undefined) return undefined
    const reveal = { caller, row: login, amount_cents: null, purpose, held }
    return (await heldReveals.use(tx, reveal)) ? undefined : (await heldReveals.hold(tx, reveal)).id
  }

  async #open(tx: Transaction, caller: Caller, login: LoginRow, purpose: string | null): Promise<Outcome> {
    const { events, secrets } = this.#deps
    const { id, account_id, identity_id, label, url, username_slot, secrets_slot } = login
    const data = { id, identity_id, label, url, purpose, ...readerOf(caller) }
    await events.append(tx, loginRevealed, { account_id, identity_id, data })
    const username = (await secrets.read(tx, identity_id, username_slot)) as string | null
    return { identity_id, username, ...((await secrets.read(tx, identity_id, secrets_slot)) as LoginSecrets) }
  }
}

/** The reveals that wait for a person, or were approved. Their place is known once one was approved. */
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
