/** Milliseconds for which the time that an account used counts. */
const period = 60_000

interface Turn {
  account: string
  begin: () => void
  /** When it began. */
  begun: number
  /** Milliseconds for which others wait. */
  slice: number
  stop: AbortController
}

/**
 * Work that is done one piece at a time. The account that used the least time comes first, so that another's waits for one piece at most; and for at most
 * `slice` milliseconds of a piece of an account that used more, where that is given: the piece is stopped then, and begins anew in its turn, each time for twice as long.
 */
export class FairTurns {
  readonly #slice: number
  /** In the order of their arrival. */
  readonly #waiting: Turn[] = []
  /** Milliseconds that accounts used since `#counted`. */
  readonly #used = new Map<string, number>()
  #counted = 0
  #current: Turn | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(slice = Infinity) {
    this.#slice = slice
  }

  /**
   * Runs work in its turn. It must reject when it is stopped, and must not wait for other work of these turns. Rejects when the signal aborts before
   * it begins.
   */
  async run<Result>(account: string, work: (stopped: AbortSignal) => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    for (let slice = this.#slice; ; slice *= 2) {
      signal?.throwIfAborted()
      const { begun, stop } = await this.#turn(account, slice, signal)
      try {
        return await work(stop.signal)
      } catch (error) {
        if (!stop.signal.aborted) throw error
      } finally {
        this.#count(account, performance.now() - begun)
        this.#current = undefined
        this.#next()
      }
    }
  }

  #turn(account: string, slice: number, signal: AbortSignal | undefined): Promise<Turn> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(turn), 1)
        reject(signal!.reason as Error)
      }
      const begin = (): void => {
        signal?.removeEventListener('abort', leave)
        turn.begun = performance.now()
        resolve(turn)
      }
      const turn: Turn = { account, begin, begun: 0, slice, stop: new AbortController() }
      signal?.addEventListener('abort', leave, { once: true })
      this.#waiting.push(turn)
      if (this.#current) this.#watch(this.#current)
      else this.#next()
    })
  }

  #next(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#waiting.length === 0) return
    const times = this.#waiting.map(({ account }) => this.#usedBy(account))
    const [first] = this.#waiting.splice(times.indexOf(Math.min(...times)), 1)
    this.#current = first!
    first!.begin()
    if (this.#waiting.length > 0) this.#watch(first!)
  }

  /** Stops what runs at the end of its slice if one waits that used less. */
  #watch(current: Turn): void {
    if (current.slice === Infinity || this.#timer) return
    const left = current.begun + current.slice - performance.now()
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined
        const used = this.#usedBy(current.account) + performance.now() - current.begun
        if (this.#waiting.some(({ account }) => account !== current.account && this.#usedBy(account) < used)) current.stop.abort()
      },
      Math.max(0, left),
    ).unref()
  }

  #usedBy(account: string): number {
    return this.#used.get(account) ?? 0
  }

  #count(account: string, time: number): void {
    const now = performance.now()
    if (now - this.#counted > period) {
      this.#used.clear()
      this.#counted = now
    }
    this.#used.set(account, this.#usedBy(account) + time)
  }
}
