import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Clock, day, iso } from '../core/clock.ts'
import { conflict, Fault, type FaultType, invalid } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { Seal, SealedColumn } from '../core/seal/seal.ts'
import { sweep } from '../core/cron.ts'
import { Turns } from '../core/work/paced-work.ts'
import type { StorageBudget } from '../events/log.ts'
import { type Database, join, raw, sql, type Sql, type Transaction } from '../store/database.ts'

interface Deps {
  database: Database
  seal: Pick<Seal, 'seal' | 'open'>
  clock: Clock
  storage: Pick<StorageBudget, 'available' | 'add'>
}

/** A call that carries an `Idempotency-Key`. */
interface IdempotencyClaim {
  key: string
  caller: Caller
  method: string
  path: string
  search: string
  body: Uint8Array
  /** The identity that the path names. */
  identity_id: string | null
  /** The answer carries a secret: kept sealed, and replayed to the same secret of an API key or the same session only. */
  secret: boolean
}

/** A stored response; for a fault, `body` holds the problem without its request id. */
interface KeptAnswer {
  status: number
  location: string | null
  body: string
}

/** Data stored by a handler to answer repetitions from, instead of the response. */
interface Memo {
  memo: string
}

/** The first call with its key: `run` the handler; once it has settled, exactly one of `keep`, `release` and `interrupt` must be called. */
export interface Attempt {
  run<T>(work: () => Promise<T>): Promise<T>
  /** Stores, in a transaction of the handler, the memo that a repetition is answered from. */
  remember(tx: Transaction, memo: string): Promise<void>
  keep(answer: KeptAnswer & AnswerSubject): Promise<void>
  release(): Promise<void>
  /** Keeps what is known of a call that took effect or not: a repetition is told that it was interrupted, or is a first call. */
  interrupt(): Promise<void>
}

/** The identity and resource of a response; it is deleted with either. */
interface AnswerSubject {
  identity_id: string | null
  resource_id: string | null
  /** The memo that a repetition is answered from when the handler stored none. */
  memo: string | null
}

interface Row extends Omit<KeptAnswer, 'body'> {
  body: string | null
  fingerprint: string
  /** 1 if its run has ended, or the call before its answer was stored. */
  interrupted: number
  /** The status of the response. Before there is one: 0, and 1 from the first commit of the handler on. */
  status: number
  sealed: number
  memo: string | null
  /** 0 once the response was removed. */
  octets: number
  created_at: string
}

const primaryKey = ['holder', 'method', 'path', 'idempotency_key'] as const

export const sealedAnswers: SealedColumn = {
  table: 'idempotency_keys',
  column: 'body',
  key: primaryKey,
  base64: true,
  only: 'sealed = 1',
  context: contextOf,
}

/** The largest stored response, and the overhead of a row, in bytes. */
const largest = 256 * 1024
const overhead = 256

/** Responses removed in one transaction. */
const batchSize = 500

/**
 * Stores the responses of calls with an `Idempotency-Key` for 24 h. The claim is on disk before the handler runs, and is marked as begun in the
 * first transaction of the handler, so that after a crash it is known whether the call changed anything.
 */
export class Idempotency {
  readonly #database: Database
  readonly #seal: Deps['seal']
  readonly #clock: Clock
  readonly #storage: Deps['storage']
  /** Calls whose beginning or end could not be stored: it is not known what is. */
  readonly #left: Sql[] = []

  constructor(deps: Deps) {
    this.#database = deps.database
    this.#seal = deps.seal
    this.#clock = deps.clock
    this.#storage = deps.storage
  }

  /** Returns the stored response, or an attempt for the first call. Throws Fault 409 in any other case. */
  async begin(claim: IdempotencyClaim): Promise<KeptAnswer | Memo | Attempt> {
    const holder = holderOf(claim)
    const fingerprint = await fingerprintOf(claim)
    const place = sql`holder = ${holder} AND method = ${claim.method} AND path = ${claim.path} AND idempotency_key = ${claim.key}`
    const now = this.#clock.now()
    const { run } = this.#database
    const { id: runId } = run
    const its = sql`${place} AND run_id = ${runId} AND created_at = ${iso(now)}`
    const interrupted = sql`(run_id <> ${runId} AND ${run.ended(sql`run_id`)})`
    const work = async (tx: Transaction): Promise<Row | undefined> => {
      // a call that was claimed by a run that has ended and never began did not happen
      const old = sql`${place} AND (created_at < ${iso(now - day)} OR (status = 0 AND ${interrupted}))`
      const removed = await tx.get<{ octets: number }>(sql`DELETE FROM idempotency_keys WHERE ${old} RETURNING octets`)
      if (removed && removed.octets > 0) await this.#storage.add(tx, claim.caller.account_id, 'storage_bytes', -removed.octets)
      const { changes } = await tx.run(
        sql`INSERT INTO idempotency_keys (holder, method, path, idempotency_key, fingerprint, run_id, status, identity_id, created_at)
          VALUES (${holder}, ${claim.method}, ${claim.path}, ${claim.key}, ${fingerprint}, ${runId}, 0, ${claim.identity_id}, ${iso(now)})
          ON CONFLICT DO NOTHING`,
      )
      return changes === 1
        ? undefined
        : tx.get<Row>(sql`SELECT *, ${interrupted} AS interrupted FROM idempotency_keys WHERE ${place}`)
    }
    const row = await this.#settled(its, this.#database.transaction(work), isUnsure)
    const context = contextOf({ holder, path: claim.path, idempotency_key: claim.key })
    return row ? this.#replay(row, fingerprint, context) : this.#attempt(claim, its, context)
  }

  /** Removes records older than 24 h. Returns how many. */
  async sweep(): Promise<number> {
    const limit = iso(this.#clock.now() - day)
    let count = 0
    await sweep(async () => {
      const deleted = await this.#database.transaction(async (tx) => {
        const found = await batchOf(tx, sql`created_at < ${limit}`)
        if (!found) return 0
        await this.#releaseStorage(tx, found.rows)
        await tx.run(sql`DELETE FROM idempotency_keys WHERE ${found.these}`)
        return found.rows.length
      })
      count += deleted
      return deleted === batchSize
    })
    return count
  }

  /** Removes the responses about an identity in the transaction that deletes it; responses of running calls are not stored. */
  async forget(tx: Transaction, identityId: string): Promise<void> {
    const its = sql`identity_id = ${identityId}`
    // further batches follow after the commit
    if (await this.#empty(tx, its)) tx.afterCommit(() => void this.#emptyAll(its).catch(() => undefined))
  }

  /** Removes the responses about deleted identities that were left when the box was killed. */
  async resume(): Promise<void> {
    await this.#emptyAll(sql`identity_id > '' AND identity_id IN (SELECT id FROM identities WHERE status = 'deleted')`)
  }

  /** Removes the responses about any other deleted resource, by its id, in transactions of its own. */
  async forgetResource(id: string): Promise<void> {
    const its = sql`resource_id = ${id} AND body IS NOT NULL`
    if (await this.#database.get(sql`SELECT 1 FROM idempotency_keys WHERE ${its}`)) await this.#emptyAll(its)
  }

  async #emptyAll(which: Sql): Promise<void> {
    await sweep(() => this.#database.transaction((tx) => this.#empty(tx, which)))
  }

  /** Empties a batch. Returns whether there may be more. */
  async #empty(tx: Transaction, which: Sql): Promise<boolean> {
    const found = await batchOf(tx, which)
    if (!found) return false
    const { rows, these } = found
    await this.#releaseStorage(tx, rows)
    await tx.run(
      sql`UPDATE idempotency_keys SET body = NULL, location = NULL, octets = 0,
        identity_id = CASE WHEN identity_id IS NULL THEN NULL ELSE '' END WHERE ${these}`,
    )
    return rows.length === batchSize
  }

  /** Releases the storage of these responses to their accounts. */
  async #releaseStorage(tx: Transaction, rows: readonly Batched[]): Promise<void> {
    for (const [account, its] of Map.groupBy(rows, ({ holder }) => holder.slice(0, holder.indexOf('/')))) {
      const octets = its.reduce((sum, row) => sum + row.octets, 0)
      if (octets > 0) await this.#storage.add(tx, account, 'storage_bytes', -octets)
    }
  }

  #replay(row: Row, fingerprint: string, context: string): KeptAnswer | Memo {
    if (row.fingerprint !== fingerprint) {
      throw conflict('This Idempotency-Key was used with another body. Use a new key for a new request.', {
        code: 'idempotency_key_reused',
        param: 'Idempotency-Key',
      })
    }
    const answered = row.status > 1
    if (!answered && row.interrupted === 0) {
      throw conflict('The first request with this Idempotency-Key is still in progress. Try again shortly.', {
        code: 'idempotency_in_flight',
        param: 'Idempotency-Key',
        retryAfter: 1,
      })
    }
    if (row.memo !== null && row.status < 400) return { memo: row.memo }
    if (!answered) {
      throw conflict(
        'The first request with this Idempotency-Key was interrupted by a restart and may have taken effect. ' +
          'Check its result, then use a new key to repeat it if necessary.',
        { code: 'idempotency_interrupted', param: 'Idempotency-Key' },
      )
    }
    if (row.body === null) throw row.octets === 0 ? answerGone() : answerNotKept()
    const body = row.sealed ? this.#seal.open(Buffer.from(row.body, 'base64'), context).toString() : row.body
    return { status: row.status, location: row.location, body }
  }

  #attempt({ caller, key, secret }: IdempotencyClaim, place: Sql, context: string): Attempt {
    const end = (work: (tx: Transaction) => Promise<void>): Promise<void> =>
      this.#settled(place, this.#database.transaction(work))
    return {
      run: (work) =>
        this.#database.marking(async (tx) => {
          const { changes } = await tx.run(sql`UPDATE idempotency_keys SET status = 1 WHERE ${place} AND status <= 1`)
          if (changes === 0) throw takenOver()
        }, work),
      remember: async (tx, memo) => void (await tx.run(sql`UPDATE idempotency_keys SET memo = ${memo} WHERE ${place}`)),
      keep: async ({ status, location, body, identity_id, resource_id, memo }) => {
        const kept = secret ? this.#seal.seal(Buffer.from(body), context).toString('base64') : body
        const size = Buffer.byteLength(kept)
        await end(async (tx) => {
          const available = await this.#storage.available(tx, caller.account_id)
          const fits = size <= largest && size <= available
          const octets = (fits ? size : 0) + key.length + overhead
          // its subject may have been deleted meanwhile
          const { changes } = await tx.run(
            sql`UPDATE idempotency_keys SET status = ${status}, location = ${location},
              body = CASE identity_id WHEN '' THEN NULL ELSE ${fits ? kept : null} END, sealed = ${secret ? 1 : 0},
              identity_id = coalesce(identity_id, ${identity_id}), resource_id = ${resource_id}, memo = coalesce(memo, ${memo}),
              octets = ${octets} WHERE ${place}`,
          )
          if (changes > 0) await this.#storage.add(tx, caller.account_id, 'storage_bytes', octets)
        })
      },
      interrupt: () => end(async (tx) => void (await tx.run(sql`UPDATE idempotency_keys SET run_id = '' WHERE ${place}`))),
      release: () =>
        end(async (tx) => {
          // a call with a memo took effect: the next call is answered from it, as after a restart
          await tx.run(sql`UPDATE idempotency_keys SET run_id = '' WHERE ${place} AND memo IS NOT NULL`)
          await tx.run(sql`DELETE FROM idempotency_keys WHERE ${place} AND memo IS NULL`)
        }),
    }
  }

  /**
   * Rejects as the transaction does that begins or ends a call, which is then interrupted, since nothing here goes on with it; only after an error that
   * `leaves` something.
   */
  async #settled<T>(call: Sql, transaction: Promise<T>, leaves: (error: unknown) => boolean = () => true): Promise<T> {
    try {
      return await transaction
    } catch (error) {
      if (leaves(error) && this.#left.push(call) === 1) void this.#leave()
      throw error
    }
  }

  /** Resolves when what was left is interrupted, or the box stops. */
  async #leave(): Promise<void> {
    while (this.#left.length > 0) {
      const calls = this.#left.slice(0, batchSize)
      try {
        await this.#database.transaction(async (tx) => {
          for (const call of calls) await tx.run(sql`UPDATE idempotency_keys SET run_id = '' WHERE ${call} AND status <= 1`)
        })
        this.#left.splice(0, calls.length)
      } catch (error) {
        // the next start finds them
        if (error instanceof Fault && error.code === 'stopping') return
        await sleep(1000, undefined, { ref: false })
      }
    }
  }
}

/** 409: others took this box for ended before the call began, and one of them does it. */
function takenOver(): Fault {
  return conflict('The request was repeated at another box, which does it: here nothing was done. Try again shortly.', {
    code: 'idempotency_in_flight',
    param: 'Idempotency-Key',
    retryAfter: 1,
  })
}

/** 404: the first call took effect, and its result was deleted since. */
export function answerGone(): Fault {
  return new Fault(
    'not_found',
    'The first request with this Idempotency-Key took effect, and its object was deleted since. Nothing was done now; use a new key to do ' +
      'it again.',
    { code: 'idempotency_answer_gone', param: 'Idempotency-Key' },
  )
}

function answerNotKept(): Fault {
  return conflict(
    `The first request with this Idempotency-Key took effect. Its response was not stored: it exceeded ${largest} bytes, or the storage quota of its account ` +
      '(limits.storage_bytes). Nothing was done now; check with GET, and use a new key to do it again.',
    { code: 'idempotency_answer_not_kept', param: 'Idempotency-Key' },
  )
}

/** The value of an `Idempotency-Key` header. Throws Fault 400. */
export function readIdempotencyKey(header: string): string {
  if (!/^[\x20-\x7e]{1,255}$/.test(header)) {
    throw invalid('Idempotency-Key', 'Idempotency-Key must be 1 to 255 printable ASCII characters.', 'invalid_value')
  }
  return header
}

/** The types of errors that another try, or a corrected call, may not meet. */
const released = new Set<FaultType>(['invalid_request', 'rate_limited', 'internal_error'])

/** True if nobody knows whether the call took effect. */
export function isUnsure(error: unknown): boolean {
  return error instanceof Fault && error.code === 'storage_unsure'
}

/** True if the response is not stored: after a 400, a 429 or a 5xx, and for what waits for a person, the same key may be used again. */
export function releases(error: unknown): boolean {
  return !(error instanceof Fault) || released.has(error.type) || error.code === 'held'
}

type Batched = Record<(typeof primaryKey)[number], string> & { octets: number }

/** A batch of the records that the condition selects, and a condition for them; undefined when there are none. */
async function batchOf(tx: Transaction, which: Sql): Promise<{ rows: Batched[]; these: Sql } | undefined> {
  const columns = raw(primaryKey.join(', '))
  const rows = await tx.all<Batched>(sql`SELECT ${columns}, octets FROM idempotency_keys WHERE ${which} LIMIT ${batchSize}`)
  if (rows.length === 0) return undefined
  const keys = rows.map((row) => sql`(${join(primaryKey.map((name) => row[name]))})`)
  return { rows, these: sql`(${columns}) IN (VALUES ${join(keys)})` }
}

/** The context that binds a sealed response to its row. */
function contextOf({ holder, path, idempotency_key }: Record<string, unknown>): string {
  return `idempotency:${String(holder)}:${String(path)}:${String(idempotency_key)}`
}

/**
 * The owner of a record: a key bound to one identity must not get the response of a wider key; nor a secret that was made with another key, or with
 * another secret of the key.
 */
function holderOf({ caller, secret }: IdempotencyClaim): string {
  const maker = caller.key_id === null ? (caller.session_id ?? '') : `${caller.key_id}.${caller.secret}`
  return [caller.account_id, caller.identity_id ?? '', secret ? maker : ''].join('/')
}

/** Bytes of a body that are hashed at once. */
const slice = 4 * 1024 * 1024

async function fingerprintOf({ body, search }: IdempotencyClaim): Promise<string> {
  const hash = createHash('sha256').update(search).update('\n')
  const turns = new Turns()
  for (let at = 0; at < body.length; at += slice) {
    hash.update(body.subarray(at, at + slice))
    if (turns.due) await turns.yield()
  }
  return (body.length === 0 ? hash.update('{}') : hash).digest('hex')
}
