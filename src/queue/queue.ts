import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Basis } from '../basis.ts'
import { day, iso } from '../core/clock.ts'
import type { CronJob } from '../core/cron.ts'
import { newId } from '../core/ids.ts'
import type { Transaction } from '../store/database.ts'
import { makeAttempt } from './attempt.ts'
import type { Courier } from './courier.ts'
import type { StorageCounter } from './answer-storage.ts'
import { ClosedLanes } from './closed-lanes.ts'
import { repairSome } from './lane-repair.ts'
import { recover } from './recovery.ts'
import { ResultWriter } from './result-writer.ts'
import { QueueMetrics } from './metrics.ts'
import { type ClaimedDelivery, type HeldClaim, InFlight } from './in-flight.ts'
import { claimWhenAdded } from './claim-when-added.ts'
import { type FinishedAttempt, QueueStore, type Result, type NewDelivery } from './queue-store.ts'

interface Deps extends Pick<Basis, 'database' | 'clock' | 'log' | 'metrics'> {
  /** 0 to 1, for jitter. */
  random?: () => number
  /** How long running attempts have to end by themselves when the box stops, in milliseconds; 3 s by default. */
  grace?: number
  /** How long ended deliveries are kept, in milliseconds; 30 days by default. */
  kept?: () => number
  /** Counts the bytes of stored answers; not counted by default. */
  plan?: StorageCounter
}

/** How long ended deliveries are kept, in milliseconds. */
const defaultRetention = 30 * day

/** Milliseconds after which a box looks for what others have enqueued into lanes in which it has work under way: they leave it to this one. */
const lookInterval = 2000

/** The longest wait of any retry, jitter included, in milliseconds. */
const maxWait = 2 * day

/** The maximum of setTimeout, in milliseconds. */
const maxTimer = 2 ** 31 - 1

/**
 * The queue of outgoing deliveries. A delivery is durable from the transaction that enqueues it until it is done or has failed. Every attempt is
 * recorded on disk before it is made, so that it is repeated after a crash, under the same id. The attempts to one lane are limited, so that no
 * lane delays another.
 */
export class Queue {
  readonly #deps: Deps
  readonly #couriers = new Map<string, Courier>()
  readonly #store: QueueStore
  readonly #inFlight = new InFlight()
  readonly #closedLanes: ClosedLanes
  #state: 'idle' | 'open' | 'stopping' = 'idle'
  #timer: NodeJS.Timeout | undefined
  #looks: NodeJS.Timeout | undefined
  #pumping: Promise<void> | undefined
  #again = false
  /** Something is due now, or will be when the next claim is made. */
  #due = false
  /** The last claim found deliveries, so that more may wait for capacity. */
  #othersWait = false
  /** Attempts may have been interrupted: their run has ended. */
  #interrupted = false
  readonly #onCapacity: (() => void)[] = []
  /** Runs a function outside of the transaction of the caller. */
  readonly #outsideTransaction = AsyncLocalStorage.snapshot()
  readonly #resultWriter: ResultWriter
  readonly #metrics: QueueMetrics

  constructor(deps: Deps) {
    this.#deps = deps
    this.#closedLanes = new ClosedLanes(deps.database, this.#inFlight)
    this.#store = new QueueStore(deps.database.run, deps.plan)
    this.#metrics = new QueueMetrics({
      ...deps,
      kinds: () => this.#couriers.keys(),
      underWay: (kind) => this.#inFlight.sizeOf(kind),
    })
    this.#resultWriter = new ResultWriter({
      log: deps.log,
      write: (ends) => this.#writeResults(ends),
      // deliveries that wait for the freed capacity are claimed with the same commit
      writing: () => {
        if (this.#othersWait) this.#expect()
      },
      written: (end) => this.#written(end),
    })
  }

  /** A periodic wake-up in case a timer fails, and the removal of old deliveries. */
  get jobs(): CronJob[] {
    return [
      { name: 'sweep-deliveries', schedule: '* * * * *', everywhere: true, run: async () => this.wake() },
      { name: 'clear-deliveries', schedule: '23 * * * *', run: () => this.clear() },
    ]
  }

  /** Registers a courier, before `start`. */
  add(courier: Courier): void {
    this.#couriers.set(courier.kind, courier)
    this.#store.serve(courier.kind, courier.stops !== true)
    if (courier.limits) this.#inFlight.setLimits(courier.kind, courier.limits)
  }

  /** Enqueues a delivery in the caller's transaction; it is attempted once that is on disk, or when it is due. Returns its id. */
  async enqueue(tx: Transaction, delivery: Omit<NewDelivery, 'id'>): Promise<string> {
    return (await this.enqueueAll(tx, [delivery]))[0]!
  }

  /** The same for several deliveries. */
  async enqueueAll(tx: Transaction, deliveries: readonly Omit<NewDelivery, 'id'>[]): Promise<string[]> {
    const added = deliveries.map((delivery) => ({ ...delivery, id: newId('dlv') }))
    await this.#store.add(tx, added, this.#now())
    // the claim follows this transaction at once and shares its commit
    if (added.some(({ due }) => due === undefined)) this.#outsideTransaction(() => this.#expect())
    tx.afterCommit(() => this.wake())
    return added.map(({ id }) => id)
  }

  /**
   * Enqueues deliveries of one kind and account that are due now, and claims those to idle lanes in the same transaction, as far as there is
   * capacity. Throws an Error for a kind whose courier has `begin`, which is not called.
   */
  async enqueueClaiming(
    tx: Transaction,
    {
      kind,
      account_id,
      deliveries,
    }: { kind: string; account_id: string; deliveries: readonly Pick<NewDelivery, 'lane' | 'load'>[] },
  ): Promise<void> {
    if (this.#couriers.get(kind)?.begin) throw new Error(`Deliveries of kind ${kind} must be enqueued.`)
    const { run } = this.#deps.database
    // on a database that boxes share, any of them may have capacity
    if (run.shared || this.#state !== 'open') {
      await this.enqueueAll(
        tx,
        deliveries.map((delivery) => ({ ...delivery, kind, account_id })),
      )
      return
    }
    const added = { kind, account_id, deliveries: deliveries.map((delivery) => ({ ...delivery, id: newId('dlv') })) }
    const { claims, waiting } = await claimWhenAdded(tx, run, this.#inFlight, added, this.#now())
    await this.#store.add(tx, waiting, this.#now())
    const held = this.#hold(tx, claims)
    tx.afterCommit(() => {
      // it has stopped meanwhile, and begins nothing
      if (this.#state !== 'open') for (const { abort } of held) abort()
      this.#begin(held)
    })
    if (waiting.length === 0) return
    this.#outsideTransaction(() => this.#expect())
    tx.afterCommit(() => this.wake())
  }

  /**
   * How many deliveries of an account to healthy lanes `enqueueClaiming` may claim now: of all that is free, and of what is free of its own share. Without limit
   * where several boxes take what waits.
   */
  claimable({ kind, account_id }: { kind: string; account_id: string }): { now: number; share: number } {
    if (this.#deps.database.run.shared) return { now: Infinity, share: Infinity }
    return {
      now: this.#inFlight.claimableToAccount(kind, account_id, 1),
      share: this.#inFlight.shareLeft(account_id),
    }
  }

  /** True if deliveries of an account to healthy lanes are due, and so have their turn before any that are added. */
  async hasDue(account_id: string): Promise<boolean> {
    const { database } = this.#deps
    return !database.run.shared && (await this.#store.hasDue(database, account_id, this.#now()))
  }

  /** Adds a listener that is called when there may be capacity again, or nothing due any more, and each minute. */
  onCapacity(listener: () => void): void {
    this.#onCapacity.push(listener)
  }

  /** Restarts a delivery at the beginning of its schedule. Returns false while an attempt is running. */
  async retry(tx: Transaction, id: string): Promise<boolean> {
    tx.afterCommit(() => this.wake())
    return this.#store.retry(tx, id, this.#now())
  }

  /** Removes a delivery that was never attempted. Returns false when it was. */
  async cancel(tx: Transaction, id: string): Promise<boolean> {
    return this.#store.cancel(tx, id)
  }

  /** Ends a waiting delivery as failed, whether it was attempted or not; a running one is left alone. Returns whether it waited. */
  abandon(tx: Transaction, id: string, reason?: string): Promise<boolean> {
    return this.#store.abandon(tx, id, this.#now(), reason)
  }

  courier(kind: string): Courier | undefined {
    return this.#couriers.get(kind)
  }

  /** A stored answer in words, by the courier of its kind. */
  answerText(kind: string, answer: string): string {
    return this.#couriers.get(kind)?.answerText?.(answer) ?? answer
  }

  /** Ends a waiting delivery for the operator. Returns false when it does not wait. */
  async cancelByOperator(
    tx: Transaction,
    { id, kind, load }: Pick<NewDelivery, 'id' | 'kind' | 'load'>,
    why: string,
  ): Promise<boolean> {
    if (!(await this.#store.abandon(tx, id, this.#now(), why))) return false
    const courier = this.#couriers.get(kind)
    if (courier?.cancel) await courier.cancel(tx, load, why)
    else await courier?.settle?.(tx, load, 'failed', why)
    return true
  }

  /** Changes the due time (ISO 8601) of a delivery that was never attempted. Returns false when it was. */
  async postpone(tx: Transaction, id: string, due: string): Promise<boolean> {
    tx.afterCommit(() => this.wake())
    return this.#store.postpone(tx, id, due)
  }

  /** Retries a waiting delivery now. Returns false when it was not waiting. */
  async retryNow(tx: Transaction, id: string): Promise<boolean> {
    tx.afterCommit(() => this.wake())
    return this.#store.retryNow(tx, id, this.#now())
  }

  /** Closes a lane: no attempt begins once the transaction is committed. `abortLane` ends running attempts. */
  async closeLane(tx: Transaction, lane: Pick<ClaimedDelivery, 'kind' | 'lane' | 'account_id'>): Promise<void> {
    await this.#store.closeLane(tx, lane)
    await this.#deps.database.caches.invalidate(tx, 'lanes')
  }

  /** Aborts the running attempts to a closed lane; once it resolves, nothing more is sent to the destination, by any box. */
  async abortLane(kind: string, lane: string): Promise<void> {
    await this.#inFlight.abort({ kind, lane })
    await this.#closedLanes.endedElsewhere({ kind, lane })
  }

  async start(): Promise<void> {
    const { database } = this.#deps
    await this.#recover()
    this.#state = 'open'
    this.#closedLanes.follow()
    database.run.onLost(() => void this.#inFlight.abort())
    const lookForInterrupted = (): void => {
      this.#interrupted = true
      this.wake()
    }
    database.run.onEnded(lookForInterrupted)
    // attempts may be recorded of which this run was not told
    database.onUnsure(lookForInterrupted)
    if (database.run.shared) this.#looks = setInterval(() => this.#inFlight.idle || this.wake(), lookInterval).unref()
    this.wake()
  }

  /** Begins no more attempts. Running ones have `grace` to end; then they are aborted and due again at the next start. */
  async stop(): Promise<void> {
    this.#state = 'stopping'
    this.#resultWriter.stop()
    clearTimeout(this.#timer)
    clearInterval(this.#looks)
    await this.#pumping
    const { grace = 3000 } = this.#deps
    const timeout = new AbortController()
    await Promise.race([this.#inFlight.settled(), sleep(grace, undefined, { signal: timeout.signal }).catch(() => undefined)])
    timeout.abort()
    await this.#inFlight.abort()
  }

  /** Claims what is due; takes one query when nothing is. */
  wake(): void {
    if (this.#state !== 'open') return
    this.#again = true
    this.#pumping ??= this.#pump().finally(() => {
      this.#pumping = undefined
      if (this.#again) this.wake()
    })
  }

  /** Resolves when what is due is claimed, or else when the running attempts have ended; undefined when there is neither. */
  get work(): Promise<void> | undefined {
    return this.#pumping ?? (this.#inFlight.idle ? undefined : this.#inFlight.settled())
  }

  #expect(): void {
    this.#due = true
    this.wake()
  }

  /** Removes old deliveries and those of closed lanes, in batches. */
  async clear(): Promise<void> {
    const { database, clock, kept = () => defaultRetention } = this.#deps
    const horizon = iso(clock.now() - kept())
    while (this.#state === 'open' && (await this.#store.clear(database, horizon))) await sleep(5)
    const now = clock.now()
    const repair = (after?: Parameters<typeof repairSome>[3]): ReturnType<typeof repairSome> =>
      repairSome(database, iso(now), iso(now + maxWait), after)
    for (let lane = await repair(); lane && this.#state === 'open'; lane = await repair(lane)) await sleep(5)
    this.wake()
  }

  async #pump(): Promise<void> {
    const { database, log } = this.#deps
    clearTimeout(this.#timer)
    try {
      while (this.#state === 'open') {
        this.#again = false
        if (!database.run.alive) return
        if (this.#interrupted) await this.#recover()
        if (!this.#due) {
          const next = await this.#store.nextDue(database, this.#inFlight)
          if (next === undefined) return
          if (next > this.#now()) return this.#sleepUntil(next)
        }
        this.#due = false
        const held = await database.transaction((tx) => this.#claim(tx))
        this.#othersWait = held.length > 0
        this.#begin(held)
        this.#tellCapacity()
      }
    } catch (error) {
      log.error({ err: error }, 'queue could not be read; retrying')
      this.#again = false
      this.#timer = setTimeout(() => this.wake(), 1000)
    } finally {
      this.#tellCapacity()
    }
  }

  #tellCapacity(): void {
    for (const listener of this.#onCapacity) listener()
  }

  /** Takes capacity for claims until their attempts have ended, or the transaction is rolled back. */
  #hold(tx: Transaction, claims: readonly ClaimedDelivery[]): HeldClaim[] {
    const held: HeldClaim[] = []
    // before any is held: it throws where the transaction has ended
    tx.afterRollback(() => {
      for (const { release } of held) release()
      this.wake()
    })
    for (const claim of claims) held.push(this.#inFlight.hold(claim))
    return held
  }

  /** Makes attempts that are claimed on disk. */
  #begin(held: readonly HeldClaim[]): void {
    for (const { begin } of held) begin(this.#run, this.#resultWriter.record)
    this.#closedLanes.abortAmong(held.map(({ claim }) => claim))
  }

  /** Makes interrupted attempts due again; none of those here is. */
  async #recover(): Promise<void> {
    const { database, log } = this.#deps
    this.#interrupted = false
    try {
      const recovered = await database.transaction(async (tx) => {
        const interrupted = await recover(tx, database.run, this.#inFlight.claims, this.#now())
        for (const { kind, load, own } of interrupted) if (own) await this.#couriers.get(kind)?.interrupted?.(tx, load)
        return interrupted.length
      })
      if (recovered > 0) log.info({ recovered }, 'interrupted deliveries are retried')
    } catch (error) {
      this.#interrupted = true
      throw error
    }
  }

  async #claim(tx: Transaction): Promise<HeldClaim[]> {
    const claims = await this.#store.claim(tx, this.#now(), this.#inFlight)
    for (const { kind, load, attempt } of claims) await this.#couriers.get(kind)?.begin?.(tx, load, attempt)
    return this.#hold(tx, claims)
  }

  #sleepUntil(due: string): void {
    const wait = Math.min(Math.max(Date.parse(due) - this.#deps.clock.now(), 1), maxTimer)
    this.#timer = setTimeout(() => this.wake(), wait)
  }

  readonly #run = async (claim: ClaimedDelivery, signal: AbortSignal): Promise<Result> => {
    const observe = this.#metrics.begin(claim)
    const result = await makeAttempt(this.#deps, this.#couriers.get(claim.kind), claim, signal)
    observe()
    return result
  }

  #written({ claim, result }: FinishedAttempt): void {
    this.#metrics.ended(claim, result)
    const { id, kind, load, attempt } = claim
    const { outcome, answer, next, ms, notes } = result
    this.#couriers.get(kind)?.finished?.({ id, load, attempt, outcome, answer, next, ms: Math.round(ms), notes })
    this.wake()
  }

  #writeResults(ends: readonly FinishedAttempt[]): Promise<void> {
    return this.#deps.database.transaction(async (tx) => {
      for (const { claim, result } of await this.#store.record(tx, ends, this.#now())) {
        const { outcome, answer } = result
        const courier = this.#couriers.get(claim.kind)
        if (outcome === 'interrupted') await courier?.interrupted?.(tx, claim.load)
        else await courier?.settle?.(tx, claim.load, outcome, answer, result.next)
      }
    })
  }

  #now(): string {
    return iso(this.#deps.clock.now())
  }
}
