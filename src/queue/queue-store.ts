import { type Database, empty, join, type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import type { AttemptReport, Outcome } from './courier.ts'
import { type ClaimedDelivery, everyHealth, type Health, type InFlight } from './in-flight.ts'

/** Rows handled in one transaction, or by one statement, at most: neither may hold the event loop. */
export const slice = 64

/** Handfuls of few different sizes, so that there are few different statements. */
export function* few<One>(all: readonly One[]): Generator<readonly One[]> {
  for (let first = 0; first < all.length;) {
    const size = 2 ** Math.floor(Math.log2(Math.min(all.length - first, slice)))
    yield all.slice(first, first + size)
    first += size
  }
}

/** What leaves the box: `lane` is the destination that must not delay others. */
export interface Shipment {
  id: string
  kind: string
  lane: string
  /** Whose it is: accounts take turns. Left out for the box's own. */
  account_id?: string
  load: unknown
  /** Not before this time, ISO 8601. */
  due?: string
}

/** How an attempt is written down; without `next` there is no further one. */
export interface Result extends AttemptReport {
  outcome: Outcome | 'interrupted'
  answer: string
  /** When the next attempt is due, ISO 8601. */
  next?: string
  /** Whether it took long: that lane's attempts wait for each other and for their like only. */
  slow?: boolean
  /** Whether the next attempt comes sooner than planned: it takes no place in the schedule. */
  hurried?: boolean
}

/** An attempt that is over. */
export interface End {
  claim: ClaimedDelivery
  result: Result
}

type Lane = Pick<ClaimedDelivery, 'kind' | 'lane'>
type AccountLane = Pick<ClaimedDelivery, 'kind' | 'lane' | 'account_id'>

/** Of those, the part that is full once lanes of this kind were looked at: however busy they are, the next are looked at too. */
const part = { [1]: 40, [0]: 56, [-1]: slice }

/** The condition that leaves out lanes of these kinds, which keep their places. */
function without(kinds: readonly string[]): Sql {
  return kinds.length === 0 ? empty : sql` AND kind NOT IN (${join(kinds)})`
}

/** The queue's tables: each change of a delivery also keeps the next due time of its account's part of the lane. */
export class QueueStore {
  /** The account that was served last: it is the turn of those after it. */
  #served = ''

  async add(tx: Transaction, shipments: readonly Shipment[], now: string): Promise<void> {
    for (const some of few(shipments)) {
      const rows = some.map(
        ({ id, kind, lane, account_id = '', load, due = now }) =>
          sql`(${id}, ${kind}, ${lane}, ${account_id}, ${JSON.stringify(load)}, ${due}, ${now})`,
      )
      await tx.run(sql`INSERT INTO deliveries_queue (id, kind, lane, account_id, load, due_at, created_at) VALUES ${join(rows)}`)
      await this.#due(tx, some, now)
    }
  }

  /** Removes a delivery that no attempt was made of. */
  async cancel(tx: Transaction, id: string): Promise<boolean> {
    const { changes } = await tx.run(sql`DELETE FROM deliveries_queue WHERE id = ${id} AND state = 'waiting' AND attempts = 0`)
    return changes === 1
  }

  /** Ends a delivery that waits; `reason` says who did, where that is not told elsewhere. Answers whether it waited. */
  async abandon(tx: Transaction, id: string, now: string, reason: string | null = null): Promise<boolean> {
    const ended = sql`state = 'failed', ended_at = ${now}, reason = ${reason}`
    return (await tx.run(sql`UPDATE deliveries_queue SET ${ended} WHERE id = ${id} AND state = 'waiting'`)).changes === 1
  }

  /** Moves a delivery that no attempt was made of. */
  postpone(tx: Transaction, id: string, due: string): Promise<boolean> {
    return this.#move(tx, id, due, sql`attempts = 0`)
  }

  /** Makes a delivery that waits due now, at its place in the schedule. Answers whether it waited. */
  hurry(tx: Transaction, id: string, now: string): Promise<boolean> {
    return this.#move(tx, id, now, sql`due_at > ${now}`)
  }

  /** From the beginning of the schedule. Answers false when an attempt is under way. */
  async again(tx: Transaction, id: string, now: string): Promise<boolean> {
    const row = await tx.get<AccountLane>(
      sql`UPDATE deliveries_queue SET state = 'waiting', tries = 0, due_at = ${now}, ended_at = NULL, reason = NULL
        WHERE id = ${id} AND state <> 'running' RETURNING kind, lane, account_id`,
    )
    if (row) await this.#due(tx, [row], now)
    return row !== undefined
  }

  /** Nothing is taken from this lane any more; what is in it is cleared later. */
  async close(tx: Transaction, { kind, lane, account_id }: AccountLane): Promise<void> {
    await tx.run(sql`UPDATE delivery_lanes SET due_at = NULL, closed = 1 WHERE kind = ${kind} AND lane = ${lane}`)
    await tx.run(
      sql`INSERT INTO delivery_lanes (kind, lane, account_id, due_at, closed) VALUES (${kind}, ${lane}, ${account_id}, NULL, 1)
        ON CONFLICT DO NOTHING`,
    )
  }

  /** When the next delivery is due for which there is room. */
  async nextDue(reader: Reader, inFlight: InFlight): Promise<string | undefined> {
    const dues: string[] = []
    for (const sound of everyHealth) {
      if (inFlight.room(sound) <= 0) continue
      for (const account of await this.#accounts(reader, inFlight, sound)) {
        const row = await reader.get<{ due_at: string }>(
          sql`SELECT due_at FROM delivery_lanes WHERE sound = ${sound} AND account_id = ${account}
            AND due_at IS NOT NULL${without(inFlight.full())} ORDER BY due_at LIMIT 1`,
        )
        if (row) dues.push(row.due_at)
      }
    }
    return dues.toSorted()[0]
  }

  /** Takes what is due, a little from each account and lane, and writes down that an attempt begins. */
  async claim(tx: Transaction, now: string, inFlight: InFlight): Promise<ClaimedDelivery[]> {
    const claims: ClaimedDelivery[] = []
    for (const sound of everyHealth) {
      const room = (): number => Math.min(inFlight.room(sound), part[sound]) - claims.length
      if (room() <= 0) continue
      const accounts = await this.#accounts(tx, inFlight, sound)
      for (const [index, account] of accounts.entries()) {
        const share = Math.min(Math.ceil(room() / (accounts.length - index)), inFlight.roomFor(account, sound))
        if (share <= 0) break
        const taken = await this.#claimOf(tx, { account, sound, now, share }, inFlight, claims)
        claims.push(...taken)
        if (taken.length > 0) this.#served = account
      }
    }
    await this.#begin(tx, claims, now)
    return claims
  }

  /** A share of what is due of one account, a little from each of its lanes. */
  async #claimOf(
    tx: Transaction,
    { account, sound, now, share }: { account: string; sound: Health; now: string; share: number },
    inFlight: InFlight,
    claimed: readonly ClaimedDelivery[],
  ): Promise<ClaimedDelivery[]> {
    const own: ClaimedDelivery[] = []
    const lanes = await tx.all<AccountLane>(
      sql`SELECT kind, lane, account_id FROM delivery_lanes WHERE sound = ${sound} AND account_id = ${account}
        AND due_at <= ${now}${without(inFlight.full(claimed))} ORDER BY due_at LIMIT ${share}`,
    )
    const [full, others]: [AccountLane[], AccountLane[]] = [[], []]
    for (const lane of lanes) {
      // who got nothing keeps its place
      if (own.length >= share) break
      const left = inFlight.roomOf(lane.kind, [...claimed, ...own])
      if (left <= 0) continue
      const beside = claimed.filter((claim) => claim.kind === lane.kind && claim.lane === lane.lane).length
      const width = Math.min(inFlight.roomIn(lane.kind, lane.lane, sound) - beside, left)
      const taken = await this.#take(tx, { ...lane, sound }, now, Math.min(width, share - own.length))
      own.push(...taken)
      // a full lane is looked at again when one of its attempts is over
      if (taken.length >= width) full.push(lane)
      else others.push(lane)
    }
    await this.#settle(tx, full, sql`NULL`)
    await this.#settle(tx, others, earliest(now))
    return own
  }

  /** Accounts with something due now or later for which they have room, by turn. One step of an index for each, however much they have. */
  async #accounts(reader: Reader, inFlight: InFlight, sound: Health): Promise<string[]> {
    const next = sql`SELECT min(account_id) FROM delivery_lanes WHERE sound = ${sound} AND due_at IS NOT NULL`
    const rows = await reader.all<{ account_id: string }>(
      sql`WITH RECURSIVE accounts (account_id) AS (SELECT (${next}) UNION ALL
        SELECT (${next} AND delivery_lanes.account_id > accounts.account_id) FROM accounts WHERE accounts.account_id IS NOT NULL)
        SELECT account_id FROM accounts WHERE account_id IS NOT NULL`,
    )
    const full = inFlight.fullAccounts(sound)
    const free = rows.map(({ account_id }) => account_id).filter((account) => !full.includes(account))
    const turn = free.findIndex((account) => account > this.#served)
    return turn === -1 ? free : [...free.slice(turn), ...free.slice(0, turn)]
  }

  /** Writes down how attempts went, in this order; those that went alike together. */
  async record(tx: Transaction, ends: readonly End[], now: string): Promise<void> {
    for (const alike of Map.groupBy(ends, ({ result }) => `${result.outcome} ${result.answer}`).values()) {
      const { outcome, answer } = alike[0]!.result
      for (const some of few(alike)) {
        await tx.run(
          sql`UPDATE delivery_attempts SET ended_at = ${now}, outcome = ${outcome}, answer = ${answer}
            WHERE seq IN (${join(some.map(({ claim }) => claim.attempt_seq))})`,
        )
      }
    }
    const over = ends.filter(({ result }) => result.next === undefined)
    for (const [state, alike] of Map.groupBy(over, ({ result }) => (result.outcome === 'done' ? 'done' : 'failed'))) {
      for (const some of few(alike)) {
        const rows = join(some.map(({ claim }) => claim.seq))
        await tx.run(sql`UPDATE deliveries_queue SET state = ${state}, ended_at = ${now} WHERE seq IN (${rows})`)
      }
    }
    for (const { claim, result } of ends) {
      if (result.next === undefined) continue
      // neither does an attempt count that we cut off ourselves
      const counted = result.outcome === 'interrupted' || result.hurried ? claim.tries - 1 : claim.tries
      await tx.run(
        sql`UPDATE deliveries_queue SET state = 'waiting', tries = ${counted}, due_at = ${result.next} WHERE seq = ${claim.seq}`,
      )
    }
    const lanes = new Map<string, Lane & { sound: Sql }>()
    for (const { claim, result } of ends) {
      const { kind, lane } = claim
      const key = `${kind} ${lane}`
      const before = lanes.get(key)?.sound ?? unchanged
      const known = result.outcome === 'done' || result.outcome === 'deferred'
      lanes.set(key, {
        kind,
        lane,
        sound: known ? states[result.slow ? -1 : result.outcome === 'done' ? 1 : 0] : before,
      })
    }
    for (const [state, alike] of Map.groupBy(lanes.values(), (lane) => lane.sound))
      await this.#settle(tx, alike, earliest(now), state)
  }

  /** What a former run had under way is due again, under the same id. Answers how many. */
  async recover(tx: Transaction, now: string): Promise<number> {
    const rows = await tx.all<Lane & { seq: number }>(
      sql`UPDATE deliveries_queue SET state = 'waiting', due_at = ${now} WHERE state = 'running' RETURNING seq, kind, lane`,
    )
    for (const { seq, kind, lane } of rows) {
      await tx.run(
        sql`UPDATE delivery_attempts SET ended_at = ${now}, outcome = 'interrupted' WHERE delivery_seq = ${seq} AND outcome IS NULL`,
      )
      await this.#settle(tx, [{ kind, lane }], earliest(now))
    }
    return rows.length
  }

  /** Clears a little of what closed lanes hold and of what ended before `horizon`. Answers whether there is more. */
  async clear(database: Database, horizon: string): Promise<boolean> {
    const closed = await database.get<Lane>(sql`SELECT kind, lane FROM delivery_lanes WHERE closed = 1 LIMIT 1`)
    const old = sql`SELECT seq FROM deliveries_queue WHERE ended_at < ${horizon} LIMIT ${slice}`
    const orphaned =
      closed && sql`SELECT seq FROM deliveries_queue WHERE kind = ${closed.kind} AND lane = ${closed.lane} LIMIT ${slice}`
    if (!closed && !(await database.get(old))) return false
    return database.transaction(async (tx) => {
      let { changes } = await tx.run(sql`DELETE FROM deliveries_queue WHERE seq IN (${orphaned ?? old})`)
      if (closed && changes < slice) {
        changes += (await tx.run(sql`DELETE FROM delivery_lanes WHERE kind = ${closed.kind} AND lane = ${closed.lane}`)).changes
      }
      return changes > 0
    })
  }

  /**
   * Lanes in which something waits although they have no due time (there should be none) get one; lanes that hold nothing go. What waits
   * for longer than anything can, until after `far`, was put off by a clock that ran ahead: it is due now. What was never tried and is
   * due later than it was made waits on purpose.
   */
  async mend(tx: Transaction, now: string, far: string): Promise<void> {
    const stranded = await tx.all<Lane>(sql`SELECT kind, lane FROM delivery_lanes WHERE sound IN (-1, 0, 1) AND due_at > ${far}`)
    for (const { kind, lane } of stranded) {
      await tx.run(
        sql`UPDATE deliveries_queue SET due_at = ${now} WHERE kind = ${kind} AND lane = ${lane} AND state = 'waiting' AND due_at > ${far}
          AND (attempts > 0 OR due_at <= created_at)`,
      )
      await this.#settle(tx, [{ kind, lane }], earliest(now))
    }
    await tx.run(
      sql`UPDATE delivery_lanes SET due_at = (SELECT min(due_at) FROM deliveries_queue AS d
        WHERE d.kind = delivery_lanes.kind AND d.lane = delivery_lanes.lane AND d.account_id = delivery_lanes.account_id
        AND d.state = 'waiting') WHERE due_at IS NULL AND closed = 0`,
    )
    await tx.run(
      sql`DELETE FROM delivery_lanes WHERE due_at IS NULL AND closed = 0 AND NOT EXISTS
        (SELECT 1 FROM deliveries_queue AS d WHERE d.kind = delivery_lanes.kind AND d.lane = delivery_lanes.lane
          AND d.account_id = delivery_lanes.account_id)`,
    )
  }

  async #move(tx: Transaction, id: string, due: string, which: Sql): Promise<boolean> {
    const row = await tx.get<AccountLane>(
      sql`UPDATE deliveries_queue SET due_at = ${due} WHERE id = ${id} AND state = 'waiting' AND ${which}
        RETURNING kind, lane, account_id`,
    )
    // a lane that is looked at too early is only looked at
    if (row) await this.#due(tx, [row], due)
    return row !== undefined
  }

  async #take(
    tx: Transaction,
    { kind, lane, account_id, sound }: AccountLane & Pick<ClaimedDelivery, 'sound'>,
    now: string,
    limit: number,
  ): Promise<ClaimedDelivery[]> {
    if (limit <= 0) return []
    const rows = await tx.all<Pick<ClaimedDelivery, 'seq' | 'id' | 'load' | 'tries' | 'created_at'> & { attempts: number }>(
      sql`SELECT seq, id, load, attempts, tries, created_at FROM deliveries_queue WHERE kind = ${kind} AND lane = ${lane}
        AND account_id = ${account_id} AND state = 'waiting' AND due_at <= ${now} ORDER BY due_at, seq LIMIT ${limit}`,
    )
    return rows.map(({ attempts, tries, ...row }) => {
      return { ...row, kind, lane, account_id, attempt: attempts + 1, tries: tries + 1, attempt_seq: 0, sound }
    })
  }

  /** The attempts are on record before they are made. */
  async #begin(tx: Transaction, claims: ClaimedDelivery[], now: string): Promise<void> {
    const made = new Map<number, number>()
    for (const some of few(claims)) {
      const rows = join(some.map(({ seq }) => seq))
      await tx.run(
        sql`UPDATE deliveries_queue SET state = 'running', attempts = attempts + 1, tries = tries + 1 WHERE seq IN (${rows})`,
      )
      const attempts = await tx.all<{ seq: number; delivery_seq: number }>(
        sql`INSERT INTO delivery_attempts (delivery_seq, number, started_at) SELECT seq, attempts, ${now} FROM deliveries_queue
          WHERE seq IN (${rows}) RETURNING seq, delivery_seq`,
      )
      for (const { seq, delivery_seq } of attempts) made.set(delivery_seq, seq)
    }
    for (const claim of claims) claim.attempt_seq = made.get(claim.seq)!
  }

  /** What is known of a lane holds for whoever comes to it. */
  async #due(tx: Transaction, lanes: readonly (Lane & { account_id?: string; due?: string })[], now: string): Promise<void> {
    const rows = lanes.map(
      ({ kind, lane, account_id = '', due = now }) =>
        sql`(${kind}, ${lane}, ${account_id}, ${due},
          coalesce((SELECT sound FROM delivery_lanes WHERE kind = ${kind} AND lane = ${lane} LIMIT 1), 0))`,
    )
    await tx.run(
      sql`INSERT INTO delivery_lanes (kind, lane, account_id, due_at, sound) VALUES ${join(rows)} ON CONFLICT DO UPDATE SET due_at = excluded.due_at
        WHERE closed = 0 AND (due_at IS NULL OR due_at > excluded.due_at)`,
    )
  }

  // a row that would stay as it is, is not written; without an account it is the whole lane
  async #settle(
    tx: Transaction,
    lanes: readonly (Lane & { account_id?: string })[],
    due: Sql,
    state: Sql = unchanged,
  ): Promise<void> {
    for (const alike of Map.groupBy(lanes, ({ kind, account_id }) => `${kind} ${account_id}`).values()) {
      const { kind, account_id } = alike[0]!
      const whose = account_id === undefined ? empty : sql` AND account_id = ${account_id}`
      for (const some of few(alike)) {
        await tx.run(
          sql`UPDATE delivery_lanes SET due_at = ${due}, sound = ${state} WHERE kind = ${kind}${whose} AND closed = 0
            AND lane IN (${join(some.map(({ lane }) => lane))}) AND (sound <> ${state} OR due_at IS NOT ${due})`,
        )
      }
    }
  }
}

const states: Record<Health, Sql> = { [1]: sql`1`, [0]: sql`0`, [-1]: sql`-1` }
const unchanged = sql`sound`

/** Never before now: a lane that was just served comes after those that were due before, however much it holds. */
function earliest(now: string): Sql {
  return sql`(SELECT max(min(d.due_at), ${now}) FROM deliveries_queue AS d
    WHERE d.kind = delivery_lanes.kind AND d.lane = delivery_lanes.lane AND d.account_id = delivery_lanes.account_id
    AND d.state = 'waiting')`
}
