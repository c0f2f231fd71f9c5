/** Of a lane: 1 when its last attempt went well, and soon; -1 when it took long, however it went; else 0, as for a new one. */
export type Health = 1 | 0 | -1

/** Every kind of lane, those first that are looked at first. */
export const everyHealth: readonly Health[] = [1, 0, -1]

/** A delivery taken from the queue, its attempt on record. */
export interface ClaimedDelivery {
  seq: number
  /** Of the delivery. */
  id: string
  kind: string
  lane: string
  /** Whose it is; '' for the box's own. */
  account_id: string
  load: string
  /** Attempts made so far, this one included. */
  attempt: number
  /** The place in the schedule, this one included. */
  tries: number
  attempt_seq: number
  /** When it was put into the queue, ISO 8601. */
  created_at: string
  sound: Health
}

/** An attempt under way. */
export interface Flight {
  claim: ClaimedDelivery
  controller: AbortController
  /** Resolves when it is over and recorded. */
  over: Promise<void>
}

/** Attempts under way at once, in all. */
export const maxInAll = 320

/** And to lanes of each kind, so that each leaves room to the others: what hangs does so among its like. */
const most = { [1]: 300, [0]: 80, [-1]: 120 }

/** And of those of one account, so that each leaves room to the others. */
const maxOfOne = { [1]: 240, [0]: 64, [-1]: 96 }

/** So many under way in all are a crowd. */
const crowd = 64

/** Attempts under way at once to one lane: in a crowd fewer, so that those that begin to hang together leave room. */
export interface Width {
  sound: number
  crowded: number
  unsound: number
  /** And to all lanes of the kind together; without it there is no bound but that of all kinds. */
  in_all?: number
}

const usual: Width = { sound: 16, crowded: 4, unsound: 1 }

/** The attempts under way: bounded in all and per lane, so that a lane that hangs takes no room from the others. */
export class InFlight {
  readonly #all = new Set<Flight>()
  /** Those that still take room, by lane. */
  readonly #lanes = new Map<string, number>()
  /** The same by kind. */
  readonly #kinds = new Map<string, number>()
  readonly #widths = new Map<string, Width>()
  readonly #taken = { [1]: 0, [0]: 0, [-1]: 0 }
  /** The same by account. */
  readonly #accounts = { [1]: new Map<string, number>(), [0]: new Map<string, number>(), [-1]: new Map<string, number>() }

  /** Attempts of one kind under way. */
  sizeOf(kind: string): number {
    return [...this.#all].filter(({ claim }) => claim.kind === kind).length
  }

  /** How many may be under way at once to one lane of deliveries of this kind. */
  widen(kind: string, width: Width): void {
    this.#widths.set(kind, width)
  }

  /** How many more may begin, to lanes of this kind. */
  room(sound: Health): number {
    return Math.min(maxInAll - this.#underWay, most[sound] - this.#taken[sound])
  }

  /** How many more of an account may begin, to lanes of this kind. */
  roomFor(accountId: string, sound: Health): number {
    return maxOfOne[sound] - (this.#accounts[sound].get(accountId) ?? 0)
  }

  /** Accounts of which no more may begin for now. */
  fullAccounts(sound: Health): string[] {
    return [...this.#accounts[sound].keys()].filter((accountId) => this.roomFor(accountId, sound) <= 0)
  }

  /** How many more of a kind may begin, once those that were claimed have begun. */
  roomOf(kind: string, claimed: readonly Pick<ClaimedDelivery, 'kind'>[]): number {
    const { in_all = maxInAll } = this.#widths.get(kind) ?? usual
    return in_all - (this.#kinds.get(kind) ?? 0) - claimed.filter((claim) => claim.kind === kind).length
  }

  /** Kinds of which no more may begin for now. */
  full(claimed: readonly Pick<ClaimedDelivery, 'kind'>[] = []): string[] {
    return [...this.#widths.keys()].filter((kind) => this.roomOf(kind, claimed) <= 0)
  }

  /** How many more may begin to this lane. */
  roomIn(kind: string, lane: string, sound: Health): number {
    const width = this.#widths.get(kind) ?? usual
    const wide = sound !== 1 ? width.unsound : this.#underWay >= crowd ? width.crowded : width.sound
    return wide - (this.#lanes.get(key(kind, lane)) ?? 0)
  }

  /** Begins an attempt: `fly` makes it, `record` writes down how it went. */
  begin<Result>(
    claim: ClaimedDelivery,
    fly: (claim: ClaimedDelivery, signal: AbortSignal) => Promise<Result>,
    record: (claim: ClaimedDelivery, result: Result) => Promise<void>,
  ): void {
    const controller = new AbortController()
    this.#count(claim, 1)
    const over = fly(claim, controller.signal)
      // room first: what records it then finds the lane as it is
      .finally(() => this.#count(claim, -1))
      .then((result) => record(claim, result))
      .finally(() => this.#all.delete(flight))
    const flight = { claim, controller, over }
    this.#all.add(flight)
  }

  /** Cuts off the attempts to a lane (or all), and resolves when they are over. */
  async end(of?: { kind: string; lane: string }): Promise<void> {
    const ending = [...this.#all].filter(({ claim }) => !of || (claim.kind === of.kind && claim.lane === of.lane))
    for (const { controller } of ending) controller.abort()
    await Promise.all(ending.map(({ over }) => over))
  }

  /** Resolves when those under way now are over. */
  async landed(): Promise<void> {
    await Promise.all([...this.#all].map(({ over }) => over))
  }

  get #underWay(): number {
    return this.#taken[1] + this.#taken[0] + this.#taken[-1]
  }

  #count({ kind, lane, account_id, sound }: ClaimedDelivery, by: 1 | -1): void {
    this.#taken[sound] += by
    this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0) + by)
    count(this.#accounts[sound], account_id, by)
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
