/** A delivery taken from the queue, its attempt on record. */
export interface Claim {
  seq: number
  kind: string
  lane: string
  load: string
  /** Attempts made so far, this one included. */
  attempt: number
  /** The place in the schedule, this one included. */
  tries: number
  attempt_seq: number
  /** Whether the lane's last attempt went well. */
  sound: boolean
}

/** An attempt under way. */
export interface Flight {
  claim: Claim
  controller: AbortController
  /** Resolves when it is over and recorded. */
  over: Promise<void>
}

/** Attempts under way at once: in all, and of those to lanes whose last attempt did not go well. */
const most = { all: 256, unsound: 128 }

/** So many under way in all are a crowd. */
const crowd = 64

/** Attempts under way at once to one lane: in a crowd fewer, so that those that begin to hang together leave room. */
const width = { sound: 16, crowded: 4, unsound: 1 }

/** The attempts under way: bounded in all and per lane, so that a lane that hangs takes no room from the others. */
export class Flights {
  readonly #all = new Set<Flight>()
  /** Those that still take room, by lane. */
  readonly #lanes = new Map<string, number>()
  readonly #taken = { sound: 0, unsound: 0 }

  get size(): number {
    return this.#all.size
  }

  /** How many more may begin, to lanes of this kind. */
  room(sound: boolean): number {
    const left = most.all - this.#taken.sound - this.#taken.unsound
    return sound ? left : Math.min(left, most.unsound - this.#taken.unsound)
  }

  /** How many more may begin to this lane. */
  roomIn(kind: string, lane: string, sound: boolean): number {
    const crowded = this.#taken.sound + this.#taken.unsound >= crowd
    const wide = !sound ? width.unsound : crowded ? width.crowded : width.sound
    return wide - (this.#lanes.get(key(kind, lane)) ?? 0)
  }

  /** Begins an attempt: `fly` makes it, `record` writes down how it went. */
  begin<Result>(
    claim: Claim,
    fly: (claim: Claim, signal: AbortSignal) => Promise<Result>,
    record: (claim: Claim, result: Result) => Promise<void>,
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

  #count({ kind, lane, sound }: Claim, by: 1 | -1): void {
    this.#taken[sound ? 'sound' : 'unsound'] += by
    const left = (this.#lanes.get(key(kind, lane)) ?? 0) + by
    if (left === 0) this.#lanes.delete(key(kind, lane))
    else this.#lanes.set(key(kind, lane), left)
  }
}

function key(kind: string, lane: string): string {
  return `${kind} ${lane}`
}
