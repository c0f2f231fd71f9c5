import { createHash, randomUUID } from 'node:crypto'
import { type Clock, iso } from '../core/clock.ts'
import { conflict, Fault, invalid } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { SealedColumn } from '../core/seal/seal.ts'
import { sweep } from '../core/cron.ts'
import { Turns } from '../core/paced-work.ts'
import { type Database, join, type Reader, sql, type Sql, type Transaction } from '../store/database.ts'

/** Keeps what must not lie open on disk; `context` binds the sealed bytes to their place. */
export interface Seal {
  seal(bytes: Buffer, context: string): Buffer
  open(bytes: Buffer, context: string): Buffer
}

/** The room that accounts have for what is kept of theirs, in octets. */
export interface StorageBudget {
  available(reader: Reader, accountId: string): Promise<number>
  add(tx: Transaction, accountId: string, what: 'storage_bytes', octets: number): Promise<void>
}

/** A call that carries an `Idempotency-Key`. */
export interface IdempotencyClaim {
  key: string
  caller: Caller
  method: string
  path: string
  search: string
  body: Uint8Array
  /** The identity that the path names. */
  identity_id: string | null
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
  keep(answer: KeptAnswer & About): Promise<void>
  release(): Promise<void>
}

/** What an answer is about: it goes with either. */
export interface About {
  identity_id: string | null
  resource_id: string | null
  /** What a repetition is answered from instead, where the handler left nothing. */
  memo: string | null
}

interface Row extends Omit<KeptAnswer, 'body'> {
  body: string | null
  fingerprint: string
  run_id: string
  /** That of the answer; before there is one, 0 while nothing was changed, and 1 from the handler's first commit on. */
  status: number
  sealed: number
  memo: string | null
  /** 0 once it was forgotten. */
  octets: number
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

/** The largest answer that is kept, and what a row takes beside it, in octets. */
const largest = 256 * 1024
const overhead = 256

/** Answers that one transaction forgets. */
const handful = 500

/**
 * Answers to calls with an `Idempotency-Key`, kept 24 h. The claim is on disk before the handler runs, and is marked as begun in the
 * handler's first transaction: of a call that a crash cut off it is known whether it changed anything.
 */
export class Idempotency {
  readonly #database: Database
  readonly #seal: Seal
  readonly #clock: Clock
  readonly #storage: StorageBudget
  readonly #run = randomUUID()

  constructor(parts: { database: Database; seal: Seal; clock: Clock; storage: StorageBudget }) {
    this.#database = parts.database
    this.#seal = parts.seal
    this.#clock = parts.clock
    this.#storage = parts.storage
  }

  /** What was answered before, or the right to be the first. Throws Fault 409 while neither is so. */
  async begin(claim: IdempotencyClaim): Promise<KeptAnswer | Memo | Attempt> {
    const holder = holderOf(claim)
    const fingerprint = await fingerprintOf(claim)
    const place = sql`holder = ${holder} AND method = ${claim.method} AND path = ${claim.path} AND idempotency_key = ${claim.key}`
    const now = this.#clock.now()
    const { claimed, row } = await this.#database.transaction(async (tx) => {
      // what an earlier run of the box claimed and never began did not happen
      const old = sql`${place} AND (created_at < ${iso(now - day)} OR (status = 0 AND run_id <> ${this.#run}))`
      const removed = await tx.get<{ octets: number }>(sql`DELETE FROM idempotency_keys WHERE ${old} RETURNING octets`)
      if (removed && removed.octets > 0) await this.#storage.add(tx, claim.caller.account_id, 'storage_bytes', -removed.octets)
      const taken = await tx.get<{ rowid: number }>(
        sql`INSERT INTO idempotency_keys (holder, method, path, idempotency_key, fingerprint, run_id, status, identity_id, created_at)
          VALUES (${holder}, ${claim.method}, ${claim.path}, ${claim.key}, ${fingerprint}, ${this.#run}, 0, ${claim.identity_id}, ${iso(now)})
          ON CONFLICT DO NOTHING RETURNING rowid`,
      )
      if (taken) return { claimed: taken.rowid, row: undefined }
      return { claimed: undefined, row: await tx.get<Row>(sql`SELECT * FROM idempotency_keys WHERE ${place}`) }
    })
    const context = contextOf({ holder, path: claim.path, idempotency_key: claim.key })
    return row ? this.#replay(row, fingerprint, context) : this.#attempt(claim, place, claimed!, context)
  }

  /** Forgets what is older than 24 h; answers how many. */
  async sweep(): Promise<number> {
    const limit = iso(this.#clock.now() - day)
    let count = 0
    await sweep(() =>
      this.#database.transaction(async (tx) => {
        const found = await some(tx, sql`created_at < ${limit}`)
        if (!found) return false
        const { rows, these } = found
        await this.#giveBack(tx, these)
        await tx.run(sql`DELETE FROM idempotency_keys WHERE ${these}`)
        count += rows
        return rows === handful
      }),
    )
    return count
  }

  /** In the transaction in which an identity goes: what was answered of it is not kept any more, nor what calls under way will answer. */
  async forget(tx: Transaction, identityId: string): Promise<void> {
    const its = sql`identity_id = ${identityId}`
    // of very many the rest goes right after
    if (await this.#empty(tx, its)) tx.afterCommit(() => void this.#emptyAll(its).catch(() => undefined))
  }

  /** The same of anything else that was deleted, by its id. */
  async forgetResource(id: string): Promise<void> {
    const its = sql`resource_id = ${id} AND body IS NOT NULL`
    if (await this.#database.get(sql`SELECT 1 FROM idempotency_keys WHERE ${its}`)) await this.#emptyAll(its)
  }

  async #emptyAll(which: Sql): Promise<void> {
    await sweep(() => this.#database.transaction((tx) => this.#empty(tx, which)))
  }

  /** Empties a handful. Answers whether there may be more. */
  async #empty(tx: Transaction, which: Sql): Promise<boolean> {
    const found = await some(tx, which)
    if (!found) return false
    const { rows, these } = found
    await this.#giveBack(tx, these)
    await tx.run(
      sql`UPDATE idempotency_keys SET body = NULL, location = NULL, octets = 0,
        identity_id = CASE WHEN identity_id IS NULL THEN NULL ELSE '' END WHERE ${these}`,
    )
    return rows === handful
  }

  /** The room that these answers take, to their accounts. */
  async #giveBack(tx: Transaction, which: Sql): Promise<void> {
    const sums = await tx.all<{ account_id: string; octets: number }>(
      sql`SELECT substr(holder, 1, instr(holder, '/') - 1) AS account_id, sum(octets) AS octets FROM idempotency_keys
        WHERE ${which} AND octets > 0 GROUP BY 1`,
    )
    for (const { account_id, octets } of sums) await this.#storage.add(tx, account_id, 'storage_bytes', -octets)
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
    if (row.body === null) throw row.octets === 0 ? answerGone() : answerNotKept()
    const body = row.sealed ? this.#seal.open(Buffer.from(row.body, 'base64'), context).toString() : row.body
    return { status: row.status, location: row.location, body }
  }

  #attempt({ caller, key, secret }: IdempotencyClaim, place: Sql, rowid: number, context: string): Attempt {
    return {
      run: (work) =>
        this.#database.marking(
          (tx) => tx.run(sql`UPDATE idempotency_keys SET status = 1 WHERE rowid = ${rowid} AND status = 0`),
          work,
        ),
      remember: async (tx, memo) => void (await tx.run(sql`UPDATE idempotency_keys SET memo = ${memo} WHERE rowid = ${rowid}`)),
      keep: async ({ status, location, body, identity_id, resource_id, memo }) => {
        const kept = secret ? this.#seal.seal(Buffer.from(body), context).toString('base64') : body
        const size = Buffer.byteLength(kept)
        await this.#database.transaction(async (tx) => {
          const room = await this.#storage.available(tx, caller.account_id)
          const fits = size <= largest && size <= room
          const octets = (fits ? size : 0) + key.length + overhead
          // what it is about may have been deleted while it was answered
          await tx.run(
            sql`UPDATE idempotency_keys SET status = ${status}, location = ${location},
              body = CASE identity_id WHEN '' THEN NULL ELSE ${fits ? kept : null} END, sealed = ${secret ? 1 : 0},
              identity_id = coalesce(identity_id, ${identity_id}), resource_id = ${resource_id}, memo = coalesce(memo, ${memo}),
              octets = ${octets} WHERE ${place}`,
          )
          await this.#storage.add(tx, caller.account_id, 'storage_bytes', octets)
        })
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

/** 404: the call is done, and what it was about was deleted since. */
export function answerGone(): Fault {
  return new Fault(
    'not_found',
    'The first request with this Idempotency-Key took effect, and what it was about was deleted since. Nothing was done now; use a new key to do ' +
      'it again.',
    { code: 'idempotency_answer_gone', param: 'Idempotency-Key' },
  )
}

function answerNotKept(): Fault {
  return conflict(
    `The first request with this Idempotency-Key took effect. Its answer was not kept: it had more than ${largest} octets, or more than its account ` +
      'has room for (limits.storage_bytes). Nothing was done now; look with GET, and use a new key to do it again.',
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

/** Whether what came of a call is not kept: after a 5xx or a rate limit the same key may try again. */
export function releases(error: unknown): boolean {
  return !(error instanceof Fault) || error.type === 'internal_error' || error.type === 'rate_limited'
}

/** A handful of the answers that the condition selects: how many, and the condition that selects these; undefined where there are none. */
async function some(tx: Transaction, which: Sql): Promise<{ rows: number; these: Sql } | undefined> {
  const found = await tx.all<{ rowid: number }>(sql`SELECT rowid FROM idempotency_keys WHERE ${which} LIMIT ${handful}`)
  if (found.length === 0) return undefined
  return { rows: found.length, these: sql`rowid IN (${join(found.map(({ rowid }) => rowid))})` }
}

/** What binds a sealed answer to its row. */
function contextOf({ holder, path, idempotency_key }: Record<string, unknown>): string {
  return `idempotency:${String(holder)}:${String(path)}:${String(idempotency_key)}`
}

/** A key bound to one identity must not be answered with what a wider key was told, nor anybody with another's secret. */
function holderOf({ caller, secret }: IdempotencyClaim): string {
  return [caller.account_id, caller.identity_id ?? '', secret ? (caller.key_id ?? caller.session_id ?? '') : ''].join('/')
}

/** Octets of a body that are hashed in one go. */
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
