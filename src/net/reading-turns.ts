import { lruMap } from '../core/memory.ts'
import { FairQueue } from '../core/work/fair-queue.ts'

/** Milliseconds in each iteration of the event loop for what all clients have sent, and what is done at once for it; other work is done between. */
const budget = 2

/**
 * Milliseconds for which nothing is read while connections are accepted, one in each iteration; then reading has as long. Were each iteration as long as
 * the budget, an honest client behind a hundred connections would wait for a hundred times that.
 */
const acceptTime = 10

const kinds = ['handshake', 'admitted', 'short', 'long'] as const

/**
 * What waits to be read: of a connection in its handshake; a short packet of a network from which a caller with a valid key or session was admitted, or of any other; or a slice of a
 * longer packet.
 */
export type Kind = (typeof kinds)[number]

/** Bytes of the longest packet that is short: a call, or a few. */
const short = 4 * 1024

/** When the last call with a valid key or session was made from a network, by `performance.now()`. */
const admitted = lruMap<number>(10_000)

/** Milliseconds for which the network of an admitted caller counts as known; longer than the longest wait and than a connection is kept without a call. */
const knownFor = 180_000

/** Networks of an account that are known at once, so that one tenant does not have all the places that are kept for them. */
const maxKnown = 32

/** Those of each account, the one of the latest call last. */
const knownOf = lruMap<Set<string>>(10_000)

/**
 * Says that a caller of this network was admitted. From then on it does not wait behind strangers: of these there may be more networks than the
 * main thread can serve, each of which uses less time than an honest client.
 */
export function admitNetwork(network: string, account: string): void {
  admitted.set(network, performance.now())
  const own = knownOf.get(account) ?? new Set()
  own.delete(network)
  own.add(network)
  knownOf.set(account, own)
  if (own.size <= maxKnown) return
  const [oldest] = own
  own.delete(oldest!)
  admitted.delete(oldest!)
}

/** True if a caller of this network was admitted lately. */
export function isKnownNetwork(network: string): boolean {
  const at = admitted.peek(network)
  return at !== undefined && performance.now() - at < knownFor
}

export function kindOf(octets: Buffer, network: string): Kind {
  if (octets.length > short) return 'long'
  return isKnownNetwork(network) ? 'admitted' : 'short'
}

/** What was received, and the network that sent it. */
interface Waiting {
  network: string
  read: () => void
}

/**
 * Reading what clients have sent: TLS records, HTTP in the clear, and messages by SMTP. The kinds take turns: a thousand handshakes take
 * longer than a call may wait. Of one kind the network that used the least time within the last second comes first: the slices of one may take a
 * hundred times as long as those of another. What the budget of an iteration does not suffice for is done in the next.
 */
class ReadingTurns {
  readonly #waiting = {
    handshake: new FairQueue<Waiting>(),
    admitted: new FairQueue<Waiting>(),
    short: new FairQueue<Waiting>(),
    long: new FairQueue<Waiting>(),
  }
  /** The place of the kind that was read last. */
  #last = 0
  /** Milliseconds by network, since `#counted`. */
  readonly #used = lruMap<number>(10_000)
  #counted = 0
  /** What is being read for a network, or was just now. */
  #current: { network: string; begun: number } | undefined
  /** The first read of this iteration. */
  #begun: number | undefined
  /** Milliseconds that this iteration may take. */
  #budget = budget
  #isScheduled = false
  /** A connection was accepted in this iteration. */
  #hasAccepted = false
  /** The first iteration of those that only accepted. */
  #acceptedSince: number | undefined

  /** What waits to be read. */
  get size(): number {
    const { handshake, admitted: known, short: brief, long } = this.#waiting
    return handshake.size + known.size + brief.size + long.size
  }

  /** True if this network used no time lately. */
  isIdle(network: string): boolean {
    return this.#usedBy(network) === 0
  }

  enter(kind: Kind, network: string, read: () => void): void {
    // what is read may have more to be read: it waits as all else does
    const now = this.#current || this.size > 0 ? undefined : performance.now()
    if (now !== undefined && this.#mayRead(now)) this.#read({ network, read }, now)
    else this.#waiting[kind].push(network, { network, read })
    this.#schedule()
  }

  /** Says that a connection was accepted: others may wait for that too. */
  accepted(): void {
    this.#hasAccepted = true
    this.#schedule()
  }

  /** Reads all that waits now: a server that stops closes connections that have no request. */
  flush(): void {
    // what is entered meanwhile is read here too
    this.#begun = -Infinity
    this.#schedule()
    for (let next = this.#next(); next; next = this.#next()) next.read()
  }

  /** True if the budget of this iteration suffices for more. */
  #mayRead(now: number): boolean {
    return !this.#hasAccepted && (this.#begun === undefined || now - this.#begun < this.#budget)
  }

  #readNext(now: number): void {
    const next = this.#mayRead(now) ? this.#next() : undefined
    if (next) this.#read(next, now)
    if (next || this.size > 0) this.#schedule()
  }

  #read({ network, read }: Waiting, now: number): void {
    this.#begun ??= now
    this.#current = { network, begun: now }
    // called once all that the read resolves is done
    queueMicrotask(this.#continueLater)
    read()
  }

  readonly #continueLater = (): void => process.nextTick(this.#continue)

  readonly #continue = (): void => {
    const { network, begun } = this.#current!
    const now = performance.now()
    this.#current = undefined
    this.#count(network, now - begun, now)
    if (this.size > 0) this.#readNext(now)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#beginIteration)
  }

  readonly #beginIteration = (): void => {
    this.#isScheduled = false
    const now = performance.now()
    this.#begun = undefined
    const hasWaited = this.#acceptedSince === undefined ? 0 : now - this.#acceptedSince
    const mayWait = this.#hasAccepted && hasWaited < acceptTime && this.size > 0
    this.#hasAccepted = false
    if (mayWait) {
      this.#acceptedSince ??= now
      return this.#schedule()
    }
    this.#acceptedSince = undefined
    this.#budget = Math.max(budget, hasWaited)
    if (this.size > 0 && !this.#current) this.#readNext(now)
  }

  /** The next of the kind whose turn it is. */
  #next(): Waiting | undefined {
    for (let step = 1; step <= kinds.length; step += 1) {
      const place = (this.#last + step) % kinds.length
      const waiting = this.#waiting[kinds[place]!]
      if (waiting.size === 0) continue
      this.#last = place
      return this.#leastOf(waiting)
    }
    return undefined
  }

  #leastOf(waiting: FairQueue<Waiting>): Waiting | undefined {
    let first = ''
    let least = Infinity
    waiting.peek((network) => {
      const used = this.#usedBy(network)
      if (used < least) [first, least] = [network, used]
      // nothing is less
      return least === 0
    })
    return waiting.shift((network) => network === first)
  }

  #count(network: string, took: number, now: number): void {
    if (now - this.#counted > 1000) {
      this.#used.clear()
      this.#counted = now
    }
    this.#used.set(network, this.#usedBy(network) + took)
  }

  #usedBy(network: string): number {
    return this.#used.peek(network) ?? 0
  }
}

/** Those of this process. */
export const readingTurns = new ReadingTurns()
