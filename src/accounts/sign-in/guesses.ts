import { createHash } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import { Fault } from '../../core/fault.ts'
import { networksOf } from '../../net/networks.ts'

/** What is guessed at. */
export interface GuessTarget {
  /** What was typed as the name, or what is guarded. */
  name: string
  /** Whether there is such an account. What is remembered of it no stranger can push out of memory. */
  exists: boolean
  /** Whether it was signed in to from this network before. */
  known: boolean
}

/** A guess that counts as wrong until it is known to be something else. */
export interface Guess {
  /** It was right: its networks begin anew. */
  right(): void
  /** It was neither right nor wrong. */
  undone(): void
}

interface Tally {
  wrong: number
  /** Milliseconds since the epoch: of the last guess from a network, of the first code. */
  at: number
}

/** What is remembered of one name. */
interface Tallies {
  /** Guesses that networks where nobody signed in before have left together, and since when. */
  left: number
  filled: number
  networks: Map<string, Tally>
  codes: Tally
}

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** Wrong guesses in a row that cost no pause: from an IPv4 address or IPv6 /64, a /56, a /48. */
const free = [5, 10, 20] as const

/** The pauses that follow: the first, doubled each time, and the longest. */
const pause = { first: minute, longest: 15 * minute }

/** Wrong guesses from networks where nobody signed in before, all together: at once, and then one a minute. */
const fromAnywhere = 50

/** Wrong codes from such networks within an hour, by who knows the password, after which codes are not looked at. */
const maxCodes = 30

/** Networks of one name, and names that nobody has, that are remembered; above it the one longest unseen is forgotten. */
const remembered = { networks: 1000, nobodies: 10_000, names: 100_000 }

/**
 * Makes guessing slow, and locks nobody out: a name counts its wrong guesses by the network they come from, and those from networks where
 * nobody signed in before all together. Where somebody did, only that network counts. Kept in memory: a restart forgets.
 */
export class Guesses {
  readonly #clock: Clock
  readonly #names = new Map<string, Tallies>()
  readonly #nobodies = new Map<string, Tallies>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Names that are remembered. */
  get size(): number {
    return this.#names.size + this.#nobodies.size
  }

  /** Throws Fault rate_limited, code `too_many_attempts`, while this name must wait in this network. */
  begin(target: GuessTarget, address: string): Guess {
    const tallies = this.#of(target)
    const now = this.#clock.now()
    const places = target.known ? networksOf(address).slice(0, 1) : networksOf(address)
    const before = places.map((place) => recent(tallies.networks.get(place), now - day))
    const rest = Math.max(...before.map(({ wrong, at }, index) => at + pauseAfter(wrong - free[index]!) - now))
    if (rest > 0) throw tooMany(rest)
    if (!target.known) takeOne(tallies, now)
    for (const [index, place] of places.entries()) {
      remember(tallies.networks, place, { wrong: before[index]!.wrong + 1, at: now }, remembered.networks)
    }
    const undone = (): void => {
      if (!target.known) tallies.left = Math.min(fromAnywhere, tallies.left + 1)
      for (const [index, place] of places.entries()) {
        const tally = tallies.networks.get(place)
        if (!tally) continue
        tally.wrong -= 1
        // a pause that was over does not begin anew
        if (tally.at === now) tally.at = before[index]!.at
        if (tally.wrong <= 0) tallies.networks.delete(place)
      }
    }
    return {
      undone,
      right: () => {
        undone()
        for (const place of places) tallies.networks.delete(place)
      },
    }
  }

  /**
   * The same for the codes of an authenticator app, which are short enough to be found from many networks at once. Throws while there were too
   * many: recovery codes are too long for that, and let the owner in meanwhile, as does a network where they signed in before.
   */
  beginCode(target: GuessTarget): Guess {
    if (target.known) return { right: nothing, undone: nothing }
    const tallies = this.#of(target)
    const now = this.#clock.now()
    const codes = recent(tallies.codes, now - hour)
    if (codes.wrong >= maxCodes) throw tooMany(codes.at + hour - now, ' Or use a recovery code.')
    tallies.codes = { wrong: codes.wrong + 1, at: codes.wrong === 0 ? now : codes.at }
    const undone = (): void => void (tallies.codes.wrong -= 1)
    return { undone, right: undone }
  }

  #of({ name, exists }: GuessTarget): Tallies {
    const names = exists ? this.#names : this.#nobodies
    const who = digest(name)
    const now = this.#clock.now()
    const tallies = names.get(who) ?? { left: fromAnywhere, filled: now, networks: new Map(), codes: { wrong: 0, at: now } }
    remember(names, who, tallies, exists ? remembered.names : remembered.nobodies)
    return tallies
  }
}

/** How long a network waits after so many wrong guesses beyond the free ones, in milliseconds. */
function pauseAfter(beyond: number): number {
  return beyond < 0 ? -Infinity : Math.min(pause.longest, pause.first * 2 ** beyond)
}

/** Throws when all of them are used up. */
function takeOne(tallies: Tallies, now: number): void {
  const left = Math.min(fromAnywhere, tallies.left + Math.max(0, now - tallies.filled) / minute)
  if (left < 1) throw tooMany((1 - left) * minute)
  tallies.left = left - 1
  tallies.filled = now
}

/** Names are what strangers type, at any length, and may be a password in the wrong place: they are not kept. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

function recent(tally: Tally | undefined, since: number): Tally {
  return tally && tally.at > since ? tally : { wrong: 0, at: 0 }
}

/** Deleting first moves it to the young end. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value, most: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > most) map.delete(map.keys().next().value!)
}

function nothing(): void {}

function tooMany(rest: number, otherwise = ''): Fault {
  const seconds = Math.ceil(rest / 1000)
  return new Fault('rate_limited', `Too many wrong attempts. Try again in ${seconds} s.${otherwise}`, {
    code: 'too_many_attempts',
    retryAfter: seconds,
  })
}
