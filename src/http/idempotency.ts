import { createHash, randomUUID } from 'node:crypto'
import { iso } from '../core/clock.ts'
import type { Clock } from '../core/clock.ts'
import { conflict, Fault, invalid } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import { sql } from '../store/database.ts'
import type { Database, Sql } from '../store/database.ts'

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
  /** The answer carries a secret: kept sealed, and replayed to the same API key only. */
  secret: boolean
}

/** An answer as it is kept: of a fault, `body` holds the problem without its request id. */
export interface KeptAnswer {
  status: number
  location: string | null
  body: string
}

/** The first call with its key: exactly one of the two must follow once the handler has settled. */
export interface Attempt {
  keep(answer: KeptAnswer): Promise<void>
  release(): Promise<void>
}

interface Row extends KeptAnswer {
  fingerprint: string
  run_id: string
  status: number
  sealed: number
  created_at: string
}

const day = 24 * 60 * 60 * 1000

/**
 * Answers to calls with an `Idempotency-Key`, kept 24 h: the claim is on disk before the handler runs, so that a crash
 * between the two is known for what it is.
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
  async begin(claim: Claim): Promise<KeptAnswer | Attempt> {
    const holder = holderOf(claim)
    const fingerprint = fingerprintOf(claim)
    const place = sql`holder = ${holder} AND method = ${claim.method} AND path = ${claim.path} AND idempotency_key = ${claim.key}`
    const now = this.#clock.now()
    const row = await this.#database.transaction(async (tx) => {
      await tx.run(sql`DELETE FROM idempotency_keys WHERE ${place} AND created_at < ${iso(now - day)}`)
      const { changes } = await tx.run(
        sql`INSERT INTO idempotency_keys (holder, method, path, idempotency_key, fingerprint, run_id, status, created_at)
          VALUES (${holder}, ${claim.method}, ${claim.path}, ${claim.key}, ${fingerprint}, ${this.#run}, 0, ${iso(now)})
          ON CONFLICT DO NOTHING`,
      )
      return changes === 1 ? undefined : await tx.get<Row>(sql`SELECT * FROM idempotency_keys WHERE ${place}`)
    })
    const context = `idempotency:${holder}:${claim.path}:${claim.key}`
    return row ? this.#replay(row, fingerprint, context) : this.#attempt(place, claim.secret, context)
  }

  /** Forgets what is older than 24 h; answers how many. */
  async sweep(): Promise<number> {
    const limit = iso(this.#clock.now() - day)
    return await this.#database.transaction(async (tx) => {
      const { changes } = await tx.run(sql`DELETE FROM idempotency_keys WHERE created_at < ${limit}`)
      return changes
    })
  }

  #replay(row: Row, fingerprint: string, context: string): KeptAnswer {
    if (row.fingerprint !== fingerprint) {
      throw conflict('This Idempotency-Key was used with another body. Use a new key for a new request.', {
        code: 'idempotency_key_reused',
        param: 'Idempotency-Key',
      })
    }
    if (row.status === 0 && row.run_id === this.#run) {
      throw conflict('The first request with this Idempotency-Key is still being answered. Try again shortly.', {
        code: 'idempotency_in_flight',
        param: 'Idempotency-Key',
        retryAfter: 1,
      })
    }
    if (row.status === 0) {
      throw conflict(
        'The first request with this Idempotency-Key was cut off by a restart, and whether it took effect is unknown. ' +
          'Check, then use a new key if it must be done again.',
        { code: 'idempotency_interrupted', param: 'Idempotency-Key' },
      )
    }
    const body = row.sealed ? this.#seal.open(Buffer.from(row.body, 'base64'), context).toString() : row.body
    return { status: row.status, location: row.location, body }
  }

  #attempt(place: Sql, secret: boolean, context: string): Attempt {
    const write = async (query: Sql): Promise<void> => {
      await this.#database.transaction((tx) => tx.run(query))
    }
    return {
      keep: (answer) => {
        const body = secret ? this.#seal.seal(Buffer.from(answer.body), context).toString('base64') : answer.body
        return write(
          sql`UPDATE idempotency_keys SET status = ${answer.status}, location = ${answer.location}, body = ${body},
            sealed = ${secret ? 1 : 0} WHERE ${place}`,
        )
      },
      release: () => write(sql`DELETE FROM idempotency_keys WHERE ${place}`),
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

/** A key bound to one identity, and a secret, must not be answered with what a wider key was told. */
function holderOf({ caller, secret }: Claim): string {
  return [caller.account_id, caller.identity_id ?? '', secret ? (caller.key_id ?? '') : ''].join('/')
}

function fingerprintOf({ body, search }: Claim): string {
  const hash = createHash('sha256').update(search).update('\n')
  return hash.update(body.length === 0 ? '{}' : body).digest('hex')
}
