import { Resolver } from 'node:dns/promises'
import { performance } from 'node:perf_hooks'
import { isAbsent } from './resolve.ts'
import type { DnsTally } from './dns-tally.ts'

/** What a query answers: texts (A, AAAA, PTR, CNAME), the strings of each TXT record, or MX records. */
export type DnsAnswer = string[] | string[][] | { priority: number; exchange: string }[]

/** Asks the DNS; rejects with a DnsError. */
export type Lookup = (name: string, type: string) => Promise<DnsAnswer>

export interface DnsSettings {
  /** `address` or `address:port`; empty means those of the system. */
  servers: string[]
  /** Longest time for one query, all tries together, in milliseconds. */
  timeout: number
}

/** A query without an answer; `code` is Node's own (ENOTFOUND, ENODATA, ETIMEOUT, ESERVFAIL, EBADNAME, …). */
export class DnsError extends Error {
  readonly code: string
  /** What it means for SPF, where that is not a passing failure (read by mailauth). */
  readonly spfResult?: { error: 'permerror'; text: string }

  constructor(code: string, name: string) {
    super(`${code} ${name.slice(0, 253)}`)
    this.name = 'DnsError'
    this.code = code
    // RFC 7208 4.6.4: too many queries are the sender's own doing.
    if (code === tooMany) this.spfResult = { error: 'permerror', text: 'Too many DNS requests' }
  }
}

// An error is kept with its absence: to make one anew costs more than most lookups.
type Outcome = { answer: DnsAnswer } | { error: DnsError }

const tooMany = 'EQUERYLIMIT'
const found = 300_000
const missing = 60_000
const largestText = 32 * 1024
/** Octets of one record; keys and policies have some hundreds, and the library takes time by the square of some. */
const largestRecord = 8192

/** A resolver with a memory: answers are kept 5 min, absence 60 s, trouble never; equal queries at one time are one query. */
export class Dns {
  readonly #ask: Lookup
  readonly #timeout: number
  readonly #memory = new Memory(10_000, 16 * 1024 * 1024)
  readonly #pending = new Map<string, Promise<Outcome>>()
  readonly #tally: DnsTally | undefined

  constructor(settings: DnsSettings, ask?: Lookup, tally?: DnsTally) {
    this.#tally = tally
    this.#timeout = settings.timeout
    this.#ask = ask ?? network(settings)
  }

  /** Answers within the time-out or rejects with a DnsError. */
  readonly lookup: Lookup = async (name, type) => {
    if (unfit(name)) throw new DnsError('EBADNAME', name)
    const key = `${type} ${name.toLowerCase()}`
    let outcome = this.#memory.get(key)
    if (!outcome) {
      let pending = this.#pending.get(key)
      if (!pending) {
        pending = this.#query(key, name, type).finally(() => this.#pending.delete(key))
        this.#pending.set(key, pending)
      }
      outcome = await pending
    }
    if ('error' in outcome) throw outcome.error
    return outcome.answer
  }

  async #query(key: string, name: string, type: string): Promise<Outcome> {
    const outcome = await this.#attempt(name, type)
    if ('error' in outcome) {
      this.#tally?.failed(outcome.error)
      if (isAbsent(outcome.error)) this.#memory.set(key, outcome, missing, 64)
      return outcome
    }
    this.#tally?.note('found')
    const size = weight(outcome.answer)
    // Nobody needs that much text under one name: it is a burden, not an answer.
    if (size > largestText || outcome.answer.some((entry) => weight([entry] as DnsAnswer) > largestRecord))
      return { error: new DnsError('EBADRESP', name) }
    this.#memory.set(key, outcome, found, size + 64)
    return outcome
  }

  async #attempt(name: string, type: string): Promise<Outcome> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<Outcome>((resolve) => {
      timer = setTimeout(() => resolve({ error: new DnsError('ETIMEOUT', name) }), this.#timeout)
    })
    const answered = this.#ask(name, type).then(
      (answer): Outcome => ({ answer }),
      (error: unknown): Outcome => ({ error: new DnsError(codeOf(error), name) }),
    )
    return await Promise.race([answered, late]).finally(() => clearTimeout(timer))
  }
}

/** The queries of one message: each asked once, at most so many, none after the deadline. */
export class Inquiry {
  /** Whether any query failed for a passing reason. */
  troubled = false
  readonly #lookup: Lookup
  readonly #asked = new Map<string, Promise<DnsAnswer>>()
  readonly #limit: number
  readonly #over: Promise<never>
  readonly #timer: NodeJS.Timeout
  #isOver = false
  #timeouts = 0
  #answers = 0

  constructor(lookup: Lookup, options: { deadline: number; limit?: number }) {
    this.#lookup = lookup
    this.#limit = options.limit ?? 60
    const { promise, reject } = Promise.withResolvers<never>()
    promise.catch(() => undefined)
    this.#over = promise
    this.#timer = setTimeout(() => {
      this.#isOver = true
      reject(new DnsError('ETIMEOUT', 'deadline'))
    }, options.deadline)
  }

  /** As `Dns.lookup`; answers already given stay available after the deadline. */
  readonly lookup: Lookup = (name, type) => {
    const key = `${type} ${name.toLowerCase()}`
    let asked = this.#asked.get(key)
    if (!asked) {
      asked = this.#first(name, type)
      asked.catch(() => undefined)
      this.#asked.set(key, asked)
    }
    // The library sorts what it gets, so nobody gets another's.
    return asked.then((answer) => answer.slice())
  }

  /** Ends the inquiry: what has no answer yet fails at once. */
  close() {
    clearTimeout(this.#timer)
    this.#isOver = true
  }

  async #first(name: string, type: string): Promise<DnsAnswer> {
    if (this.#asked.size >= this.#limit) throw new DnsError(tooMany, name)
    // With no DNS at all the first two time-outs say so; one slow domain among working ones does not.
    if (this.#isOver || (this.#timeouts >= 2 && this.#answers === 0)) {
      this.troubled = true
      throw new DnsError('ETIMEOUT', name)
    }
    try {
      const answer = await Promise.race([this.#lookup(name, type), this.#over])
      this.#answers += 1
      return answer
    } catch (error) {
      const code = codeOf(error)
      if (isAbsent(error)) this.#answers += 1
      else this.troubled = true
      if (code === 'ETIMEOUT' || code === 'ECONNREFUSED') this.#timeouts += 1
      throw error instanceof DnsError ? error : new DnsError(code, name)
    }
  }
}

/** Answers by age of last use, bounded in number and in octets. */
class Memory {
  readonly #entries = new Map<string, { outcome: Outcome; until: number; size: number }>()
  readonly #count: number
  readonly #octets: number
  #held = 0

  constructor(count: number, octets: number) {
    this.#count = count
    this.#octets = octets
  }

  get(key: string): Outcome | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    this.#drop(key)
    if (entry.until <= performance.now()) return undefined
    this.#keep(key, entry)
    return entry.outcome
  }

  set(key: string, outcome: Outcome, life: number, size: number) {
    this.#drop(key)
    this.#keep(key, { outcome, until: performance.now() + life, size: size + key.length })
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#count && this.#held <= this.#octets) break
      this.#drop(oldest)
    }
  }

  #keep(key: string, entry: { outcome: Outcome; until: number; size: number }) {
    this.#entries.set(key, entry)
    this.#held += entry.size
  }

  #drop(key: string) {
    this.#held -= this.#entries.get(key)?.size ?? 0
    this.#entries.delete(key)
  }
}

function network(settings: DnsSettings): Lookup {
  // Two tries within the time for one query; the timer of `#attempt` is the guarantee.
  const timeout = Math.max(1, Math.floor(settings.timeout * 0.45))
  const resolver = new Resolver({ timeout, tries: 2, maxTimeout: timeout })
  if (settings.servers.length > 0) resolver.setServers(settings.servers)
  const ask: Record<string, (name: string) => Promise<DnsAnswer>> = {
    A: (name) => resolver.resolve4(name),
    AAAA: (name) => resolver.resolve6(name),
    CNAME: (name) => resolver.resolveCname(name),
    MX: (name) => resolver.resolveMx(name),
    PTR: (name) => resolver.resolvePtr(name),
    TXT: (name) => resolver.resolveTxt(name),
  }
  return async (name, type) => {
    const query = ask[type]
    if (!query) throw new DnsError('ENOTIMP', name)
    return query(name)
  }
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'ESERVFAIL'
}

/** Control characters, backslashes and overlong names never reach the resolver: it reads some of them as other names. */
function unfit(name: string): boolean {
  // oxlint-disable-next-line no-control-regex
  return name === '' || /[\x00-\x1f\x7f\\]/.test(name) || Buffer.byteLength(name.replace(/\.$/, '')) > 253
}

function weight(answer: DnsAnswer): number {
  let size = 0
  for (const entry of answer) {
    if (typeof entry === 'string') size += entry.length
    else if (Array.isArray(entry)) for (const text of entry) size += text.length
    else size += entry.exchange.length + 2
  }
  return size
}
