import { createHash } from 'node:crypto'
import { type Clock, day, hour, minute } from '../../core/clock.ts'
import { Fault } from '../../core/fault.ts'
import { lruMap, lruMapOfBytes } from '../../core/memory.ts'
import { networksOf } from '../../net/networks.ts'

/** The target of a guess. */
export interface GuessTarget {
  /** The login name as typed, or the protected object. */
  name: string
  /** True if there is such an account. Attackers cannot evict the counters of an existing account. */
  exists: boolean
  /** True if the account was signed in to from this network before. */
  known: boolean
}

/** A guess that counts as wrong until it is marked otherwise. */
export interface Guess {
  /** The guess was right: resets the counters of its networks. */
  right(): void
  /** The guess was neither right nor wrong. */
  undone(): void
}

interface Tally {
  wrong: number
  /** Milliseconds since the epoch: of the last guess from a network, or of the first code. */
  at: number
}

/** The counters of one name. */
interface Tallies {
  /** The remaining guesses shared by all networks without an earlier sign-in, and since when. */
  left: number
  filled: number
  /** The least recently used first; a Map, as there are many with few entries: an empty `lruMap` has 2 kB. */
  networks: Map<string, Tally>
  codes: Tally
}

/** Consecutive wrong guesses without a delay: from an IPv4 address or IPv6 /64, a /56, a /48. */
const free = [5, 10, 20] as const

/** The delays after that: the first, doubled each time, and the longest. */
const pause = { first: minute, longest: 15 * minute }

/** Wrong guesses from all networks without an earlier sign-in together: a burst of this many, and then one a minute. */
const fromAnywhere = 50

/** Wrong codes an hour from such networks, given with the right password, after which codes are rejected unchecked. */
const maxCodes = 30

/**
 * The most networks of one name, existing names, and bytes of names that do not exist, of which strangers choose as many as they like. Beyond it the
 * least recently used is dropped.
 */
const remembered = { networks: 1000, names: 100_000, bytesOfNobodies: 32 * 1024 * 1024 }

/** Estimated bytes of a name, and of one of its networks. */
const bytesOf = { name: 500, network: 200 }

/**
 * Slows down guessing without lockouts. Each name counts its wrong guesses by network, and those from networks without an earlier sign-in
 * together. A network with an earlier sign-in is only subject to its own count. The counters are in memory and lost at a restart.
 */
export class Guesses {
  readonly #clock: Clock
  readonly #names = lruMap<Tallies>(remembered.names)
  readonly #nobodies = lruMapOfBytes<Tallies>(
    remembered.bytesOfNobodies,
    ({ networks }) => bytesOf.name + bytesOf.network * networks.size,
  )

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The number of names in memory. */
  get size(): number {
    return this.#names.size + this.#nobodies.size
  }

  /** Throws Fault rate_limited, code `too_many_attempts`, while guesses at this name from this network are delayed. */
  begin(target: GuessTarget, address: string): Guess {
    const tallies = this.#of(target)
    const now = this.#clock.now()
    const places = target.known ? networksOf(address).slice(0, 1) : networksOf(address)
    const before = places.map((place) => recent(tallies.networks.get(place), now - day))
    const rest = Math.max(...before.map(({ wrong, at }, index) => at + pauseAfter(wrong - free[index]!) - now))
    if (rest > 0) throw tooMany(rest)
    if (!target.known) takeOne(tallies, now)
    for (const [index, place] of places.entries()) {
      setTally(tallies.networks, place, { wrong: before[index]!.wrong + 1, at: now })
    }
    if (!target.exists) this.#resize(target.name, tallies)
    const undone = (): void => {
      if (!target.known) tallies.left = Math.min(fromAnywhere, tallies.left + 1)
      for (const [index, place] of places.entries()) {
        const tally = tallies.networks.get(place)
        if (!tally) continue
        tally.wrong -= 1
        // an expired delay does not start again
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
   * The same for the codes of an authenticator app, which are short enough to be found from many networks at once. Throws after too many.
   * Recovery codes are too long for that and stay available to the owner, as do networks with an earlier sign-in.
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
    const known = names.get(who)
    if (known) return known
    const tallies = {
      left: fromAnywhere,
      filled: now,
      networks: new Map<string, Tally>(),
      codes: { wrong: 0, at: now },
    }
    names.set(who, tallies)
    return tallies
  }

  /** Counts the networks that a name without an account has now: the map measures what is added, not what grows. */
  #resize(name: string, tallies: Tallies): void {
    const who = digest(name)
    this.#nobodies.delete(who)
    this.#nobodies.set(who, tallies)
  }
}

/** The delay of a network after this many wrong guesses beyond the free ones, in milliseconds. */
function pauseAfter(beyond: number): number {
  return beyond < 0 ? -Infinity : Math.min(pause.longest, pause.first * 2 ** beyond)
}

/** Throws when none is left. */
function takeOne(tallies: Tallies, now: number): void {
  const left = Math.min(fromAnywhere, tallies.left + Math.max(0, now - tallies.filled) / minute)
  if (left < 1) throw tooMany((1 - left) * minute)
  tallies.left = left - 1
  tallies.filled = now
}

/** Sets the tally of a network as the most recently used; the least recently used is dropped when there are too many. */
function setTally(networks: Tallies['networks'], network: string, tally: Tally): void {
  networks.delete(network)
  networks.set(network, tally)
  if (networks.size > remembered.networks) networks.delete(networks.keys().next().value!)
}

/** Names are untrusted, have any length, and may be a password in the wrong field: only a hash is kept. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

function recent(tally: Tally | undefined, since: number): Tally {
  return tally && tally.at > since ? tally : { wrong: 0, at: 0 }
}

function nothing(): void {}

function tooMany(rest: number, otherwise = ''): Fault {
  const seconds = Math.ceil(rest / 1000)
  return new Fault('rate_limited', `Too many wrong attempts. Try again in ${seconds} s.${otherwise}`, {
    code: 'too_many_attempts',
    retryAfter: seconds,
  })
}
