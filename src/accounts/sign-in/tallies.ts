import { day, hour, minute } from '../../core/clock.ts'
import { Fault } from '../../core/fault.ts'
import { networksOf } from '../../net/networks.ts'

export interface Tally {
  wrong: number
  /** Milliseconds since the epoch: of the last guess from a network, or of the first code. */
  at: number
}

/** The counters of one name. */
export interface Tallies {
  /** The remaining guesses shared by all networks without an earlier sign-in, and since when. */
  left: number
  filled: number
  /** The least recently used first; a Map, as there are many with few entries: an empty `lruMap` has 2 kB. */
  networks: Map<string, Tally>
  codes: Tally
}

/** A guess that was counted as wrong, and how its name is to be counted when it was not. */
export interface CountedGuess {
  right: (tallies: Tallies) => void
  undone: (tallies: Tallies) => void
}

/** Consecutive wrong guesses without a delay: from an IPv4 address or IPv6 /64, a /56, a /48. */
const free = [5, 10, 20] as const

/** The delays after that: the first, doubled each time, and the longest. */
const pause = { first: minute, longest: 15 * minute }

/** Wrong guesses from all networks without an earlier sign-in together: a burst of this many, and then one a minute. */
const fromAnywhere = 50

/** Wrong codes an hour from such networks, given with the right password, after which codes are rejected unchecked. */
const maxCodes = 30

/** How far the clock of another box may be ahead, in milliseconds: what was counted later than that was counted while a clock was ahead, and counts no more. */
const maxSkew = minute

/** The most networks of one name; beyond it the least recently used is dropped. */
const maxNetworks = 1000

export function noTallies(now: number): Tallies {
  return { left: fromAnywhere, filled: now, networks: new Map<string, Tally>(), codes: { wrong: 0, at: now } }
}

/** Counts a guess from an address, `known` for an earlier sign-in from its network, as wrong. Throws Fault rate_limited, code `too_many_attempts`, while guesses from there are delayed. */
export function countGuess(tallies: Tallies, known: boolean, address: string, now: number): CountedGuess {
  const places = known ? networksOf(address).slice(0, 1) : networksOf(address)
  const before = places.map((place) => recent(tallies.networks.get(place), now, day))
  const rest = Math.max(...before.map(({ wrong, at }, index) => at + pauseAfter(wrong - free[index]!) - now))
  if (rest > 0) throw tooMany(rest)
  if (!known) takeOne(tallies, now)
  for (const [index, place] of places.entries()) {
    setTally(tallies.networks, place, { wrong: before[index]!.wrong + 1, at: now })
  }
  const undone = (counted: Tallies): void => {
    if (!known) counted.left = Math.min(fromAnywhere, counted.left + 1)
    for (const [index, place] of places.entries()) {
      const tally = counted.networks.get(place)
      if (!tally) continue
      tally.wrong -= 1
      // an expired delay does not start again
      if (tally.at === now) tally.at = before[index]!.at
      if (tally.wrong <= 0) counted.networks.delete(place)
    }
  }
  return {
    undone,
    right: (counted) => {
      undone(counted)
      for (const place of places) counted.networks.delete(place)
    },
  }
}

/** The same for a code of an authenticator app. */
export function countCode(tallies: Tallies, now: number): CountedGuess {
  const codes = recent(tallies.codes, now, hour)
  if (codes.wrong >= maxCodes) throw tooMany(codes.at + hour - now, ' Or use a recovery code.')
  tallies.codes = { wrong: codes.wrong + 1, at: codes.wrong === 0 ? now : codes.at }
  const undone = (counted: Tallies): void => void (counted.codes.wrong -= 1)
  return { undone, right: undone }
}

/** The delay of a network after this many wrong guesses beyond the free ones, in milliseconds. */
function pauseAfter(beyond: number): number {
  return beyond < 0 ? -Infinity : Math.min(pause.longest, pause.first * 2 ** beyond)
}

/** Throws when none is left. */
function takeOne(tallies: Tallies, now: number): void {
  const passed = tallies.filled > now + maxSkew ? Infinity : Math.max(0, now - tallies.filled)
  const left = Math.min(fromAnywhere, tallies.left + passed / minute)
  if (left < 1) throw tooMany((1 - left) * minute)
  tallies.left = left - 1
  tallies.filled = now
}

/** Sets the tally of a network as the most recently used; the least recently used is dropped when there are too many. */
function setTally(networks: Tallies['networks'], network: string, tally: Tally): void {
  networks.delete(network)
  networks.set(network, tally)
  if (networks.size > maxNetworks) networks.delete(networks.keys().next().value!)
}

/** The tally if it is from the time before `now` that counts, else an empty one. */
function recent(tally: Tally | undefined, now: number, time: number): Tally {
  return tally && tally.at > now - time && tally.at <= now + maxSkew ? tally : { wrong: 0, at: 0 }
}

function tooMany(rest: number, otherwise = ''): Fault {
  const seconds = Math.ceil(rest / 1000)
  return new Fault('rate_limited', `Too many wrong attempts. Try again in ${seconds} s.${otherwise}`, {
    code: 'too_many_attempts',
    retryAfter: seconds,
  })
}
