import { Resolver } from 'node:dns/promises'
import { LRUCache } from '../core/memory.ts'
import { bounded, isAbsent, isTooLarge, sizeOf } from './resolve.ts'
import type { DnsTally } from './dns-tally.ts'

/** The answer to a query: texts (A, AAAA, PTR, CNAME), the strings of each TXT record, or MX records. */
export type DnsAnswer = string[] | string[][] | { priority: number; exchange: string }[]

/** A DNS lookup; rejects with a DnsError. */
export type Lookup = (name: string, type: string) => Promise<DnsAnswer>

export interface DnsSettings {
  /** `address` or `address:port`; empty for those of the system. */
  servers: string[]
  /** Timeout of one query including retries, in milliseconds. */
  timeout: number
}

/** A failed query. `code` is that of Node (ENOTFOUND, ENODATA, ETIMEOUT, ESERVFAIL, EBADNAME, …). */
export class DnsError extends Error {
  readonly code: string
  /** The SPF result, where the error is not temporary (read by mailauth). */
  readonly spfResult?: { error: 'permerror'; text: string }

  constructor(code: string, name: string) {
    super(`${code} ${name.slice(0, 253)}`)
    this.name = 'DnsError'
    this.code = code
    // RFC 7208 4.6.4: too many queries are a fault of the sender's record.
    if (code === tooMany) this.spfResult = { error: 'permerror', text: 'Too many DNS requests' }
  }
}

// The error of an absent record is cached too: creating one costs more than most lookups.
type Outcome = { answer: DnsAnswer } | { error: DnsError }

const tooMany = 'EQUERYLIMIT'
const found = 300_000
const missing = 60_000

/** Of all cached answers, in bytes, and what an entry takes beside its name and answer. */
const maxCached = 16 * 1024 * 1024
const entryOverhead = 1000

/** A caching resolver: answers are cached for 5 min, absence for 60 s, failures never. Concurrent equal queries are one query. */
export class Dns {
  readonly #ask: Lookup
  readonly #timeout: number
  readonly #cache = new LRUCache<string, Outcome>({ maxSize: maxCached })
  readonly #pending = new Map<string, Promise<Outcome>>()
  readonly #tally: DnsTally | undefined

  constructor(settings: DnsSettings, ask?: Lookup, tally?: DnsTally) {
    this.#tally = tally
    this.#timeout = settings.timeout
    this.#ask = ask ?? systemLookup(settings)
  }

  /** Resolves within the timeout, or rejects with a DnsError. */
  readonly lookup: Lookup = async (name, type) => {
    if (isInvalidName(name)) throw new DnsError('EBADNAME', name)
    const key = `${type} ${name.toLowerCase()}`
    let outcome = this.#cache.get(key)
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
      this.#tally?.countFailure(outcome.error)
      if (isAbsent(outcome.error)) this.#cache.set(key, outcome, { ttl: missing, size: key.length + entryOverhead })
      return outcome
    }
    this.#tally?.count('found')
    this.#cache.set(key, outcome, { ttl: found, size: key.length + sizeOf(outcome.answer) + entryOverhead })
    return outcome
  }

  async #attempt(name: string, type: string): Promise<Outcome> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<Outcome>((resolve) => {
      timer = setTimeout(() => resolve({ error: new DnsError('ETIMEOUT', name) }), this.#timeout)
    })
    const answered = this.#ask(name, type).then(
      (answer): Outcome => {
        const read = bounded(answer)
        return isTooLarge(read) ? { error: new DnsError('EBADRESP', name) } : { answer: read }
      },
      (error: unknown): Outcome => ({ error: new DnsError(codeOf(error), name) }),
    )
    return await Promise.race([answered, late]).finally(() => clearTimeout(timer))
  }
}

/** The queries of one check: each is sent once, up to a maximum number, and none after the deadline. */
export class Inquiry {
  /** True if any query failed for a temporary reason. */
  troubled = false
  readonly #lookup: Lookup
  readonly #asked = new Map<string, Promise<DnsAnswer>>()
  readonly #limit: number
  readonly #deadline: Promise<never>
  readonly #timer: NodeJS.Timeout
  #isClosed = false
  #timeouts = 0
  #answers = 0

  constructor(lookup: Lookup, options: { deadline: number; limit?: number }) {
    this.#lookup = lookup
    this.#limit = options.limit ?? 60
    const { promise, reject } = Promise.withResolvers<never>()
    promise.catch(() => undefined)
    this.#deadline = promise
    this.#timer = setTimeout(() => {
      this.#isClosed = true
      reject(new DnsError('ETIMEOUT', 'deadline'))
    }, options.deadline)
  }

  /** The same as `Dns.lookup`. Earlier answers stay available after the deadline. */
  readonly lookup: Lookup = (name, type) => {
    const key = `${type} ${name.toLowerCase()}`
    let asked = this.#asked.get(key)
    if (!asked) {
      asked = this.#first(name, type)
      asked.catch(() => undefined)
      this.#asked.set(key, asked)
    }
    // A copy, as the library sorts answers in place.
    return asked.then((answer) => answer.slice())
  }

  /** Ends the inquiry: further queries fail immediately. */
  close() {
    clearTimeout(this.#timer)
    this.#isClosed = true
  }

  async #first(name: string, type: string): Promise<DnsAnswer> {
    if (this.#asked.size >= this.#limit) throw new DnsError(tooMany, name)
    // Two timeouts without any answer mean that there is no DNS, as opposed to one slow domain.
    if (this.#isClosed || (this.#timeouts >= 2 && this.#answers === 0)) {
      this.troubled = true
      throw new DnsError('ETIMEOUT', name)
    }
    try {
      const answer = await Promise.race([this.#lookup(name, type), this.#deadline])
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

function systemLookup(settings: DnsSettings): Lookup {
  // Two tries within the timeout of one query, which the timer of `#attempt` enforces.
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

/** True if a name has control characters, backslashes or is too long: the resolver would read some of them as other names. */
function isInvalidName(name: string): boolean {
  // oxlint-disable-next-line no-control-regex
  return name === '' || /[\x00-\x1f\x7f\\]/.test(name) || Buffer.byteLength(name.replace(/\.$/, '')) > 253
}
