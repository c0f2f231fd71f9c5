import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Clock, day, iso } from '../core/clock.ts'
import type { CronJob } from '../core/cron.ts'
import { newId } from '../core/ids.ts'
import type { Log } from '../core/log.ts'
import type { Metrics } from '../core/metrics.ts'
import type { Database, Transaction } from '../store/database.ts'
import { type RetryHint, waitAfter } from './backoff.ts'
import { type AttemptReport, type Courier, Later, type Noted, Refused } from './courier.ts'
import { ResultWriter } from './result-writer.ts'
import { QueueMetrics } from './metrics.ts'
import { type ClaimedDelivery, InFlight } from './in-flight.ts'
import { type End, QueueStore, type Result, type Shipment } from './queue-store.ts'

interface Deps {
  database: Database
  clock: Clock
  log: Log
  metrics: Metrics
  /** 0 to 1, for jitter. */
  random?: () => number
  /** Longest time in milliseconds that attempts under way have to end by themselves when the box stops; 3 s. */
  grace?: number
  /** How long ended deliveries are kept, in milliseconds; 30 days. */
  kept?: () => number
}

/** How long ended deliveries are kept, in milliseconds. */
const usuallyKept = 30 * day

/** An attempt that takes longer is slow, in milliseconds. */
const usuallyPrompt = 2000

/** Nothing that was tried is put off for longer, jitter included, in milliseconds. */
const longestWait = 2 * day

/** setTimeout takes no more. */
const longestTimer = 2 ** 31 - 1

/**
 * What leaves the box: durable from the transaction that enqueued it until it is done or has failed. Every attempt is on disk before it is
 * made, so after a crash it is made again, under the same id. Few attempts at a time to one lane, so none delays another.
 */
export class Queue {
  readonly #deps: Deps
  readonly #couriers = new Map<string, Courier>()
  readonly #ledger = new QueueStore()
  readonly #inFlight = new InFlight()
  #state: 'idle' | 'open' | 'stopping' = 'idle'
  #timer: NodeJS.Timeout | undefined
  #pumping: Promise<void> | undefined
  #again = false
  /** Something is due, or will be by the time a claim is made. */
  #due = false
  /** Runs outside of any transaction, whoever calls. */
  readonly #apart = AsyncLocalStorage.snapshot()
  readonly #resultWriter: ResultWriter
  readonly #figures: QueueMetrics

  constructor(deps: Deps) {
    this.#deps = deps
    this.#figures = new QueueMetrics({
      ...deps,
      kinds: () => this.#couriers.keys(),
      underWay: (kind) => this.#inFlight.sizeOf(kind),
    })
    this.#resultWriter = new ResultWriter({
      log: deps.log,
      write: (ends) => this.#writeDown(ends),
      // what waits for their room is claimed with the same commit
      writing: () => this.#expect(),
      written: (end) => {
        this.#figures.ended(end.claim, end.result)
        this.#tell(end)
        this.wake()
      },
    })
  }

  /** The safety net beside the timer, and the clearing of what is over. */
  get jobs(): CronJob[] {
    return [
      { name: 'sweep-deliveries', schedule: '* * * * *', run: async () => this.wake() },
      { name: 'clear-deliveries', schedule: '23 * * * *', run: () => this.clear() },
    ]
  }

  /** Before `start`. */
  add(courier: Courier): void {
    this.#couriers.set(courier.kind, courier)
    if (courier.width) this.#inFlight.widen(courier.kind, courier.width)
  }

  /** Enqueues in the caller's transaction; it leaves once that is on disk, or when it is due. Answers the delivery's id. */
  async enqueue(tx: Transaction, shipment: Omit<Shipment, 'id'>): Promise<string> {
    return (await this.enqueueAll(tx, [shipment]))[0]!
  }

  /** As `enqueue`, for many. */
  async enqueueAll(tx: Transaction, shipments: readonly Omit<Shipment, 'id'>[]): Promise<string[]> {
    const added = shipments.map((shipment) => ({ ...shipment, id: newId('dlv') }))
    await this.#ledger.add(tx, added, this.#now())
    // the claim comes right behind this transaction, and shares its commit
    if (added.some(({ due }) => due === undefined)) this.#apart(() => this.#expect())
    tx.afterCommit(() => this.wake())
    return added.map(({ id }) => id)
  }

  /** Sends a delivery once more, from the beginning of its schedule. Answers false when an attempt is under way. */
  async again(tx: Transaction, id: string): Promise<boolean> {
    tx.afterCommit(() => this.wake())
    return this.#ledger.again(tx, id, this.#now())
  }

  /** Takes back a delivery that no attempt was made of. Answers false when there was one. */
  async cancel(tx: Transaction, id: string): Promise<boolean> {
    return this.#ledger.cancel(tx, id)
  }

  /** Ends a delivery that waits, whatever was tried of it; one that is under way ends by itself. Answers whether it waited. */
  abandon(tx: Transaction, id: string, reason?: string): Promise<boolean> {
    return this.#ledger.abandon(tx, id, this.#now(), reason)
  }

  /** Who carries deliveries of this kind. */
  courier(kind: string): Courier | undefined {
    return this.#couriers.get(kind)
  }

  /** The operator ends a delivery that waits. Answers false when it does not wait. */
  async drop(tx: Transaction, { id, kind, load }: Pick<Shipment, 'id' | 'kind' | 'load'>, why: string): Promise<boolean> {
    if (!(await this.#ledger.abandon(tx, id, this.#now(), why))) return false
    const courier = this.#couriers.get(kind)
    if (courier?.drop) await courier.drop(tx, load, why)
    else await courier?.settle?.(tx, load, 'failed', why)
    return true
  }

  /** Puts a delivery that no attempt was made of to another time (ISO 8601). Answers false when there was one. */
  async postpone(tx: Transaction, id: string, due: string): Promise<boolean> {
    tx.afterCommit(() => this.wake())
    return this.#ledger.postpone(tx, id, due)
  }

  /** What kept a delivery waiting is over: it is tried now. Answers false when it was not waiting. */
  async hurry(tx: Transaction, id: string): Promise<boolean> {
    tx.afterCommit(() => this.wake())
    return this.#ledger.hurry(tx, id, this.#now())
  }

  /** Nothing in this lane is begun once the transaction is committed; `silence` ends what is under way. */
  async close(tx: Transaction, lane: Pick<ClaimedDelivery, 'kind' | 'lane' | 'account_id'>): Promise<void> {
    await this.#ledger.close(tx, lane)
  }

  /** Cuts off what is under way to a lane; when it resolves, the destination hears nothing more of it. */
  silence(kind: string, lane: string): Promise<void> {
    return this.#inFlight.end({ kind, lane })
  }

  async start(): Promise<void> {
    const { database, log } = this.#deps
    const recovered = await database.transaction((tx) => this.#ledger.recover(tx, this.#now()))
    if (recovered > 0) log.info({ recovered }, 'deliveries that were cut off are tried again')
    this.#state = 'open'
    this.wake()
  }

  /** Begins nothing more; what is under way has a moment to end, and is then cut off and due again at the next start. */
  async stop(): Promise<void> {
    this.#state = 'stopping'
    this.#resultWriter.stop()
    clearTimeout(this.#timer)
    await this.#pumping
    const { grace = 3000 } = this.#deps
    const timeout = new AbortController()
    await Promise.race([this.#inFlight.landed(), sleep(grace, undefined, { signal: timeout.signal }).catch(() => undefined)])
    timeout.abort()
    await this.#inFlight.end()
  }

  /** Looks for what is due; costs one read when nothing is. */
  wake(): void {
    if (this.#state !== 'open') return
    this.#again = true
    this.#pumping ??= this.#pump().finally(() => {
      this.#pumping = undefined
      if (this.#again) this.wake()
    })
  }

  #expect(): void {
    this.#due = true
    this.wake()
  }

  /** Removes what ended long ago and what closed lanes still hold, a little at a time. */
  async clear(): Promise<void> {
    const { database, clock, kept = () => usuallyKept } = this.#deps
    const horizon = iso(clock.now() - kept())
    while (this.#state === 'open' && (await this.#ledger.clear(database, horizon))) await sleep(5)
    const now = clock.now()
    await database.transaction((tx) => this.#ledger.mend(tx, iso(now), iso(now + longestWait)))
    this.wake()
  }

  async #pump(): Promise<void> {
    const { database, log } = this.#deps
    clearTimeout(this.#timer)
    try {
      while (this.#state === 'open') {
        this.#again = false
        if (!this.#due) {
          const next = await this.#ledger.nextDue(database, this.#inFlight)
          if (next === undefined) return
          if (next > this.#now()) return this.#sleepUntil(next)
        }
        this.#due = false
        const claims = await database.transaction((tx) => this.#claim(tx))
        for (const claim of claims) this.#inFlight.begin(claim, this.#fly, this.#resultWriter.record)
      }
    } catch (error) {
      log.error({ err: error }, 'the queue could not be read; it is looked at again')
      this.#again = false
      this.#timer = setTimeout(() => this.wake(), 1000)
    }
  }

  async #claim(tx: Transaction): Promise<ClaimedDelivery[]> {
    const claims = await this.#ledger.claim(tx, this.#now(), this.#inFlight)
    for (const { kind, load, attempt } of claims) await this.#couriers.get(kind)?.begin?.(tx, JSON.parse(load), attempt)
    return claims
  }

  #sleepUntil(due: string): void {
    const wait = Math.min(Math.max(Date.parse(due) - this.#deps.clock.now(), 1), longestTimer)
    this.#timer = setTimeout(() => this.wake(), wait)
  }

  readonly #fly = async (claim: ClaimedDelivery, signal: AbortSignal): Promise<Result> => {
    const began = performance.now()
    const noted: Noted = {}
    const result = await this.#attempt(claim, signal, noted)
    return { ...result, ms: performance.now() - began, noted }
  }

  async #attempt(claim: ClaimedDelivery, signal: AbortSignal, noted: Noted): Promise<Omit<Result, keyof AttemptReport>> {
    const { clock, random = Math.random, log } = this.#deps
    const courier = this.#couriers.get(claim.kind)
    const begun = clock.now()
    const over = this.#figures.begin(claim)
    const slow = (): boolean => clock.now() - begun > (courier?.prompt ?? usuallyPrompt)
    try {
      if (!courier) throw new Error(`Nobody carries ${claim.kind}.`)
      const answer = await courier.deliver(JSON.parse(claim.load), claim.attempt, signal, noted)
      return { outcome: 'done', answer, slow: slow() }
    } catch (error) {
      const answer = error instanceof Error ? error.message : String(error)
      if (signal.aborted) return { outcome: 'interrupted', answer: 'cut off', next: this.#now() }
      if (error instanceof Refused) return { outcome: 'failed', answer }
      if (!(error instanceof Later)) log.error({ err: error, kind: claim.kind, lane: claim.lane }, 'a courier failed')
      const input: RetryHint = error instanceof Later ? { asked: error.retryAfter, within: error.within } : {}
      const wait = courier && waitAfter(claim.tries, courier, random(), input)
      if (wait === undefined) return { outcome: 'failed', answer }
      return { outcome: 'deferred', answer, next: iso(clock.now() + wait), slow: slow(), hurried: wait === input.within }
    } finally {
      over()
    }
  }

  #tell({ claim, result }: End): void {
    const { id, kind, load, attempt } = claim
    const { outcome, answer, next, ms, noted } = result
    this.#couriers.get(kind)?.ended?.({ id, load: JSON.parse(load), attempt, outcome, answer, next, ms: Math.round(ms), noted })
  }

  #writeDown(ends: readonly End[]): Promise<void> {
    return this.#deps.database.transaction(async (tx) => {
      await this.#ledger.record(tx, ends, this.#now())
      for (const { claim, result } of ends) {
        const { outcome, answer } = result
        if (outcome !== 'interrupted')
          await this.#couriers.get(claim.kind)?.settle?.(tx, JSON.parse(claim.load), outcome, answer, result.next)
      }
    })
  }

  #now(): string {
    return iso(this.#deps.clock.now())
  }
}
