import type { Basis } from '../basis.ts'
import { conflict, type Fault, notFound } from '../core/fault.ts'
import { type Caller, makerOf } from '../core/scopes.ts'
import type { HoldState } from '../core/shapes.ts'
import type { EventType } from '../events/model.ts'
import type { Reader, Transaction } from '../store/database.ts'
import type { Approvals, Wanted } from './approvals.ts'
import { holdChanged, type HoldHandler, type Holds, type StoredHold } from './holds.ts'
import type { Hold } from './model.ts'
import type { Held } from './policy-check.ts'

interface Deps extends Pick<Basis, 'database' | 'events'> {
  holds: Holds
  approvals: Approvals
}

/** What is revealed one at a time. */
export type Kind = 'card' | 'login'

export interface Row {
  id: string
  account_id: string
  identity_id: string
}

/** What its sender asks for. */
export type Asked = Pick<StoredHold, 'amount_cents' | 'purpose'>

/** The same, and what became of it. */
interface AskedReveal extends Asked {
  used_at: string | null
  hold: HoldState
}

export interface HeldRevealOptions<Of extends Kind, Revealed extends Row> {
  kind: Of
  /** Undefined for one that was deleted, or whose identity was. */
  find: (reader: Reader, id: string) => Promise<Revealed | undefined>
  /** SHA-256 of what a person looks at, in hexadecimal. */
  digest: (row: Revealed, asked: Asked) => string
  /** True where an approval is of exactly what was looked at; false where it is of an amount. */
  isExact: boolean
  show: (row: Revealed, asked: AskedReveal) => NonNullable<Hold[Of]>
  events: Record<'held' | 'approved' | 'rejected' | 'expired', EventType<NonNullable<Hold[Of]>>>
  /** What the repeated call must have. */
  repeated: string
  /** Called in the transaction of an approval. */
  approved?: (tx: Transaction, row: Revealed) => Promise<void>
}

/** A reveal that a policy holds. */
interface HeldReveal<Revealed> extends Asked {
  caller: Caller
  row: Revealed
  held: Held
}

/** Reveals that a person must approve. An approved one takes place when its sender repeats the call. */
export class HeldReveals<Of extends Kind, Revealed extends Row> implements HoldHandler<Of> {
  readonly #deps: Deps
  readonly #options: HeldRevealOptions<Of, Revealed>

  constructor(deps: Deps, options: HeldRevealOptions<Of, Revealed>) {
    this.#deps = deps
    this.#options = options
    deps.holds.serve(options.kind, this)
  }

  /** Uses the approval of this reveal, in the transaction of it; returns false when there is none. */
  use(tx: Transaction, reveal: HeldReveal<Revealed>): Promise<boolean> {
    return this.#deps.approvals.use(tx, this.#wanted(reveal))
  }

  /** The id of the hold of a reveal, which is made unless an open one covers it, and whether it is new. */
  async hold(tx: Transaction, reveal: HeldReveal<Revealed>): Promise<{ id: string; isNew: boolean }> {
    const { caller, row, amount_cents, purpose, held } = reveal
    const { holds, approvals } = this.#deps
    const { kind, digest, events } = this.#options
    const { id, account_id, identity_id } = row
    const known = await approvals.openHold(tx, this.#wanted(reveal))
    if (known !== undefined) return { id: known, isNew: false }
    const owner = { id: identity_id, account_id }
    const hold = await holds.prepare(tx, owner)
    const asked = { amount_cents, purpose }
    const made = { kind, owner, created_by: makerOf(caller), caller, about: id, sha256: digest(row, asked), held, ...asked }
    await holds.insert(tx, hold, made)
    await this.#emit(tx, events.held, row, { ...asked, used_at: null, hold })
    return { id: hold.id, isNew: true }
  }

  /** 409: a person must approve it first. */
  fault(hold: string): Fault {
    return conflict(
      `A person must approve this reveal first (${hold}). Repeat the same call, with ${this.#options.repeated}, once it is approved: it succeeds once, within an hour of the approval.`,
      { code: 'held' },
    )
  }

  async digest(stored: StoredHold): Promise<string | undefined> {
    const row = await this.#options.find(this.#deps.database, stored.about)
    return row && this.#options.digest(row, stored)
  }

  async release(tx: Transaction, stored: StoredHold, hold: HoldState): Promise<void> {
    const { find, digest, kind, events, approved } = this.#options
    const row = await find(tx, stored.about)
    if (!row) throw notFound(kind)
    // it may have been changed since the digest was compared
    if (digest(row, stored) !== stored.sha256) throw holdChanged()
    await approved?.(tx, row)
    await this.#emit(tx, events.approved, row, { ...stored, hold })
  }

  async dismiss(tx: Transaction, stored: StoredHold, hold: HoldState): Promise<void> {
    const { find, events } = this.#options
    const row = await find(tx, stored.about)
    if (!row || hold.status === 'cancelled') return
    await this.#emit(tx, hold.status === 'expired' ? events.expired : events.rejected, row, { ...stored, hold })
  }

  async read(_caller: Caller, stored: StoredHold): Promise<Hold[Of]> {
    const row = await this.#options.find(this.#deps.database, stored.about)
    const { id, status, expires_at, decided_at, reason } = stored
    const hold = { id, status, expires_at, decided_at, reason }
    return row ? this.#options.show(row, { ...stored, hold }) : null
  }

  #wanted({ caller, row, amount_cents, purpose }: HeldReveal<Revealed>): Wanted {
    const { digest, isExact } = this.#options
    const sha256 = isExact ? digest(row, { amount_cents, purpose }) : null
    return { caller, about: row.id, amount: amount_cents, sha256 }
  }

  async #emit(tx: Transaction, type: EventType<NonNullable<Hold[Of]>>, row: Revealed, asked: AskedReveal): Promise<void> {
    const { account_id, identity_id } = row
    await this.#deps.events.append(tx, type, { account_id, identity_id, data: this.#options.show(row, asked) })
  }
}
