import { hash } from 'node:crypto'
import type { Basis } from '../basis.ts'
import { notFound } from '../core/fault.ts'
import { type Caller, makerOf } from '../core/scopes.ts'
import type { HoldState } from '../core/shapes.ts'
import type { EventType } from '../events/model.ts'
import type { HoldHandler, StoredHold } from '../policy/holds.ts'
import type { PolicyModule } from '../policy/module.ts'
import type { Held } from '../policy/policy-check.ts'
import type { Transaction } from '../store/database.ts'
import { type HeldLogin, loginApproved, loginExpired, loginHeld, loginRejected } from './model.ts'
import { hostOf, livingRow, type LoginRow, noted } from './row.ts'

interface Deps extends Pick<Basis, 'database' | 'events'> {
  policy: Pick<PolicyModule, 'holds' | 'approvals' | 'policyCheck'>
}

/** A reveal that a policy holds. */
interface HeldReveal {
  caller: Caller
  login: LoginRow
  purpose: string | null
  held: Held
}

/** Reveals that a person must approve. An approved one takes place when its sender repeats the call. */
export class HeldReveals implements HoldHandler<'login'> {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Uses the approval of this reveal, in the transaction of it; returns false when there is none. */
  use(tx: Transaction, { caller, login }: HeldReveal): Promise<boolean> {
    return this.#deps.policy.approvals.use(tx, { caller, about: login.id, amount: null })
  }

  /** The id of the hold of a reveal, which is made unless there is an open one. */
  async hold(tx: Transaction, { caller, login, purpose, held }: HeldReveal): Promise<string> {
    const { holds, approvals } = this.#deps.policy
    const { id, account_id, identity_id } = login
    const known = await approvals.openHold(tx, { caller, about: id, amount: null })
    if (known !== undefined) return known
    const owner = { id: identity_id, account_id }
    const hold = await holds.prepare(tx, owner)
    const sha256 = digestOf(login, purpose)
    await holds.insert(tx, hold, { kind: 'login', owner, created_by: makerOf(caller), caller, about: id, sha256, held, purpose })
    await this.#emit(tx, loginHeld, login, { purpose, used_at: null, hold })
    return hold.id
  }

  async digest({ about, purpose }: StoredHold): Promise<string | undefined> {
    const login = await livingRow(this.#deps.database, about)
    return login && digestOf(login, purpose)
  }

  async release(tx: Transaction, row: StoredHold, hold: HoldState): Promise<void> {
    const login = await livingRow(tx, row.about)
    if (!login) throw notFound('login')
    await this.#deps.policy.policyCheck.notePlace(tx, login.identity_id, login.place)
    await this.#emit(tx, loginApproved, login, reveal(row, hold))
  }

  async dismiss(tx: Transaction, row: StoredHold, hold: HoldState): Promise<void> {
    const login = await livingRow(tx, row.about)
    if (!login || hold.status === 'cancelled') return
    await this.#emit(tx, hold.status === 'expired' ? loginExpired : loginRejected, login, reveal(row, hold))
  }

  async read(_caller: Caller, row: StoredHold): Promise<HeldLogin | null> {
    const login = await livingRow(this.#deps.database, row.about)
    const { id, status, expires_at, decided_at, reason } = row
    return login ? told(login, reveal(row, { id, status, expires_at, decided_at, reason })) : null
  }

  async #emit(tx: Transaction, type: EventType<HeldLogin>, login: LoginRow, asked: Reveal): Promise<void> {
    const { account_id, identity_id } = login
    await this.#deps.events.append(tx, type, { account_id, identity_id, data: told(login, asked) })
  }
}

type Reveal = Pick<HeldLogin, 'purpose' | 'used_at' | 'hold'>

function reveal({ purpose, used_at }: StoredHold, hold: HoldState): Reveal {
  return { purpose, used_at, hold }
}

function told(login: LoginRow, asked: Reveal): HeldLogin {
  return { ...noted(login), host: hostOf(login.url), ...asked }
}

/** SHA-256 of what a person looks at, and of the place that they approve, in hexadecimal. */
function digestOf({ id, label, url, place }: LoginRow, purpose: string | null): string {
  return hash('sha256', [id, label, url ?? '', place, purpose ?? ''].join('\n'))
}
