import { type Database, empty, join, type Reader, type Run, sql, type Sql, type Transaction } from '../store/database.ts'
import { AnswerStorage, type StorageCounter } from './answer-storage.ts'
import { answerText, type AttemptReport, type Outcome } from './courier.ts'
import { type ClaimedDelivery, healthLevels, type Health, type InFlight } from './in-flight.ts'
import {
  type AccountLane,
  batches,
  earliest,
  healths,
  type Lane,
  maxBatch,
  notElsewhere,
  setDue,
  unchanged,
  updateLanes,
} from './lanes.ts'
import { alreadyEnded } from './recovery.ts'

/** The most attempts of a delivery that are kept when it is restarted: callers restart one as often as they like. */
const maxAttempts = 50

/** A delivery to enqueue; `lane` is its destination, which must not delay others. */
export interface NewDelivery {
  id: string
  kind: string
  lane: string
  /** Accounts take turns. Left out for the box itself. */
  account_id?: string
  load: unknown
  /** Not before this time, ISO 8601. */
  due?: string
}

/** The result of an attempt; without `next` there is no further one. */
export interface Result extends AttemptReport {
  outcome: Outcome | 'interrupted'
  answer: unknown
  /** The time of the next attempt, ISO 8601. */
  next?: string
  /** True if it was slow: its lane then shares the capacity of slow lanes. */
  slow?: boolean
  /** True if the next attempt comes earlier than planned and so takes no place in the schedule. */
  early?: boolean
}

export interface FinishedAttempt {
  claim: ClaimedDelivery
  result: Result
}

/** How many of a batch lanes of this health may fill, so that the next health is always served too. */
const batchShare = { [1]: 40, [0]: 56, [-1]: maxBatch }

/** The condition that leaves out lanes of these kinds. */
function without(kinds: readonly string[]): Sql {
  return kinds.length === 0 ? empty : sql` AND kind NOT IN (${join(kinds)})`
}

/** An account with waiting deliveries; `stopped` is 1 while it is stopped. */
interface Turn {
  account_id: string
  stopped: number
}

/** The tables of the queue. Each change of a delivery also updates the next due time of its lane and account. */
export class QueueStore {
  readonly #run: Run
  readonly #answers: AnswerStorage
  /** Kinds that are delivered also while their account is stopped. */
  readonly #goingOn: string[] = []

  constructor(run: Run, storage?: StorageCounter) {
    this.#run = run
    this.#answers = new AnswerStorage(storage)
  }

  /** Registers a kind; `goesOn` is true if it is delivered also while its account is stopped. */
  serve(kind: string, goesOn: boolean): void {
    if (goesOn) this.#goingOn.push(kind)
  }

  async add(tx: Transaction, deliveries: readonly NewDelivery[], now: string): Promise<void> {
    for (const some of batches(deliveries)) {
      const rows = some.map(
        ({ id, kind, lane, account_id = '', load, due = now }) =>
          sql`(${id}, ${kind}, ${lane}, ${account_id}, ${JSON.stringify(load)}, ${due}, ${now})`,
      )
      await tx.run(sql`INSERT INTO deliveries_queue (id, kind, lane, account_id, load, due_at, created_at) VALUES ${join(rows)}`)
      await setDue(tx, some, now)
    }
  }

  /** Removes a delivery that was never attempted. */
  async cancel(tx: Transaction, id: string): Promise<boolean> {
    const { changes } = await tx.run(sql`DELETE FROM deliveries_queue WHERE id = ${id} AND state = 'waiting' AND attempts = 0`)
    return changes === 1
  }

  /** Ends a waiting delivery as failed, with an optional reason. Returns whether it waited. */
  async abandon(tx: Transaction, id: string, now: string, reason: string | null = null): Promise<boolean> {
    const ended = sql`state = 'failed', ended_at = ${now}, reason = ${reason}`
    return (await tx.run(sql`UPDATE deliveries_queue SET ${ended} WHERE id = ${id} AND state = 'waiting'`)).changes === 1
  }

  /** Changes the due time of a delivery that was never attempted. */
  postpone(tx: Transaction, id: string, due: string): Promise<boolean> {
    return this.#move(tx, id, due, sql`attempts = 0`)
  }

  /** Makes a waiting delivery due now, at its place in the schedule. Returns whether it waited. */
  retryNow(tx: Transaction, id: string, now: string): Promise<boolean> {
    return this.#move(tx, id, now, sql`due_at > ${now}`)
  }

  /** Restarts a delivery at the beginning of its schedule, and removes its oldest attempts. Returns false while an attempt is running. */
  async retry(tx: Transaction, id: string, now: string): Promise<boolean> {
    const row = await tx.get<AccountLane & { seq: number; attempts: number }>(
      sql`UPDATE deliveries_queue SET state = 'waiting', tries = 0, due_at = ${now}, ended_at = NULL, reason = NULL
        WHERE id = ${id} AND state <> 'running' RETURNING seq, attempts, kind, lane, account_id`,
    )
    if (!row) return false
    await this.#answers.removeAttempts(tx, row, row.attempts - maxAttempts)
    await setDue(tx, [row], now)
    return true
  }

  /** Closes a lane: nothing in it is claimed, and its deliveries are removed later. */
  async closeLane(tx: Transaction, { kind, lane, account_id }: AccountLane): Promise<void> {
    await tx.run(sql`UPDATE delivery_lanes SET due_at = NULL, closed = 1 WHERE kind = ${kind} AND lane = ${lane}`)
    await tx.run(
      sql`INSERT INTO delivery_lanes (kind, lane, account_id, due_at, closed) VALUES (${kind}, ${lane}, ${account_id}, NULL, 1)
        ON CONFLICT DO NOTHING`,
    )
  }

  /** True if deliveries of any kind of an account that is not stopped are due in healthy lanes. */
  async hasDue(reader: Reader, account_id: string, now: string): Promise<boolean> {
    const due = await reader.get(
      sql`SELECT 1 FROM delivery_lanes WHERE sound = 1 AND account_id = ${account_id} AND due_at <= ${now}
        AND NOT EXISTS (SELECT 1 FROM stopped_accounts WHERE stopped_accounts.account_id = ${account_id}) LIMIT 1`,
    )
    return due !== undefined
  }

  /** The time of the next delivery for which there is capacity. */
  async nextDue(reader: Reader, inFlight: InFlight): Promise<string | undefined> {
    // mostly nothing waits, in lanes of any health
    const waiting = sql`SELECT 1 FROM delivery_lanes WHERE sound IN (${join([...healthLevels])}) AND due_at IS NOT NULL LIMIT 1`
    if (!(await reader.get(waiting))) return undefined
    const dues: string[] = []
    for (const health of healthLevels) {
      if (inFlight.available(health) <= 0) continue
      for (const account of await this.#accounts(reader, inFlight, health)) {
        const row = await reader.get<{ due_at: string }>(
          sql`SELECT due_at FROM delivery_lanes WHERE ${this.#lanesOf(account, health)}
            AND due_at IS NOT NULL${without(inFlight.fullKinds())}${notElsewhere(this.#run)} ORDER BY due_at LIMIT 1`,
        )
        if (row) dues.push(row.due_at)
      }
    }
    return dues.toSorted()[0]
  }

  /** Claims due deliveries, a share of each account and lane, and records that an attempt begins. */
  async claim(tx: Transaction, now: string, inFlight: InFlight): Promise<ClaimedDelivery[]> {
    const claims: ClaimedDelivery[] = []
    for (const health of healthLevels) {
      const available = (): number => Math.min(inFlight.available(health), batchShare[health]) - claims.length
      if (available() <= 0) continue
      const accounts = await this.#accounts(tx, inFlight, health, claims.at(-1)?.account_id)
      for (const [index, account] of accounts.entries()) {
        const free = inFlight.availableToAccount(account.account_id, health)
        const share = Math.min(Math.ceil(available() / (accounts.length - index)), free)
        if (share <= 0) break
        const taken = await this.#claimOf(tx, { account, health, now, share }, inFlight, claims)
        claims.push(...taken)
      }
    }
    await this.#begin(tx, claims, now)
    return claims
  }

  /** Claims a share of the due deliveries of one account, some from each of its lanes. */
  async #claimOf(
    tx: Transaction,
    { account, health, now, share }: { account: Turn; health: Health; now: string; share: number },
    inFlight: InFlight,
    claimed: readonly ClaimedDelivery[],
  ): Promise<ClaimedDelivery[]> {
    const own: ClaimedDelivery[] = []
    const lanes = await tx.all<AccountLane>(
      sql`SELECT kind, lane, account_id FROM delivery_lanes WHERE ${this.#lanesOf(account, health)}
        AND due_at <= ${now}${without(inFlight.fullKinds(claimed))}${notElsewhere(this.#run)} ORDER BY due_at LIMIT ${share}`,
    )
    const [full, others]: [AccountLane[], AccountLane[]] = [[], []]
    for (const lane of lanes) {
      // a lane that got nothing keeps its place
      if (own.length >= share) break
      const left = inFlight.availableForKind(lane.kind, [...claimed, ...own])
      if (left <= 0) continue
      const beside = claimed.filter((claim) => claim.kind === lane.kind && claim.lane === lane.lane).length
      const max = Math.min(inFlight.availableInLane(lane.kind, lane.lane, health) - beside, left)
      const taken = await this.#take(tx, { ...lane, health }, now, Math.min(max, share - own.length))
      own.push(...taken)
      // a full lane is served again when one of its attempts ends
      if (taken.length >= max) full.push(lane)
      else others.push(lane)
    }
    await updateLanes(tx, full, sql`NULL`)
    await updateLanes(tx, others, earliest(now))
    return own
  }

  /** The condition of the lanes of an account. Those of a stopped one are found by kind: very many others may be due in it. */
  #lanesOf({ account_id, stopped }: Turn, health: Health): Sql {
    if (stopped === 0) return sql`sound = ${health} AND account_id = ${account_id}`
    // with a sum, as the index of what is due has no kind
    return sql`kind IN (${join(['', ...this.#goingOn])}) AND account_id = ${account_id} AND sound + 0 = ${health}`
  }

  /** Accounts with waiting deliveries that are below their limit, in the order of turns. Takes one index step for each account. */
  async #accounts(reader: Reader, inFlight: InFlight, health: Health, served = inFlight.served): Promise<Turn[]> {
    const next = sql`SELECT min(account_id) FROM delivery_lanes WHERE sound = ${health} AND due_at IS NOT NULL`
    const rows = await reader.all<Turn>(
      sql`WITH RECURSIVE accounts (account_id) AS (SELECT (${next}) UNION ALL
        SELECT (${next} AND delivery_lanes.account_id > accounts.account_id) FROM accounts WHERE accounts.account_id IS NOT NULL)
        SELECT account_id, EXISTS (SELECT 1 FROM stopped_accounts WHERE stopped_accounts.account_id = accounts.account_id) AS stopped
        FROM accounts WHERE account_id IS NOT NULL`,
    )
    const full = inFlight.fullAccounts(health)
    const free = rows.filter(({ account_id }) => !full.includes(account_id))
    const turn = free.findIndex(({ account_id }) => account_id > served)
    return turn === -1 ? free : [...free.slice(turn), ...free.slice(0, turn)]
  }

  /** Stores the results of attempts in this order; equal results share a statement. Returns those that had no result yet. */
  async record(tx: Transaction, all: readonly FinishedAttempt[], now: string): Promise<readonly FinishedAttempt[]> {
    const ended = await alreadyEnded(
      tx,
      this.#run,
      all.map(({ claim }) => claim),
    )
    const ends = ended.size === 0 ? all : all.filter(({ claim }) => !ended.has(claim))
    for (const alike of Map.groupBy(ends, alikeBy).values()) {
      const [{ claim, result }] = alike as [FinishedAttempt]
      const answer = answerText(result.answer)
      for (const some of batches(alike)) {
        if (claim.attempt > 1) {
          await tx.run(
            sql`UPDATE delivery_attempts SET ended_at = ${now}, outcome = ${result.outcome}, answer = ${answer}
              WHERE seq IN (${join(some.map((end) => end.claim.attempt_seq))})`,
          )
        }
        const ofFirst = sql`, first_ended_at = ${now}, first_outcome = ${result.outcome}, first_answer = ${answer}`
        await tx.run(
          sql`UPDATE deliveries_queue SET ${stateAfter(alike[0]!, now)}${claim.attempt === 1 ? ofFirst : empty}
            WHERE seq IN (${join(some.map((end) => end.claim.seq))})`,
        )
      }
    }
    for (const { claim, result } of ends) await this.#answers.add(tx, claim, answerText(result.answer))
    const lanes = new Map<string, Lane & { health: Sql }>()
    for (const { claim, result } of ends) {
      const { kind, lane } = claim
      const key = `${kind} ${lane}`
      const before = lanes.get(key)?.health ?? unchanged
      const known = result.outcome === 'done' || result.outcome === 'deferred'
      lanes.set(key, {
        kind,
        lane,
        health: known ? healths[result.slow ? -1 : result.outcome === 'done' ? 1 : 0] : before,
      })
    }
    for (const [state, alike] of Map.groupBy(lanes.values(), (lane) => lane.health))
      await updateLanes(tx, alike, earliest(now), state)
    return ends
  }

  /** Removes a batch of the deliveries of closed lanes and of those that ended before `horizon`. Returns whether there is more. */
  async clear(database: Database, horizon: string): Promise<boolean> {
    const closed = await database.get<Lane>(sql`SELECT kind, lane FROM delivery_lanes WHERE closed = 1 LIMIT 1`)
    const old = sql`SELECT seq FROM deliveries_queue WHERE ended_at < ${horizon} LIMIT ${maxBatch}`
    const orphaned =
      closed && sql`SELECT seq FROM deliveries_queue WHERE kind = ${closed.kind} AND lane = ${closed.lane} LIMIT ${maxBatch}`
    if (!closed && !(await database.get(old))) return false
    return database.transaction(async (tx) => {
      const removed = await tx.all<{ account_id: string; octets: number }>(
        sql`DELETE FROM deliveries_queue WHERE seq IN (${orphaned ?? old}) RETURNING account_id, octets`,
      )
      await this.#answers.release(tx, removed)
      if (!closed || removed.length === maxBatch) return removed.length > 0
      const { changes } = await tx.run(sql`DELETE FROM delivery_lanes WHERE kind = ${closed.kind} AND lane = ${closed.lane}`)
      return removed.length + changes > 0
    })
  }

  async #move(tx: Transaction, id: string, due: string, which: Sql): Promise<boolean> {
    const row = await tx.get<AccountLane>(
      sql`UPDATE deliveries_queue SET due_at = ${due} WHERE id = ${id} AND state = 'waiting' AND ${which}
        RETURNING kind, lane, account_id`,
    )
    // a due time that is too early costs only one query
    if (row) await setDue(tx, [row], due)
    return row !== undefined
  }

  async #take(
    tx: Transaction,
    { kind, lane, account_id, health }: AccountLane & Pick<ClaimedDelivery, 'health'>,
    now: string,
    limit: number,
  ): Promise<ClaimedDelivery[]> {
    if (limit <= 0) return []
    const rows = await tx.all<Pick<ClaimedDelivery, 'seq' | 'id' | 'tries' | 'created_at'> & { load: string; attempts: number }>(
      sql`SELECT seq, id, load, attempts, tries, created_at FROM deliveries_queue WHERE kind = ${kind} AND lane = ${lane}
        AND account_id = ${account_id} AND state = 'waiting' AND due_at <= ${now} ORDER BY due_at, seq LIMIT ${limit}`,
    )
    return rows.map(({ attempts, tries, load, ...row }) => {
      return {
        ...row,
        load: JSON.parse(load) as unknown,
        kind,
        lane,
        account_id,
        attempt: attempts + 1,
        tries: tries + 1,
        attempt_seq: 0,
        health,
      }
    })
  }

  /** Records attempts before they are made. */
  async #begin(tx: Transaction, claims: ClaimedDelivery[], now: string): Promise<void> {
    const made = new Map<number, number>()
    for (const some of batches(claims)) {
      const rows = join(some.map(({ seq }) => seq))
      await tx.run(
        sql`UPDATE deliveries_queue SET state = 'running', run_id = ${this.#run.id}, attempts = attempts + 1, tries = tries + 1,
          first_started_at = CASE attempts WHEN 0 THEN ${now} ELSE first_started_at END WHERE seq IN (${rows})`,
      )
    }
    for (const some of batches(claims.filter(({ attempt }) => attempt > 1))) {
      const rows = join(some.map(({ seq }) => seq))
      const attempts = await tx.all<{ seq: number; delivery_seq: number }>(
        sql`INSERT INTO delivery_attempts (delivery_seq, number, started_at) SELECT seq, attempts, ${now} FROM deliveries_queue
          WHERE seq IN (${rows}) RETURNING seq, delivery_seq`,
      )
      for (const { seq, delivery_seq } of attempts) made.set(delivery_seq, seq)
    }
    for (const claim of claims) claim.attempt_seq = made.get(claim.seq) ?? 0
  }
}

/** The key of results that one statement can store together. */
function alikeBy({ claim, result }: FinishedAttempt): string {
  const { outcome, answer, next, early = false } = result
  // a delivery that is tried again has its own place in the schedule
  const place = next === undefined ? '' : `${next} ${claim.tries} ${early}`
  return `${Math.min(claim.attempt, 2)} ${outcome} ${place} ${answerText(answer)}`
}

function stateAfter({ claim, result: { outcome, next, early } }: FinishedAttempt, now: string): Sql {
  if (next === undefined) return sql`state = ${outcome === 'done' ? 'done' : 'failed'}, ended_at = ${now}`
  // an attempt that the box aborted does not count either
  const counted = outcome === 'interrupted' || early ? claim.tries - 1 : claim.tries
  return sql`state = 'waiting', tries = ${counted}, due_at = ${next}`
}
