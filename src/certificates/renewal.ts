import { setTimeout as sleep } from 'node:timers/promises'
import type { Basis } from '../basis.ts'
import { day, hour, iso, minute } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import type { Run } from '../store/database.ts'
import type { AcmeStore, AcmeState } from './acme-store.ts'
import { flaw, covers, type Pair, readingOf } from './pair.ts'
import { AuthorityError } from './transport.ts'

/** A certificate that should exist. */
export interface WantedCertificate {
  /** Its name in the store: `main`, or its one host. */
  name: string
  hosts: string[]
  /** True if these names point to this box; otherwise no request is made, and the existing certificate stays. */
  ready: boolean
}

/** The state of an ACME certificate; times in milliseconds. */
export interface Obtained extends WantedCertificate {
  pair: Pair | undefined
  renew_at: number | null
  state: Readonly<AcmeState> | undefined
}

interface Deps extends Pick<Basis, 'clock' | 'log'> {
  acmeStore: AcmeStore
  /** Where several boxes share the certificates: one of them at a time contacts the CA. */
  run: Pick<Run, 'leads' | 'release'> | undefined
  /** How long before its expiry a certificate is renewed, in milliseconds. */
  renew_before: number
  wanted: () => Promise<WantedCertificate[]>
  obtain: (hosts: readonly string[], signal: AbortSignal) => Promise<Pair>
  /** Takes over what other boxes have obtained; listeners use it when it resolves. */
  takeOver: () => Promise<void>
  /** Called after each attempt, once its result is stored, and after a removal; `news` is whether to emit an event. */
  settled: (wanted: WantedCertificate, news: boolean) => Promise<void>
}

/** The delay after each consecutive failure; then twice a day. */
const waits = [5 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 4 * hour, 8 * hour]
const lastWait = 12 * hour

/** The most attempts within one hour, however started: CAs count failures, and block accounts with too many. */
const maxAttempts = { ofOne: 4, ofAll: 40 }

/** Between two checks for due renewals, and the longest accepted delay after a restart, as clocks can be wrong; in milliseconds. */
const betweenLooks = minute
const longestWait = 8 * day

/** What the box that contacts the CA leads, and milliseconds after which another one asks for that again. */
const lease = 'certificates'
const betweenTurns = 500

/** The timeout of one attempt in milliseconds. */
const longest = 5 * minute

/** Obtains and renews certificates by ACME; one attempt at a time, each stored before it starts. */
export class Renewer {
  readonly #deps: Deps
  readonly #pairs = new Map<string, Pair>()
  readonly #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #idle = true
  #looked = -Infinity

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Loads the stored certificates that are wanted. */
  async load(): Promise<void> {
    for (const { name } of await this.#deps.wanted()) {
      const pair = await this.#deps.acmeStore.pair(name)
      if (pair) this.#pairs.set(name, pair)
      else this.#pairs.delete(name)
    }
  }

  /** Aborts the running attempt. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('the box is stopping'))
    await this.#running
  }

  get pairs(): ReadonlyMap<string, Pair> {
    return this.#pairs
  }

  /** Certificates that exist, were attempted, or will be. */
  async all(): Promise<Obtained[]> {
    const { wanted, acmeStore } = this.#deps
    return (await wanted())
      .map((one) => {
        const pair = this.#pairs.get(one.name)
        return { ...one, pair, renew_at: pair ? this.#renewAt(pair) : null, state: acmeStore.states[one.name] }
      })
      .filter(({ ready, pair, state }) => ready || pair || state)
  }

  /** Starts due renewals, unless a run is in progress or was just checked. */
  begin(): void {
    const now = this.#deps.clock.now()
    if (!this.#idle || this.#stop.signal.aborted || Math.abs(now - this.#looked) < betweenLooks) return
    this.#looked = now
    void this.#next(() => this.#obtainDue(), false)
  }

  /**
   * Attempts now what is missing or due, regardless of delays, or the certificate of this host even if not due. Throws Fault rate_limited
   * when each was attempted too often within the hour, and not_found.
   */
  async now(host?: string): Promise<void> {
    const asked = (await this.#deps.wanted()).filter(({ hosts }) => host === undefined || hosts.includes(host))
    if (asked.length === 0 && host !== undefined) throw new Fault('not_found', `No certificate for ${host} is obtained by ACME.`)
    const open = asked.filter((one) => host !== undefined || (one.ready && !this.#fits(one)))
    const pauses = open.map(({ name }) => Math.ceil((this.#freeAt(name) - this.#deps.clock.now()) / 1000))
    const retryAfter = Math.min(...pauses)
    if (open.length > 0 && retryAfter > 0) {
      const names = open.map(({ hosts }) => hosts.join(', ')).join('; ')
      throw new Fault('rate_limited', `Too many attempts within the hour (CA rate limit): ${names}.`, {
        code: 'acme_tries',
        retryAfter,
      })
    }
    await this.#next(async () => {
      for (const one of open) {
        // another box may have obtained it meanwhile
        const missing = host !== undefined || !this.#fits(one)
        if (missing && this.#freeAt(one.name) <= this.#deps.clock.now()) await this.#try(one)
      }
    }, true)
  }

  /** Runs work after what runs now; what another box does is waited for, or this is left to that box. */
  #next(work: () => Promise<void>, waitsForOthers: boolean): Promise<void> {
    this.#idle = false
    const running = this.#running
      .then(() => (this.#deps.run ? this.#asOnlyBox(this.#deps.run, work, waitsForOthers) : this.#unlessStopped(work)))
      .catch((error: unknown) => this.#deps.log.error({ err: error }, 'check of the certificates failed'))
      .finally(() => {
        if (this.#running === running) this.#idle = true
      })
    this.#running = running
    return running
  }

  async #unlessStopped(work: () => Promise<void>): Promise<void> {
    if (!this.#stop.signal.aborted) await work()
  }

  async #asOnlyBox(run: Pick<Run, 'leads' | 'release'>, work: () => Promise<void>, waitsForOthers: boolean): Promise<void> {
    while (!this.#stop.signal.aborted) {
      if (await run.leads(lease)) {
        try {
          await this.#deps.takeOver()
          await this.#unlessStopped(work)
        } finally {
          await run.release(lease)
        }
        return
      }
      if (!waitsForOthers) return
      await sleep(betweenTurns, undefined, { signal: this.#stop.signal }).catch(() => undefined)
    }
  }

  async #obtainDue(): Promise<void> {
    const { wanted, acmeStore, clock, settled } = this.#deps
    const all = await wanted()
    for (const one of all) {
      if (one.ready && !this.#fits(one) && !this.#waits(one) && this.#freeAt(one.name) <= clock.now()) await this.#try(one)
    }
    for (const name of Object.keys(acmeStore.states)) {
      if (all.some((one) => one.name === name)) continue
      this.#pairs.delete(name)
      await acmeStore.drop(name)
      await settled({ name, hosts: [], ready: false }, false)
    }
  }

  #waits({ name, hosts }: WantedCertificate): boolean {
    const state = this.#deps.acmeStore.states[name]
    const wait = (state?.next_try_at ?? 0) - this.#deps.clock.now()
    return wait > 0 && wait < longestWait && state?.names.join() === hosts.join()
  }

  #fits({ name, hosts }: WantedCertificate): boolean {
    const pair = this.#pairs.get(name)
    return pair !== undefined && hosts.every((host) => covers(pair.cert, host)) && this.#deps.clock.now() < this.#renewAt(pair)
  }

  #renewAt({ cert }: Pair): number {
    const { not_before, not_after } = readingOf(cert)
    return not_after - Math.min(this.#deps.renew_before, (not_after - not_before) / 3)
  }

  /** The earliest next attempt that the hourly limits allow. */
  #freeAt(name: string): number {
    const { acmeStore, clock } = this.#deps
    const now = clock.now()
    const recent = (state: Readonly<AcmeState> | undefined): number[] =>
      (state?.tries ?? []).filter((time) => time > now - hour && time <= now)
    const all = Object.values(acmeStore.states).flatMap(recent)
    return Math.max(freeAfter(recent(acmeStore.states[name]), maxAttempts.ofOne), freeAfter(all, maxAttempts.ofAll))
  }

  async #try(wanted: WantedCertificate): Promise<void> {
    const { acmeStore, clock, log, settled } = this.#deps
    const { name, hosts } = wanted
    const before = acmeStore.states[name]
    const now = clock.now()
    const failures = (before?.failures ?? 0) + 1
    const state: AcmeState = {
      names: hosts,
      tries: [...(before?.tries ?? []).filter((time) => time > now - hour), now],
      failures,
      tried_at: now,
      next_try_at: now + waitAfter(failures),
      problem: before?.problem ?? null,
    }
    // stored first: a process killed during an attempt must not repeat it immediately
    await acmeStore.note(name, state)
    log.info({ names: hosts }, 'requesting a certificate')
    const outcome = await this.#obtained(hosts).catch((error: unknown) => error)
    if (outcome instanceof Error) {
      // an attempt that we aborted is not a failure
      if (this.#stop.signal.aborted) return acmeStore.note(name, { ...state, failures: failures - 1, next_try_at: null })
      const pause = outcome instanceof AuthorityError ? outcome.pause : 0
      const next_try_at = Math.max(state.next_try_at ?? 0, clock.now() + pause)
      const problem = outcome.message
      await acmeStore.note(name, { ...state, next_try_at, problem })
      log.warn({ names: hosts, problem, next_try_at: iso(next_try_at) }, 'certificate could not be obtained')
      return settled(wanted, failures === 1 || stableReason(problem) !== stableReason(before?.problem ?? ''))
    }
    const pair = outcome as Pair
    await acmeStore.save(name, pair)
    await acmeStore.note(name, { ...state, failures: 0, next_try_at: null, problem: null })
    this.#pairs.set(name, pair)
    log.info({ names: hosts, not_after: iso(readingOf(pair.cert).not_after) }, 'certificate obtained')
    await settled(wanted, true)
  }

  async #obtained(hosts: readonly string[]): Promise<Pair> {
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(longest)])
    const pair = await this.#deps.obtain(hosts, signal)
    const fault = flaw(pair) ?? (hosts.every((host) => covers(pair.cert, host)) ? null : 'it does not contain all host names')
    if (fault !== null) throw new AuthorityError(`The CA issued an unusable certificate: ${fault}`)
    return pair
  }
}

/** Removes parts of a reason that differ in every attempt: tokens, and order URLs. */
function stableReason(problem: string): string {
  return problem.replaceAll(/[\w-]{20,}/g, '…')
}

/** The time from which fewer than the limit remain within an hour. */
function freeAfter(tries: number[], limit: number): number {
  return tries.length < limit ? 0 : tries.toSorted((one, other) => one - other).at(-limit)! + hour
}

function waitAfter(failures: number): number {
  return Math.round((waits[failures - 1] ?? lastWait) * (0.9 + Math.random() * 0.2))
}
