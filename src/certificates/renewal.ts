import { iso } from '../core/clock.ts'
import type { Clock } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import type { Log } from '../core/log.ts'
import type { Cabinet, Standing } from './cabinet.ts'
import { flaw, names as covers, readingOf } from './pair.ts'
import type { Pair } from './pair.ts'
import { AuthorityError } from './transport.ts'

/** A certificate there should be. */
export interface Wanted {
  /** Under which it is kept: `main`, or the one host it is for. */
  name: string
  hosts: string[]
  /** Whether a CA would find us under these names; else it is not asked, and what is there stays. */
  ready: boolean
}

/** How a certificate by ACME stands; times in milliseconds. */
export interface Obtained extends Wanted {
  pair: Pair | undefined
  renew_at: number | null
  standing: Readonly<Standing> | undefined
}

interface Parts {
  clock: Clock
  log: Log
  cabinet: Cabinet
  /** Milliseconds before its end at which a certificate is renewed. */
  renew_before: number
  wanted: () => Promise<Wanted[]>
  obtain: (hosts: readonly string[], signal: AbortSignal) => Promise<Pair>
  /** After each try, once its outcome is on disk; `news` is whether it is worth telling. */
  settled: (wanted: Wanted, news: boolean) => Promise<void>
}

const minute = 60_000
const hour = 60 * minute

/** After each failure in a row, how long until the next try; then twice a day. */
const waits = [5 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 4 * hour, 8 * hour]
const lastWait = 12 * hour

/** Tries within one hour, whoever asks for them: CAs count those that fail, and lock out who has too many. */
const most = { ofOne: 4, ofAll: 40 }

/** Between two looks at what is due, and the longest wait that is believed after a restart: clocks have been wrong; in milliseconds. */
const betweenLooks = minute
const longestWait = 8 * 24 * hour

/** Longest that one try may take, in milliseconds. */
const longest = 5 * minute

/** Sees to it that there are certificates by ACME, and that they are renewed; one try at a time, each on disk before it is made. */
export class Renewal {
  readonly #parts: Parts
  readonly #pairs = new Map<string, Pair>()
  readonly #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #idle = true
  #looked = -Infinity

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Reads what is on disk of what is wanted now. */
  async start(): Promise<void> {
    for (const { name } of await this.#parts.wanted()) {
      const pair = await this.#parts.cabinet.pair(name)
      if (pair) this.#pairs.set(name, pair)
    }
  }

  /** Gives up what is under way. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('the box stops'))
    await this.#running
  }

  get pairs(): ReadonlyMap<string, Pair> {
    return this.#pairs
  }

  /** Those that are there, were tried, or will be. */
  async all(): Promise<Obtained[]> {
    const { wanted, cabinet } = this.#parts
    return (await wanted())
      .map((one) => {
        const pair = this.#pairs.get(one.name)
        return { ...one, pair, renew_at: pair ? this.#renewAt(pair) : null, standing: cabinet.standings[one.name] }
      })
      .filter(({ ready, pair, standing }) => ready || pair || standing)
  }

  /** Begins what is due, unless that is under way, or was looked for a moment ago. */
  begin(): void {
    const now = this.#parts.clock.now()
    if (!this.#idle || this.#stop.signal.aborted || Math.abs(now - this.#looked) < betweenLooks) return
    this.#looked = now
    void this.#next(() => this.#obtainDue())
  }

  /**
   * Tries now what is missing or due, however long it would have to wait, or the one whose certificate names this host, due or not. Throws
   * Fault rate_limited when that would be too often within an hour, and not_found.
   */
  async now(host?: string): Promise<void> {
    const asked = (await this.#parts.wanted()).filter(({ hosts }) => host === undefined || hosts.includes(host))
    if (asked.length === 0 && host !== undefined) throw new Fault('not_found', `No certificate for ${host} is obtained by ACME.`)
    const open = asked.filter((one) => host !== undefined || (one.ready && !this.#fits(one)))
    for (const one of open) {
      const free = this.#freeAt(one.name)
      const retryAfter = Math.ceil((free - this.#parts.clock.now()) / 1000)
      if (retryAfter > 0) {
        throw new Fault(
          'rate_limited',
          `${one.hosts.join(', ')} was tried too often: the CA would lock us out. Try again later.`,
          {
            code: 'acme_tries',
            retryAfter,
          },
        )
      }
    }
    await this.#next(async () => {
      for (const one of open) if (this.#freeAt(one.name) <= this.#parts.clock.now()) await this.#try(one)
    })
  }

  #next(work: () => Promise<void>): Promise<void> {
    this.#idle = false
    const running = this.#running
      .then(() => (this.#stop.signal.aborted ? undefined : work()))
      .catch((error: unknown) => this.#parts.log.error({ err: error }, 'certificates could not be seen to'))
      .finally(() => {
        if (this.#running === running) this.#idle = true
      })
    this.#running = running
    return running
  }

  async #obtainDue(): Promise<void> {
    const { wanted, cabinet, clock } = this.#parts
    const all = await wanted()
    for (const one of all) {
      if (one.ready && !this.#fits(one) && !this.#waits(one) && this.#freeAt(one.name) <= clock.now()) await this.#try(one)
    }
    for (const name of Object.keys(cabinet.standings)) {
      if (all.some((one) => one.name === name)) continue
      this.#pairs.delete(name)
      await cabinet.drop(name)
    }
  }

  #waits({ name, hosts }: Wanted): boolean {
    const standing = this.#parts.cabinet.standings[name]
    const wait = (standing?.next_try_at ?? 0) - this.#parts.clock.now()
    return wait > 0 && wait < longestWait && standing?.names.join() === hosts.join()
  }

  #fits({ name, hosts }: Wanted): boolean {
    const pair = this.#pairs.get(name)
    return pair !== undefined && hosts.every((host) => covers(pair.cert, host)) && this.#parts.clock.now() < this.#renewAt(pair)
  }

  #renewAt({ cert }: Pair): number {
    const { not_before, not_after } = readingOf(cert)
    return not_after - Math.min(this.#parts.renew_before, (not_after - not_before) / 3)
  }

  /** When it may be tried, for all that was tried before. */
  #freeAt(name: string): number {
    const { cabinet, clock } = this.#parts
    const now = clock.now()
    const recent = (standing: Readonly<Standing> | undefined): number[] =>
      (standing?.tries ?? []).filter((time) => time > now - hour && time <= now)
    const all = Object.values(cabinet.standings).flatMap(recent)
    return Math.max(freeAfter(recent(cabinet.standings[name]), most.ofOne), freeAfter(all, most.ofAll))
  }

  async #try(wanted: Wanted): Promise<void> {
    const { cabinet, clock, log, settled } = this.#parts
    const { name, hosts } = wanted
    const before = cabinet.standings[name]
    const now = clock.now()
    const failures = (before?.failures ?? 0) + 1
    const standing: Standing = {
      names: hosts,
      tries: [...(before?.tries ?? []).filter((time) => time > now - hour), now],
      failures,
      tried_at: now,
      next_try_at: now + waitAfter(failures),
      problem: before?.problem ?? null,
    }
    // on disk first: who is killed while trying must not try again at once
    await cabinet.note(name, standing)
    log.info({ names: hosts }, 'a certificate is being asked for')
    const outcome = await this.#obtained(hosts).catch((error: unknown) => error)
    // what we broke off ourselves is nobody's fault
    if (this.#stop.signal.aborted) return cabinet.note(name, { ...standing, failures: failures - 1, next_try_at: null })
    if (outcome instanceof Error) {
      const pause = outcome instanceof AuthorityError ? outcome.pause : 0
      const next_try_at = Math.max(standing.next_try_at ?? 0, clock.now() + pause)
      const problem = outcome.message
      await cabinet.note(name, { ...standing, next_try_at, problem })
      log.warn({ names: hosts, problem, next_try_at: iso(next_try_at) }, 'a certificate could not be obtained')
      return settled(wanted, failures === 1 || gist(problem) !== gist(before?.problem ?? ''))
    }
    const pair = outcome as Pair
    await cabinet.keep(name, pair)
    await cabinet.note(name, { ...standing, failures: 0, next_try_at: null, problem: null })
    this.#pairs.set(name, pair)
    log.info({ names: hosts, not_after: iso(readingOf(pair.cert).not_after) }, 'a certificate was obtained')
    await settled(wanted, true)
  }

  async #obtained(hosts: readonly string[]): Promise<Pair> {
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(longest)])
    const pair = await this.#parts.obtain(hosts, signal)
    const fault = flaw(pair) ?? (hosts.every((host) => covers(pair.cert, host)) ? null : 'it does not bear all names')
    if (fault !== null) throw new AuthorityError(`The CA gave a certificate that cannot be used: ${fault}`)
    return pair
  }
}

/** A reason without what is another with every try: tokens, and the addresses of orders. */
function gist(problem: string): string {
  return problem.replaceAll(/[\w-]{20,}/g, '…')
}

/** When there are fewer than so many within an hour. */
function freeAfter(tries: number[], limit: number): number {
  return tries.length < limit ? 0 : tries.toSorted((one, other) => one - other).at(-limit)! + hour
}

function waitAfter(failures: number): number {
  return Math.round((waits[failures - 1] ?? lastWait) * (0.9 + Math.random() * 0.2))
}
