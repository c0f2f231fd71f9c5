import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import { type Clock, day } from '../../core/clock.ts'
import { lruMap, lruMapOfBytes } from '../../core/memory.ts'
import { type Database, sql } from '../../store/database.ts'
import { countCode, countGuess, type CountedGuess, noTallies, type Tallies } from './tallies.ts'

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
  right(): void | Promise<void>
  /** The guess was neither right nor wrong. */
  undone(): void | Promise<void>
}

/**
 * Slows down guessing without lockouts. Each name counts its wrong guesses by network, and those from networks without an earlier sign-in
 * together. A network with an earlier sign-in is only subject to its own count.
 */
export interface GuessCounter {
  /** Throws Fault rate_limited, code `too_many_attempts`, while guesses at this name from this network are delayed. */
  begin(target: GuessTarget, address: string): Guess | Promise<Guess>
  /**
   * The same for the codes of an authenticator app, which are short enough to be found from many networks at once. Throws after too many.
   * Recovery codes are too long for that and stay available to the owner, as do networks with an earlier sign-in.
   */
  beginCode(target: GuessTarget): Guess | Promise<Guess>
}

/**
 * The most existing names, bytes in memory of names that do not exist, of which strangers choose as many as they like, and rows of those.
 * Beyond it the least recently used is dropped.
 */
const remembered = { names: 100_000, bytesOfNobodies: 32 * 1024 * 1024, rowsOfNobodies: 50_000 }

/** Estimated bytes of a name, and of one of its networks. */
const bytesOf = { name: 500, network: 200 }

/** A guess that was counted in memory. */
interface LocalGuess extends Guess {
  right(): void
  undone(): void
}

const uncounted: LocalGuess = { right: nothing, undone: nothing }

/** Counts the guesses of one box alone: in memory, and lost at a restart. */
export class Guesses implements GuessCounter {
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

  begin(target: GuessTarget, address: string): LocalGuess {
    const tallies = this.#of(target)
    const counted = countGuess(tallies, target.known, address, this.#clock.now())
    if (!target.exists) this.#resize(target.name, tallies)
    return { right: () => counted.right(tallies), undone: () => counted.undone(tallies) }
  }

  beginCode(target: GuessTarget): LocalGuess {
    if (target.known) return uncounted
    const tallies = this.#of(target)
    const counted = countCode(tallies, this.#clock.now())
    return { right: () => counted.right(tallies), undone: () => counted.undone(tallies) }
  }

  #of({ name, exists }: GuessTarget): Tallies {
    const names = exists ? this.#names : this.#nobodies
    const who = digest(name)
    const known = names.get(who)
    if (known) return known
    const tallies = noTallies(this.#clock.now())
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

/** Counts the guesses of several boxes together, in their database. */
export class SharedGuesses implements GuessCounter {
  readonly #database: Database
  readonly #clock: Clock
  /** A guess is counted whatever becomes of the call that made it, so its transaction is no part of that. */
  readonly #apart = AsyncLocalStorage.snapshot()

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  begin(target: GuessTarget, address: string): Promise<Guess> {
    return this.#begin(target, (tallies) => countGuess(tallies, target.known, address, this.#clock.now()))
  }

  async beginCode(target: GuessTarget): Promise<Guess> {
    return target.known ? uncounted : this.#begin(target, (tallies) => countCode(tallies, this.#clock.now()))
  }

  /** Removes what counts no more, and of names that do not exist all but the latest. */
  async sweep(): Promise<void> {
    const kept = sql`SELECT used_at FROM guesses WHERE known = 0 ORDER BY used_at DESC LIMIT 1 OFFSET ${remembered.rowsOfNobodies}`
    await this.#database.transaction(async (tx) => {
      await tx.run(sql`DELETE FROM guesses WHERE used_at <= ${this.#clock.now() - day}`)
      await tx.run(sql`DELETE FROM guesses WHERE known = 0 AND used_at <= (${kept})`)
    })
  }

  async #begin(target: GuessTarget, count: (tallies: Tallies) => CountedGuess): Promise<Guess> {
    const { right, undone } = await this.#change(target, count)
    return { right: () => this.#change(target, right), undone: () => this.#change(target, undone) }
  }

  #change<Result>({ name, exists }: GuessTarget, change: (tallies: Tallies) => Result): Promise<Result> {
    // strangers type any text as a name, also one by which attempts of a person are counted, as `recovery ada@example.com`
    const who = digest(`${exists ? 'somebody' : 'nobody'} ${name}`)
    const work = (): Promise<Result> =>
      this.#database.transaction(async (tx) => {
        const now = this.#clock.now()
        const row = await tx.get<{ tallies: string }>(sql`SELECT tallies FROM guesses WHERE name = ${who}`)
        const tallies = row ? fromText(row.tallies) : noTallies(now)
        const result = change(tallies)
        await tx.run(
          sql`INSERT INTO guesses (name, tallies, known, used_at) VALUES (${who}, ${toText(tallies)}, ${Number(exists)}, ${now})
            ON CONFLICT (name) DO UPDATE SET tallies = excluded.tallies, known = excluded.known, used_at = excluded.used_at`,
        )
        return result
      })
    return this.#apart(work)
  }
}

function toText(tallies: Tallies): string {
  return JSON.stringify({ ...tallies, networks: [...tallies.networks] })
}

function fromText(text: string): Tallies {
  const stored = JSON.parse(text) as Omit<Tallies, 'networks'> & { networks: [string, Tallies['codes']][] }
  return { ...stored, networks: new Map(stored.networks) }
}

/** Names are untrusted, have any length, and may be a password in the wrong field: only a hash is kept. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

function nothing(): void {}
