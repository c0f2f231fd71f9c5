/** The health of a lane: 1 when its last attempt succeeded quickly, -1 when it was slow, else 0, as for a new lane. */
export type Health = 1 | 0 | -1

/** All values of health, in the order in which lanes are served. */
export const healthLevels: readonly Health[] = [1, 0, -1]

/** A delivery claimed from the queue; its attempt is recorded. */
export interface ClaimedDelivery {
  seq: number
  /** Of the delivery. */
  id: string
  kind: string
  lane: string
  /** Its account; '' for the box itself. */
  account_id: string
  load: unknown
  /** Attempts so far, this one included. */
  attempt: number
  /** The place in the schedule, this one included. */
  tries: number
  /** The number of its row among the later attempts; 0 for the first, which is in the row of its delivery. */
  attempt_seq: number
  /** The time it was enqueued, ISO 8601. */
  created_at: string
  health: Health
}

/** A claim that takes capacity: its transaction is not committed yet, or its attempt runs. */
interface HeldAttempt {
  claim: ClaimedDelivery
  controller: AbortController
  /** Resolves when its result is recorded, or when it is released. */
  done: Promise<void>
}

/** What becomes of a claim: one of the two is called, once. */
export interface HeldClaim {
  claim: ClaimedDelivery
  /** Begins the attempt once the claim is on disk: `attempt` makes it, `record` stores its result. */
  begin: <Result>(
    attempt: (claim: ClaimedDelivery, signal: AbortSignal) => Promise<Result>,
    record: (claim: ClaimedDelivery, result: Result) => Promise<void>,
  ) => void
  /** Gives the capacity back: the claim was rolled back. */
  release: () => void
  /** Ends the attempt as soon as it begins. */
  abort: () => void
}

/** Concurrent attempts in all. */
export const maxAttempts = 320

/** Concurrent attempts to lanes of each health, so that slow lanes do not block healthy ones. */
const maxByHealth = { [1]: 300, [0]: 80, [-1]: 120 }

/** The same for each account. */
const maxOfAccount = { [1]: 240, [0]: 64, [-1]: 96 }

/** From this number of running attempts on, the limit `busy` applies to lanes. */
const busyFrom = 64

/** Concurrent attempts to one lane, by its health; fewer while many attempts run, so that lanes that hang leave capacity to the others. */
export interface LaneLimits {
  healthy: number
  busy: number
  slow: number
  /** To all lanes of the kind together; unlimited without it. */
  in_all?: number
}

const defaultLimits: LaneLimits = { healthy: 16, busy: 4, slow: 1 }

/** The running attempts, limited in all, by account, by kind and by lane, so that a lane that hangs takes no capacity from the others. */
export class InFlight {
  readonly #all = new Set<HeldAttempt>()
  /** Attempts that still take capacity, by lane. */
  readonly #lanes = new Map<string, number>()
  /** The same by kind. */
  readonly #kinds = new Map<string, number>()
  readonly #limits = new Map<string, LaneLimits>()
  /** The account of the last attempt; the next turn is of those after it. */
  #served = ''
  readonly #byHealth = { [1]: 0, [0]: 0, [-1]: 0 }
  /** The same by account. */
  readonly #accounts = { [1]: new Map<string, number>(), [0]: new Map<string, number>(), [-1]: new Map<string, number>() }

  get served(): string {
    return this.#served
  }

  /** Running attempts of one kind. */
  sizeOf(kind: string): number {
    return [...this.#all].filter(({ claim }) => claim.kind === kind).length
  }

  /** The deliveries that are claimed here and whose results are not recorded yet. */
  get claims(): ClaimedDelivery[] {
    return [...this.#all].map(({ claim }) => claim)
  }

  setLimits(kind: string, limits: LaneLimits): void {
    this.#limits.set(kind, limits)
  }

  /** How many more attempts may begin to lanes of this health. */
  available(health: Health): number {
    return Math.min(maxAttempts - this.#running, maxByHealth[health] - this.#byHealth[health])
  }

  /** How many more attempts of an account may begin to lanes of this health. */
  availableToAccount(accountId: string, health: Health): number {
    return maxOfAccount[health] - (this.#accounts[health].get(accountId) ?? 0)
  }

  /** Accounts that have reached their limit. */
  fullAccounts(health: Health): string[] {
    return [...this.#accounts[health].keys()].filter((accountId) => this.availableToAccount(accountId, health) <= 0)
  }

  /** How many deliveries of a kind may be claimed as they are enqueued, to lanes of any health. */
  claimable(kind: string): number {
    // an attempt whose result is not stored yet keeps its lane
    return Math.max(0, Math.min(maxAttempts - this.#all.size, this.availableForKind(kind)))
  }

  /** The same of an account to lanes of this health. */
  claimableToAccount(kind: string, account_id: string, health: Health): number {
    return Math.max(0, Math.min(this.claimable(kind), this.available(health), this.availableToAccount(account_id, health)))
  }

  /** How many more deliveries an account may hold to healthy lanes, those whose results are not recorded yet among them. */
  shareLeft(accountId: string): number {
    let held = 0
    for (const { claim } of this.#all) if (claim.account_id === accountId) held += 1
    return Math.max(0, maxOfAccount[1] - held)
  }

  /** How many more attempts of a kind may begin after those that are claimed. */
  availableForKind(kind: string, claimed: readonly Pick<ClaimedDelivery, 'kind'>[] = []): number {
    const { in_all = maxAttempts } = this.#limits.get(kind) ?? defaultLimits
    return in_all - (this.#kinds.get(kind) ?? 0) - claimed.filter((claim) => claim.kind === kind).length
  }

  /** Kinds that have reached their limit. */
  fullKinds(claimed: readonly Pick<ClaimedDelivery, 'kind'>[] = []): string[] {
    return [...this.#limits.keys()].filter((kind) => this.availableForKind(kind, claimed) <= 0)
  }

  /** How many more attempts may begin to this lane. */
  availableInLane(kind: string, lane: string, health: Health): number {
    const limits = this.#limits.get(kind) ?? defaultLimits
    const max = health !== 1 ? limits.slow : this.#running >= busyFrom ? limits.busy : limits.healthy
    return max - (this.#lanes.get(key(kind, lane)) ?? 0)
  }

  /** Takes capacity for a claim in the transaction that makes it, so that no other claim takes the same. */
  hold(claim: ClaimedDelivery): HeldClaim {
    const controller = new AbortController()
    const { promise: done, resolve } = Promise.withResolvers<void>()
    const held = { claim, controller, done }
    this.#count(claim, 1)
    this.#all.add(held)
    return {
      claim,
      begin: (attempt, record) => {
        this.#served = claim.account_id
        const recorded = attempt(claim, controller.signal)
          // before it is recorded, which looks at the free capacity of the lane
          .finally(() => this.#count(claim, -1))
          .then((result) => record(claim, result))
        resolve(recorded.finally(() => this.#all.delete(held)))
      },
      release: () => {
        this.#count(claim, -1)
        this.#all.delete(held)
        resolve()
      },
      abort: () => controller.abort(),
    }
  }

  /** Aborts the attempts to a lane, or all, also those that are about to begin, and resolves when they have ended. */
  async abort(of?: { kind: string; lane: string }): Promise<void> {
    const ended = [...this.#all].filter(({ claim }) => !of || (claim.kind === of.kind && claim.lane === of.lane))
    for (const { controller } of ended) controller.abort()
    await Promise.all(ended.map(({ done }) => done))
  }

  /** Resolves when the attempts that run now have ended. */
  async settled(): Promise<void> {
    await Promise.all([...this.#all].map(({ done }) => done))
  }

  /** True if no attempt runs, and every result is recorded. */
  get idle(): boolean {
    return this.#all.size === 0
  }

  get #running(): number {
    return this.#byHealth[1] + this.#byHealth[0] + this.#byHealth[-1]
  }

  #count({ kind, lane, account_id, health }: ClaimedDelivery, by: 1 | -1): void {
    this.#byHealth[health] += by
    this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0) + by)
    count(this.#accounts[health], account_id, by)
    count(this.#lanes, key(kind, lane), by)
  }
}

function count(counts: Map<string, number>, name: string, by: 1 | -1): void {
  const left = (counts.get(name) ?? 0) + by
  if (left === 0) counts.delete(name)
  else counts.set(name, left)
}

function key(kind: string, lane: string): string {
  return `${kind} ${lane}`
}
