import { setTimeout as sleep } from 'node:timers/promises'
import type { Basis } from '../basis.ts'
import type { EventHeader } from '../events/model.ts'
import type { Queue } from '../queue/queue.ts'
import { type Database, type Reader, sql, type Transaction } from '../store/database.ts'
import type { SubscribedWebhooks } from './subscribed-webhooks.ts'
import { deliveriesOf, kind } from './row.ts'

interface Deps extends Pick<Basis, 'database' | 'log'> {
  queue: Queue
  subscribed: SubscribedWebhooks
}

interface WaitingEvent extends Pick<EventHeader, 'seq' | 'account_id'> {
  reached: number
  /** Null when the event is no longer in the log. */
  id: string | null
  type: string
  identity_id: string | null
}

/** The most webhooks looked at, and deliveries written, in one transaction, so that it does not block the event loop. */
const maxRows = 500

/** The least deliveries that are created at a time: a transaction for a few would cost more than it brings. */
const least = 32

/** The most accounts that are looked at, one after the other, for one that may have its turn. */
const maxLooks = 16

/** The wait after a failure, in milliseconds. */
const retryDelay = 1000

/** Events with more deliveries than are created at once. Accounts take turns, and the events of each keep their order. */
export class FanoutBacklog {
  readonly #deps: Deps
  /** The account that had the last turn. */
  #served = ''
  #stopped = false
  #running: Promise<void> | undefined
  #again = false
  /** Events wait for capacity, or are about to have their turn. */
  #waits = false

  constructor(deps: Deps) {
    this.#deps = deps
    deps.queue.onCapacity(() => {
      if (this.#waits) this.wake()
    })
    // what waited at a box that has ended
    deps.database.run.onEnded(() => this.wake())
  }

  /** Resolves when nothing waits, or what waits has no capacity; undefined when that is so. */
  get work(): Promise<void> | undefined {
    return this.#running
  }

  /** Creates the deliveries of what waits. */
  wake(): void {
    if (this.#stopped) return
    this.#again = true
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
      if (this.#again) this.wake()
    })
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
  }

  async has(reader: Reader, accountId: string): Promise<boolean> {
    return (await reader.get(sql`SELECT 1 FROM webhook_backlog WHERE account_id = ${accountId} LIMIT 1`)) !== undefined
  }

  async add(tx: Transaction, { seq, account_id }: EventHeader): Promise<void> {
    await tx.run(sql`INSERT INTO webhook_backlog (seq, account_id) VALUES (${seq}, ${account_id})`)
    tx.afterCommit(() => this.wake())
  }

  async #run(): Promise<void> {
    const { database, log } = this.#deps
    while (!this.#stopped) {
      try {
        this.#again = false
        const account = await this.#next()
        if (account === undefined) return
        this.#served = account
        await database.transaction((tx) => this.#take(tx, account))
      } catch (error) {
        log.error({ err: error }, 'webhook deliveries could not be created, retrying')
        await sleep(retryDelay, undefined, { ref: false })
      }
    }
  }

  /** The next account in turn for whose deliveries there is capacity. */
  async #next(): Promise<string | undefined> {
    const after = async (account: string): Promise<string | undefined> => {
      const row = await this.#deps.database.get<{ account_id: string | null }>(
        sql`SELECT min(account_id) AS account_id FROM webhook_backlog WHERE account_id > ${account}`,
      )
      return row?.account_id ?? undefined
    }
    const first = (await after(this.#served)) ?? (await after(''))
    this.#waits = first !== undefined
    let account = first
    for (let looks = 0; account !== undefined && looks < maxLooks; looks += 1) {
      if (await this.#isFree(account)) return account
      // where all of these wait for capacity, the next look begins after them
      this.#served = account
      account = (await after(account)) ?? (await after(''))
      if (account === first) break
    }
    return undefined
  }

  async #isFree(account: string): Promise<boolean> {
    return this.#capacity(account) > 0 && !(await this.#deps.queue.hasDue(account))
  }

  /**
   * How many deliveries of an account may be created now: as many as may begin to healthy lanes, or a few that wait for their turn in the queue, where others
   * have all capacity. Those to lanes that are not healthy are created with them, and wait.
   */
  #capacity(account_id: string): number {
    const { now, share } = this.#deps.queue.claimable({ kind, account_id })
    if (now >= least) return now
    return share >= least ? least : 0
  }

  /** Creates deliveries of an account's oldest waiting events. */
  async #take(tx: Transaction, account: string): Promise<void> {
    const { queue, subscribed } = this.#deps
    for (let left = Math.min(maxRows, this.#capacity(account)); left > 0;) {
      const event = await oldest(tx, account)
      if (!event) return
      const found = event.id === null ? [] : await subscribed.of(tx, event, event.reached, left)
      if (event.id !== null) await queue.enqueueClaiming(tx, deliveriesOf({ ...event, id: event.id }, found))
      if (found.length === left)
        await tx.run(sql`UPDATE webhook_backlog SET reached = ${found.at(-1)!.seq} WHERE seq = ${event.seq}`)
      else await tx.run(sql`DELETE FROM webhook_backlog WHERE seq = ${event.seq}`)
      // an event without webhooks has a cost too
      left -= Math.max(1, found.length)
    }
  }
}

function oldest(tx: Transaction, account: string): Promise<WaitingEvent | undefined> {
  return tx.get<WaitingEvent>(
    sql`SELECT webhook_backlog.seq, webhook_backlog.account_id, reached, events.id, type, identity_id FROM webhook_backlog
      LEFT JOIN events ON events.seq = webhook_backlog.seq WHERE webhook_backlog.account_id = ${account} ORDER BY webhook_backlog.seq LIMIT 1`,
  )
}

/** The ids of waiting events, which retention must keep. */
export async function waitingEventIds(database: Pick<Database, 'slow'>, deadline: number): Promise<string[]> {
  const rows = await database.slow<{ id: string }>(sql`SELECT id FROM webhook_backlog JOIN events USING (seq)`, deadline)
  return rows.map(({ id }) => id)
}
