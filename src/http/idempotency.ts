import { createHash, randomUUID } from 'node:crypto'
import { iso } from '../core/clock.ts'
import type { Clock } from '../core/clock.ts'
import { conflict, Fault, invalid } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { SealedColumn } from '../core/seal.ts'
import { sql } from '../store/database.ts'
import type { Database, Sql, Transaction } from '../store/database.ts'

/** Keeps what must not lie open on disk; `context` binds the sealed bytes to their place. */
export interface Seal {
  seal(bytes: Buffer, context: string): Buffer
  open(bytes: Buffer, context: string): Buffer
}

/** A call that carries an `Idempotency-Key`. */
export interface Claim {
  key: string
  caller: Caller
  method: string
  path: string
  search: string
  body: Uint8Array
  /** The answer carries a secret: kept sealed, and replayed to the same API key or session only. */
  secret: boolean
}

/** An answer as it is kept: of a fault, `body` holds the problem without its request id. */
export interface KeptAnswer {
  status: number
  location: string | null
  body: string
}

/** What an answered call left in place of its answer, or one that was cut off after its change. */
export interface Memo {
  memo: string
}

/** The first call with its key: `run` the handler; once it has settled, exactly one of the other two must follow. */
export interface Attempt {
  run<T>(work: () => Promise<T>): Promise<T>
  /** In a transaction of the handler's: what a repetition is answered from. */
  remember(tx: Transaction, memo: string): Promise<void>
  keep(answer: KeptAnswer): Promise<void>
  release(): Promise<void>
}

interface Row extends KeptAnswer {
  fingerprint: string
  run_id: string
  /** That of the answer; before there is one, 0 while nothing was changed, and 1 from the handler's first commit on. */
  status: number
  sealed: number
  memo: string | null
  created_at: string
}

export const sealedAnswers: SealedColumn = {
  table: 'idempotency_keys',
  column: 'body',
  base64: true,
  only: 'sealed = 1',
  context: contextOf,
}

const day = 24 * 60 * 60 * 1000

/**
 * Answers to calls with an `Idempotency-Key`, kept 24 h. The claim is on disk before the handler runs, and is marked as begun in the
 * handler's first transaction: of a call that a crash cut off it is known whether it changed anything.
 */
export class Idempotency {
  readonly #database: Database
  readonly #seal: Seal
  readonly #clock: Clock
  readonly #run = randomUUID()

  constructor(database: Database, seal: Seal, clock: Clock) {
    this.#database = database
    this.#seal = seal
    this.#clock = clock
  }

  /** What was answered before, or the right to be the first. Throws Fault 409 while neither is so. */
  async begin(claim: Claim): Promise<KeptAnswer | Memo | Attempt> {
    const holder = holderOf(claim)
    const fingerprint = fingerprintOf(claim)
    const place = sql`holder = ${holder} AND method = ${claim.method} AND path = ${claim.path} AND idempotency_key = ${claim.key}`
    const now = this.#clock.now()
    const { claimed, row } = await this.#database.transaction(async (tx) => {
      // what an earlier run of the box claimed and never began did not happen
      await tx.run(
        sql`DELETE FROM idempotency_keys WHERE ${place} AND (created_at < ${iso(now - day)} OR (status = 0 AND run_id <> ${this.#run}))`,
      )
      const taken = await tx.get<{ rowid: number }>(
        sql`INSERT INTO idempotency_keys (holder, method, path, idempotency_key, fingerprint, run_id, status, created_at)
          VALUES (${holder}, ${claim.method}, ${claim.path}, ${claim.key}, ${fingerprint}, ${this.#run}, 0, ${iso(now)})
          ON CONFLICT DO NOTHING RETURNING rowid`,
      )
      if (taken) return { claimed: taken.rowid, row: undefined }
      return { claimed: undefined, row: await tx.get<Row>(sql`SELECT * FROM idempotency_keys WHERE ${place}`) }
    })
    const context = contextOf({ holder, path: claim.path, idempotency_key: claim.key })
    return row ? this.#replay(row, fingerprint, context) : this.#attempt(place, claimed!, claim.secret, context)
  }

  /** Forgets what is older than 24 h; answers how many. */
  async sweep(): Promise<number> {
    const limit = iso(this.#clock.now() - day)
    return await this.#database.transaction(async (tx) => {
      const { changes } = await tx.run(sql`DELETE FROM idempotency_keys WHERE created_at < ${limit}`)
      return changes
    })
  }

  #replay(row: Row, fingerprint: string, context: string): KeptAnswer | Memo {
    if (row.fingerprint !== fingerprint) {
      throw conflict('This Idempotency-Key was used with another body. Use a new key for a new request.', {
        code: 'idempotency_key_reused',
        param: 'Idempotency-Key',
      })
    }
    const answered = row.status > 1
    if (!answered && row.run_id === this.#run) {
      throw conflict('The first request with this Idempotency-Key is still being answered. Try again shortly.', {
        code: 'idempotency_in_flight',
        param: 'Idempotency-Key',
        retryAfter: 1,
      })
    }
    if (row.memo !== null && row.status < 400) return { memo: row.memo }
    if (!answered) {
      throw conflict(
        'The first request with this Idempotency-Key was cut off by a restart after it had begun to take effect. ' +
          'Check, then use a new key if it must be done again.',
        { code: 'idempotency_interrupted', param: 'Idempotency-Key' },
      )
    }
    const body = row.sealed ? this.#seal.open(Buffer.from(row.body, 'base64'), context).toString() : row.body
    return { status: row.status, location: row.location, body }
  }

  #attempt(place: Sql, rowid: number, secret: boolean, context: string): Attempt {
    const write = async (query: Sql): Promise<void> => {
      await this.#database.transaction((tx) => tx.run(query))
    }
    return {
      run: (work) =>
        this.#database.marking(
          (tx) => tx.run(sql`UPDATE idempotency_keys SET status = 1 WHERE rowid = ${rowid} AND status = 0`),
          work,
        ),
      remember: async (tx, memo) => void (await tx.run(sql`UPDATE idempotency_keys SET memo = ${memo} WHERE rowid = ${rowid}`)),
      keep: (answer) => {
        const body = secret ? this.#seal.seal(Buffer.from(answer.body), context).toString('base64') : answer.body
        return write(
          sql`UPDATE idempotency_keys SET status = ${answer.status}, location = ${answer.location}, body = ${body},
            sealed = ${secret ? 1 : 0} WHERE ${place}`,
        )
      },
      release: () =>
        this.#database.transaction(async (tx) => {
          // what left a memo did happen: the next call is answered from it, as after a restart
          await tx.run(sql`UPDATE idempotency_keys SET run_id = '' WHERE ${place} AND memo IS NOT NULL`)
          await tx.run(sql`DELETE FROM idempotency_keys WHERE ${place} AND memo IS NULL`)
        }),
    }
  }
}

/** The value of an `Idempotency-Key` header. Throws Fault 400. */
export function readIdempotencyKey(header: string): string {
  if (!/^[\x20-\x7e]{1,255}$/.test(header)) {
    throw invalid('Idempotency-Key', 'Idempotency-Key must be 1 to 255 printable ASCII characters.', 'invalid_value')
  }
  return header
}

/** Whether what came of a call is not kept: after a 5xx or a rate limit the same key may try again. */
export function releases(error: unknown): boolean {
  return !(error instanceof Fault) || error.type === 'internal_error' || error.type === 'rate_limited'
}

/** What binds a sealed answer to its row. */
function contextOf({ holder, path, idempotency_key }: Record<string, unknown>): string {
  return `idempotency:${String(holder)}:${String(path)}:${String(idempotency_key)}`
}

/** A key bound to one identity must not be answered with what a wider key was told, nor anybody with another's secret. */
function holderOf({ caller, secret }: Claim): string {
  return [caller.account_id, caller.identity_id ?? '', secret ? (caller.key_id ?? caller.session_id ?? '') : ''].join('/')
}

function fingerprintOf({ body, search }: Claim): string {
  const hash = createHash('sha256').update(search).update('\n')
  return hash.update(body.length === 0 ? '{}' : body).digest('hex')
}
