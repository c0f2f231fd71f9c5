import { setTimeout as sleep } from 'node:timers/promises'
import { type Database, sql } from '../store/database.ts'
import type { ClaimedDelivery, InFlight } from './in-flight.ts'
import type { Lane } from './lanes.ts'

/** Milliseconds between two looks whether other boxes have ended their attempts. */
const betweenLooks = 25

/** Ends the attempts of this box to lanes that another box has closed. */
export class ClosedLanes {
  readonly #database: Database
  readonly #inFlight: InFlight
  /** Those that were closed when another box last closed one. */
  #closed: Lane[] = []

  constructor(database: Database, inFlight: InFlight) {
    this.#database = database
    this.#inFlight = inFlight
  }

  follow(): void {
    this.#database.caches.onInvalid('lanes', async () => {
      this.#closed = await this.#database.all<Lane>(sql`SELECT DISTINCT kind, lane FROM delivery_lanes WHERE closed = 1`)
      for (const lane of this.#closed) void this.#inFlight.abort(lane)
    })
  }

  /** Aborts attempts that have just begun: that their lane was closed may be seen before their claim, which was made earlier. */
  abortAmong(claims: readonly ClaimedDelivery[]): void {
    for (const { kind, lane } of claims)
      if (this.#closed.some((closed) => closed.kind === kind && closed.lane === lane)) void this.#inFlight.abort({ kind, lane })
  }

  /** Resolves when no other box attempts a delivery of the lane: they see that it is closed, or are taken for ended. */
  async endedElsewhere({ kind, lane }: Lane): Promise<void> {
    const { several, run } = this.#database
    if (!several) return
    const attempted = sql`SELECT 1 FROM deliveries_queue WHERE kind = ${kind} AND lane = ${lane} AND state = 'running'
      AND NOT ${run.ended(sql`run_id`)} LIMIT 1`
    while (run.alive && (await this.#database.get(attempted))) await sleep(betweenLooks)
  }
}
