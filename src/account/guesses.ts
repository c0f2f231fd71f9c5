import { createHash } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import { neighbourhood } from '../core/networks.ts'

/** A guess that counts as wrong until it is known to be something else. */
export interface Guess {
  /** It was right: this network begins anew. */
  right(): void
  /** It was neither right nor wrong. */
  undone(): void
}

interface Tally {
  wrong: number
  /** Milliseconds since the epoch: of the last in a network, of the first from everywhere. */
  at: number
}

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** Wrong guesses in a row that cost a network no pause; while an account is under attack from many networks, each has one. */
const free = { calm: 5, attacked: 1 }

/** Wrong guesses from everywhere within an hour that are an attack. */
const attack = 50

/** Wrong codes from everywhere within an hour, by who knows the password, after which codes are not looked at. */
const mostCodes = 30

/** The pauses that follow: the first, doubled each time, and the longest. */
const pause = { first: minute, longest: 15 * minute }

/** Networks, and names, that are remembered; above it the one longest unseen is forgotten. */
const remembered = 100_000

/**
 * Makes guessing slow, and locks nobody out: what counts is the name together with the network it is tried from, so that whoever guesses
 * elsewhere takes no more from the owner than all attempts but the first. Kept in memory: a restart forgets.
 */
export class Guesses {
  readonly #clock: Clock
  readonly #near = new Map<string, Tally>()
  readonly #everywhere = new Map<string, Tally>()
  readonly #codes = new Map<string, Tally>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Throws Fault rate_limited, code `too_many_attempts`, while this name must wait in this network. */
  begin(name: string, address: string): Guess {
    const who = digest(name)
    const place = digest(`${who} ${neighbourhood(address)}`)
    const now = this.#clock.now()
    const all = recent(this.#everywhere, who, now - hour)
    const near = recent(this.#near, place, now - day)
    const beyond = near.wrong - (all.wrong >= attack ? free.attacked : free.calm)
    const rest = beyond < 0 ? 0 : near.at + Math.min(pause.longest, pause.first * 2 ** beyond) - now
    if (rest > 0) throw tooMany(rest)
    remember(this.#near, place, { wrong: near.wrong + 1, at: now })
    remember(this.#everywhere, who, { wrong: all.wrong + 1, at: all.wrong === 0 ? now : all.at })
    const undone = (): void => {
      takeBack(this.#near, place)
      // a pause that was over does not begin anew
      const tally = this.#near.get(place)
      if (tally?.at === now) tally.at = near.at
      takeBack(this.#everywhere, who)
    }
    return {
      undone,
      right: () => {
        undone()
        this.#near.delete(place)
      },
    }
  }

  /**
   * The same for the codes of an authenticator app, which are short enough to be found from many networks at once. Throws while there were too
   * many: recovery codes are too long for that, and let the owner in meanwhile.
   */
  beginCode(name: string): Guess {
    const who = digest(name)
    const now = this.#clock.now()
    const codes = recent(this.#codes, who, now - hour)
    if (codes.wrong >= mostCodes) throw tooMany(codes.at + hour - now, ' Or use a recovery code.')
    remember(this.#codes, who, { wrong: codes.wrong + 1, at: codes.wrong === 0 ? now : codes.at })
    const undone = (): void => takeBack(this.#codes, who)
    return { undone, right: undone }
  }
}

/** Names are what strangers type, at any length, and may be a password in the wrong place: they are not kept. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

function recent(tallies: Map<string, Tally>, key: string, since: number): Tally {
  const tally = tallies.get(key)
  return tally && tally.at > since ? tally : { wrong: 0, at: 0 }
}

/** Deleting first moves it to the young end. */
function remember(tallies: Map<string, Tally>, key: string, tally: Tally): void {
  tallies.delete(key)
  tallies.set(key, tally)
  if (tallies.size > remembered) tallies.delete(tallies.keys().next().value!)
}

function takeBack(tallies: Map<string, Tally>, key: string): void {
  const tally = tallies.get(key)
  if (tally) tally.wrong = Math.max(0, tally.wrong - 1)
}

function tooMany(rest: number, otherwise = ''): Fault {
  const seconds = Math.ceil(rest / 1000)
  return new Fault('rate_limited', `Too many wrong attempts. Try again in ${seconds} s.${otherwise}`, {
    code: 'too_many_attempts',
    retryAfter: seconds,
  })
}
