import { ways } from '../accounts/key-ancestry.ts'
import type { Keys } from '../accounts/keys.ts'
import type { Basis } from '../basis.ts'
import { type Clock, day, iso } from '../core/clock.ts'
import { conflict, Fault, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import { actingOf, type Caller, makerOf } from '../core/scopes.ts'
import type { HoldState, Page } from '../core/shapes.ts'
import { sweep } from '../core/cron.ts'
import type { IdentityRow } from '../identities/identities.ts'
import { isLiving } from '../identities/row.ts'
import { page } from '../store/page.ts'
import { type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import type { Held } from './policy-check.ts'
import type { Approval, Hold, HoldFilter, HoldKind, HoldRow } from './model.ts'
import { requireUnbound } from './policies.ts'

/** Open holds of one identity. */
const maxOpen = 100

/** Holds in one transaction of a sweep. */
const batch = 50

/** How long a decided hold is kept, in milliseconds. */
const keptFor = 400 * day

type Ended = Exclude<HoldState['status'], 'open' | 'approved'>

/** What is done with what is held of one kind, by the module that sends it. `hold` is what became of the row's hold. */
export interface HoldHandler<Kind extends HoldKind = HoldKind> {
  /** SHA-256 of the bytes as they are stored now, in hexadecimal; undefined when they were deleted. */
  digest(row: StoredHold): Promise<string | undefined>
  /** Lets it leave, in the transaction of the approval. */
  release(tx: Transaction, row: StoredHold, hold: HoldState): Promise<void>
  /** Keeps it from leaving for good, in the transaction of the decision: it was rejected, has expired, or its key was revoked (`cancelled`). */
  dismiss(tx: Transaction, row: StoredHold, hold: HoldState): Promise<void>
  /** The whole of it; null when it was deleted. */
  read(caller: Caller, row: StoredHold): Promise<Hold[Kind]>
}

/** What is stored of something held. */
interface NewHold {
  kind: HoldKind
  owner: Pick<IdentityRow, 'id' | 'account_id'>
  /** The key or session that sent it. */
  created_by: string | null
  /** With whose key it ends; an e-mail ends with its key itself (`outbound/compose/pending.ts`). */
  caller?: Caller
  about: string
  sha256: string
  held: Held
  amount_cents?: number | null
  purpose?: string | null
}

interface Deps extends Pick<Basis, 'database' | 'clock' | 'cursors' | 'log'> {
  keys: Pick<Keys, 'ends' | 'origins'>
  /** Milliseconds. */
  lifetime: () => number
}

/** A hold as it is stored. */
export interface StoredHold extends Omit<HoldRow, 'reasons' | 'found'> {
  seq: number
  account_id: string
  /** The reasons and what was found, as JSON. */
  reasons: string
  /** 1 once its key was revoked. */
  ended: number
  amount_cents: number | null
  purpose: string | null
  used_at: string | null
}

/** What waits for a person before it leaves. Nothing leaves by itself: a hold that expires is rejected. */
export class Holds {
  readonly #deps: Deps
  readonly #handlers: { [Kind in HoldKind]?: HoldHandler<Kind> } = {}

  constructor(deps: Deps) {
    this.#deps = deps
    // held e-mails end as scheduled ones do (`outbound/compose/pending.ts`)
    deps.keys.ends('holds', sql`SELECT id, created_by FROM holds WHERE status = 'open' AND kind <> 'email'`, (tx, ids) =>
      this.#end(tx, ids),
    )
  }

  /** Sets what is done with what is held of one kind. Called before the start. */
  serve<Kind extends HoldKind>(kind: Kind, handler: HoldHandler<Kind>): void {
    Object.assign(this.#handlers, { [kind]: handler })
  }

  /** Prepares a hold for what the caller is about to store. Throws Fault rate_limited, code `too_many_holds`. */
  async prepare(reader: Reader, { id }: Pick<IdentityRow, 'id'>): Promise<HoldState> {
    const row = await reader.get<{ n: number }>(
      sql`SELECT count(*) AS n FROM holds WHERE identity_id = ${id} AND status = 'open'`,
    )
    if (row!.n >= maxOpen) {
      throw new Fault(
        'rate_limited',
        `${maxOpen} messages or reveals of this identity wait for a person already. Wait until some were decided.`,
        {
          code: 'too_many_holds',
          retryAfter: 3600,
        },
      )
    }
    const expires_at = iso(this.#deps.clock.now() + this.#deps.lifetime())
    return { id: newId('hold'), status: 'open', expires_at, decided_at: null, reason: null }
  }

  /** Stores a prepared hold. */
  async insert(tx: Transaction, { id, expires_at }: HoldState, hold: NewHold): Promise<void> {
    const { keys, clock, log } = this.#deps
    const { kind, owner, created_by, caller, about, sha256, held, amount_cents = null, purpose = null } = hold
    if (caller) {
      await keys.origins.requireAdmitted(tx, caller)
      await keys.origins.inherit(tx, id, caller)
    }
    await tx.run(
      sql`INSERT INTO holds (id, account_id, identity_id, kind, about, status, sha256, reasons, created_by, created_at, expires_at, amount_cents, purpose)
        VALUES (${id}, ${owner.account_id}, ${owner.id}, ${kind}, ${about}, 'open', ${sha256}, ${JSON.stringify(held)}, ${created_by},
          ${iso(clock.now())}, ${expires_at}, ${amount_cents}, ${purpose})`,
    )
    tx.afterCommit(() => log.info({ hold: id, kind, about, identity: owner.id }, 'held for a person'))
  }

  /** Those of the caller's account, newest first. */
  async list(caller: Caller, filter: HoldFilter): Promise<Page<HoldRow>> {
    requireUnbound(caller)
    const { status, identity_id } = filter
    const filters = [
      ...(status === 'all' ? [] : [sql`status = ${status}`]),
      ...(identity_id === undefined ? [] : [sql`identity_id = ${identity_id}`]),
    ]
    return page<StoredHold, HoldRow>(this.#deps.database, this.#deps.cursors, filter, {
      name: `holds ${caller.account_id} ${status} ${identity_id}`,
      account: caller.account_id,
      from: sql`holds`,
      where: sql`account_id = ${caller.account_id}`,
      filters,
      octets: sql`octet_length(reasons)`,
      present: presented,
    })
  }

  /** A hold without its message. */
  async row(caller: Caller, id: string): Promise<HoldRow> {
    requireUnbound(caller)
    return presented(await find(this.#deps.database, caller, id))
  }

  async get(caller: Caller, id: string): Promise<Hold> {
    requireUnbound(caller)
    const row = await find(this.#deps.database, caller, id)
    const none = { email: null, sms: null, card: null, login: null }
    return { ...presented(row), ...none, [row.kind]: await this.#handler(row).read(caller, row) }
  }

  /**
   * Lets what is held leave. Throws Fault forbidden `own_hold` for its sender, conflict `already_decided`, `hold_expired`, or `hold_changed` where the
   * bytes are not those that were held.
   */
  async approve(caller: Caller, id: string, { sha256, reason }: Approval): Promise<HoldRow> {
    const { database, log } = this.#deps
    requireUnbound(caller)
    const before = await find(database, caller, id)
    const changed =
      (sha256 !== undefined && sha256 !== before.sha256) ||
      (before.status === 'open' && (await this.#handler(before).digest(before)) !== before.sha256)
    await database.transaction(async (tx) => {
      const row = await this.#undecided(tx, caller, id)
      if (changed) return
      const hold = await this.#decide(tx, row, { status: 'approved', by: actingOf(caller), reason })
      await this.#handler(row).release(tx, row, hold)
    })
    if (changed) {
      log.warn({ hold: id, by: actingOf(caller) }, 'approval refused: what is held has changed')
      throw holdChanged()
    }
    return this.row(caller, id)
  }

  /** Keeps what is held from leaving. Throws Fault as `approve` does. */
  async reject(caller: Caller, id: string, reason: string | undefined): Promise<HoldRow> {
    requireUnbound(caller)
    await this.#deps.database.transaction(async (tx) => {
      const row = await this.#undecided(tx, caller, id)
      const hold = await this.#decide(tx, row, { status: 'rejected', by: actingOf(caller), reason })
      await this.#handler(row).dismiss(tx, row, hold)
    })
    return this.row(caller, id)
  }

  /** Ends the open holds of what its sender cancels or deletes. Returns the first; undefined where there is none. */
  async withdraw(tx: Transaction, about: string): Promise<HoldState | undefined> {
    const rows = await tx.all<StoredHold>(sql`SELECT * FROM holds WHERE about = ${about} AND status = 'open' ORDER BY seq`)
    let first: HoldState | undefined
    for (const row of rows) {
      const hold = await this.#decide(tx, row, { status: 'cancelled', by: null })
      first ??= hold
    }
    return first
  }

  /** Erases what was written in the holds of something that is cleared. */
  async erase(tx: Transaction, about: string): Promise<void> {
    await tx.run(sql`UPDATE holds SET purpose = NULL WHERE about = ${about} AND purpose IS NOT NULL`)
  }

  /** Rejects what nobody decided in time, and cancels what was sent with keys that were revoked. */
  async expire(signal?: AbortSignal): Promise<void> {
    const { database, clock } = this.#deps
    await sweep(
      () =>
        database.transaction(async (tx) => {
          const rows = await tx.all<StoredHold>(
            sql`SELECT * FROM holds WHERE status = 'open' AND expires_at <= ${iso(clock.now())} ORDER BY expires_at LIMIT ${batch}`,
          )
          for (const row of rows) {
            const hold = await this.#decide(tx, row, { status: row.ended === 1 ? 'cancelled' : 'expired', by: null })
            await this.#handler(row).dismiss(tx, row, hold)
          }
          return rows.length === batch
        }),
      signal,
    )
  }

  /** Deletes what was decided long ago. */
  async clear(): Promise<void> {
    const { database, clock } = this.#deps
    await database.transaction((tx) => tx.run(sql`DELETE FROM holds WHERE decided_at < ${iso(clock.now() - keptFor)}`))
  }

  #handler({ kind }: StoredHold): HoldHandler {
    return this.#handlers[kind]!
  }

  /** Holds of revoked keys can no longer be decided; they are cancelled soon after. Returns how many. */
  async #end(tx: Transaction, ids: Sql): Promise<number> {
    const { clock, log } = this.#deps
    const { changes } = await tx.run(
      sql`UPDATE holds SET ended = 1, expires_at = ${iso(clock.now())} WHERE id IN (${ids}) AND status = 'open'`,
    )
    const failed = (error: unknown): void => log.error({ err: error }, 'what revoked keys sent could not be cancelled yet')
    if (changes > 0) tx.afterCommit(() => void this.expire().catch(failed))
    return changes
  }

  /** An open hold that this caller may decide. */
  async #undecided(tx: Transaction, caller: Caller, id: string): Promise<StoredHold> {
    const row = await find(tx, caller, id)
    if (await isSender(tx, caller, row)) {
      this.#deps.log.warn({ hold: id, by: actingOf(caller) }, 'a sender tried to decide about its own message')
      throw new Fault('forbidden', 'What a key sent is decided by a person, or by a key that it did not make.', {
        code: 'own_hold',
      })
    }
    if (row.status !== 'open') throw conflict(`This was ${row.status} at ${row.decided_at}.`, { code: 'already_decided' })
    if (row.ended === 1) throw conflict('The key that sent this was revoked: it is cancelled.', { code: 'already_decided' })
    if (!(await isOfLivingIdentity(tx, row, this.#deps.clock)))
      throw conflict('The identity that sent this was deleted: it is cancelled.', { code: 'already_decided' })
    if (isOver(row, this.#deps.clock))
      throw conflict(`This expired at ${row.expires_at}: it is rejected.`, { code: 'hold_expired' })
    return row
  }

  async #decide(
    tx: Transaction,
    { id, expires_at }: StoredHold,
    { status, by, reason = null }: { status: 'approved' | Ended; by: string | null; reason?: string | null | undefined },
  ): Promise<HoldState> {
    const decided_at = iso(this.#deps.clock.now())
    const { changes } = await tx.run(
      sql`UPDATE holds SET status = ${status}, decided_at = ${decided_at}, decided_by = ${by}, reason = ${reason} WHERE id = ${id} AND status = 'open'`,
    )
    if (changes !== 1) throw new Error(`${id} was decided twice`)
    tx.afterCommit(() => this.#deps.log.info({ hold: id, status, by }, 'hold decided'))
    return { id, status, expires_at, decided_at, reason }
  }
}

/** Fault conflict, code `hold_changed`. */
export function holdChanged(): Fault {
  return conflict(
    'What is held has changed since you read it. Read the hold again before you approve it, and reject it if it is not what its sender says.',
    {
      code: 'hold_changed',
    },
  )
}

function isOver({ expires_at }: StoredHold, clock: Clock): boolean {
  return Date.parse(expires_at) <= clock.now()
}

async function isOfLivingIdentity(reader: Reader, { identity_id }: StoredHold, clock: Clock): Promise<boolean> {
  const living = isLiving(iso(clock.now()))
  return (await reader.get(sql`SELECT 1 FROM identities WHERE id = ${identity_id} AND ${living}`)) !== undefined
}

async function find(reader: Reader, { account_id }: Caller, id: string): Promise<StoredHold> {
  const row = await reader.get<StoredHold>(sql`SELECT * FROM holds WHERE id = ${id} AND account_id = ${account_id}`)
  if (!row) throw notFound('hold')
  return row
}

/** True for the key that sent it, and for the keys which that key made. */
async function isSender(reader: Reader, caller: Caller, { created_by }: StoredHold): Promise<boolean> {
  const own = makerOf(caller)
  if (own === null || created_by === null) return false
  const row = await reader.get(
    sql`WITH RECURSIVE above (id) AS (SELECT ${own} UNION SELECT coalesce(api_keys.created_by, origin_id) FROM above CROSS JOIN ${ways}
        LEFT JOIN api_keys ON way = 1 AND api_keys.id = above.id
        LEFT JOIN credential_origins ON way = 2 AND credential_origins.id = above.id)
      SELECT 1 FROM above WHERE id = ${created_by}`,
  )
  return row !== undefined
}

function presented({ reasons: json, ...row }: StoredHold): HoldRow {
  const { reasons, found } = JSON.parse(json) as Pick<HoldRow, 'reasons' | 'found'>
  const { id, status, expires_at, decided_at, reason, kind, identity_id, about, created_by, created_at, decided_by, sha256 } = row
  const own = { id, status, expires_at, decided_at, reason, kind, identity_id, about, created_by, created_at, decided_by, sha256 }
  return { ...own, reasons, found }
}
