import type { Clock } from '../core/clock.ts'
import { LRUCache } from '../core/memory.ts'
import { type Outside, Unreachable } from '../net/outside.ts'
import { parseJson } from '../http/json.ts'
import { type AssertionKeys, assertionKeys, type DidWebLocation, placeOf, type UnverifiedDidDocument } from './did-document.ts'
import type { Resolution } from './model.ts'
import { InvalidToken } from './reading.ts'

interface Cached {
  asked: number
  outcome: AssertionKeys | InvalidToken
  /** A newer document while it is being fetched; undefined when there is none. */
  renewal?: Promise<AssertionKeys | undefined> | undefined
}

/** What was fetched, and how long it may be cached, in milliseconds. */
interface Fetched {
  age: number
  outcome: AssertionKeys | InvalidToken
}

/** The most bytes of cached keys and failures. */
const maxCached = 8 * 1024 * 1024

/** Concurrent fetches: the most overall, of one account, and of one account from one host; an account has some however many others run. */
const concurrent = { all: 64, account: 16, host: 8, own: 4 }

/** The largest document in bytes, and the timeout in milliseconds. */
const largest = 64 * 1024
const timeout = 5000

/** In milliseconds: the shortest and longest time a document is cached, regardless of its server, and the time a failure is. */
const least = 60_000
const longest = 300_000
const failureKept = 30_000

/** Milliseconds before a document is fetched again for something it lacks. */
const pause = 30_000

/** The keys in the DID documents of other boxes, fetched through the outbound HTTP client and cached for a few minutes. */
export class Issuers {
  readonly #outside: Outside
  readonly #clock: Clock
  readonly #cache: LRUCache<string, Cached>
  readonly #pending = new Map<string, Promise<Fetched>>()
  readonly #running = new Set<{ account: string; host: string }>()
  #nextPurge = 0

  constructor({ outside, clock }: { outside: Outside; clock: Clock }) {
    this.#outside = outside
    this.#clock = clock
    this.#cache = new LRUCache({ maxSize: maxCached, sizeCalculation: sizeOf, perf: clock, ttlResolution: 0 })
  }

  /**
   * The keys of a did:web. Throws InvalidToken when its document does not exist, cannot be parsed, its host does not answer, or this account is
   * fetching too many.
   */
  async document(account: string, place: DidWebLocation): Promise<AssertionKeys> {
    const known = this.#cache.get(place.url)
    if (known) return keysOf(known)
    const pending = this.#pending.get(place.url) ?? this.#find(account, place)
    return keysOf(await pending)
  }

  /**
   * The keys of a newer document than that of `document`, for something that one lacks, such as a key; undefined when there is none yet. It is
   * fetched at most twice a minute, and the cached one stays when the fetch fails.
   */
  async younger(account: string, place: DidWebLocation): Promise<AssertionKeys | undefined> {
    const known = this.#cache.get(place.url)
    if (!known) return undefined
    if (known.renewal === undefined && known.asked + pause <= this.#clock.now())
      known.renewal = this.#renew(account, place, known)
    return known.renewal
  }

  /** Drops the cache after settings changed, which may allow or refuse other hosts. */
  forget(): void {
    this.#cache.clear()
    this.#pending.clear()
  }

  #find(account: string, place: DidWebLocation): Promise<Fetched> {
    const asked = this.#clock.now()
    const pending = this.#ask(account, place)
      .then((fetched) => {
        // unless it was asked before the settings changed
        if (this.#pending.get(place.url) === pending) this.#keep(place, asked, fetched)
        return fetched
      })
      .finally(() => {
        if (this.#pending.get(place.url) === pending) this.#pending.delete(place.url)
      })
    this.#pending.set(place.url, pending)
    return pending
  }

  async #renew(account: string, place: DidWebLocation, known: Cached): Promise<AssertionKeys | undefined> {
    known.asked = this.#clock.now()
    try {
      const fetched = await this.#ask(account, place)
      const keys = keysOf(fetched)
      this.#keep(place, known.asked, fetched)
      return keys
    } catch (error) {
      if (!(error instanceof InvalidToken)) throw error
      return undefined
    } finally {
      known.renewal = undefined
    }
  }

  #keep({ url }: DidWebLocation, asked: number, { age, outcome }: Fetched): void {
    const now = this.#clock.now()
    if (now >= this.#nextPurge) {
      this.#cache.purgeStale()
      this.#nextPurge = now + least
    }
    // the cache keeps an entry to the end of its last millisecond
    this.#cache.set(url, { asked, outcome }, { ttl: age - 1 })
  }

  /** Throws InvalidToken when too many fetches are running; callers share a running fetch. */
  async #ask(account: string, place: DidWebLocation): Promise<Fetched> {
    const own = [...this.#running].filter((fetch) => fetch.account === account)
    const { length: ofHost } = own.filter(({ host }) => host === place.host)
    const full = this.#running.size >= concurrent.all && own.length >= concurrent.own
    if (full || own.length >= concurrent.account || ofHost >= concurrent.host) {
      throw new InvalidToken(
        'issuer_unreachable',
        `${place.host} cannot be queried now: too many requests are in progress. Try again when some have ended.`,
        true,
      )
    }
    const fetch = { account, host: place.host }
    this.#running.add(fetch)
    try {
      return await this.#fetch(place)
    } catch (error) {
      if (!(error instanceof InvalidToken)) throw error
      return { age: failureKept, outcome: error }
    } finally {
      this.#running.delete(fetch)
    }
  }

  async #fetch({ url, did, host }: DidWebLocation): Promise<Fetched> {
    try {
      // not the signal of one caller: others may wait for the same document
      const { signal } = new AbortController()
      const accept = { accept: 'application/did+json, application/did+ld+json, application/json' }
      const { status, headers, body } = await this.#outside.get(url, {
        limit: largest,
        deadline: timeout,
        signal,
        headers: accept,
      })
      if (status === 404 || status === 410) throw new InvalidToken('unknown_subject', `${host} has no ${did}.`)
      if (status === 429 || status >= 500) throw new InvalidToken('issuer_unreachable', `${host} answered ${status}.`, true)
      if (status !== 200) throw new InvalidToken('issuer_invalid', `${host} answered ${status} for ${did}.`)
      const [encoding = 'identity'] = [headers['content-encoding']].flat()
      // decompressed it could be a thousand times as large
      if (encoding.toLowerCase() !== 'identity')
        throw new InvalidToken('issuer_invalid', `${host} sent ${did} compressed, which was not requested.`)
      return { age: ageOf([headers['cache-control']].flat().join(',')), outcome: assertionKeys(read(body, did), did) }
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      if (error.tooLarge)
        throw new InvalidToken('issuer_invalid', `The document of ${host} for ${did} is too large: ${error.message}.`)
      throw new InvalidToken('issuer_unreachable', `${did} could not be fetched from ${host}: ${error.message}.`, true)
    }
  }
}

/** Resolves DIDs of other boxes as for tokens: through the outbound HTTP client, cached for minutes. */
export async function resolveDid(issuers: Pick<Issuers, 'document'>, account: string, did: string): Promise<Resolution> {
  if (!did.startsWith('did:web:')) return { state: 'elsewhere', message: 'It was not looked up: only did:web is supported.' }
  const place = placeOf(did)
  if (!place) return { state: 'nobody', message: `${did} does not resolve.` }
  try {
    const { listsAny } = await issuers.document(account, place)
    return listsAny
      ? { state: 'there', message: `The agent exists at ${place.host}.` }
      : {
          state: 'nobody',
          message: `The document of ${did} has no keys: the agent is suspended there, or never had any.`,
        }
  } catch (error) {
    if (!(error instanceof InvalidToken)) throw error
    return { state: error.temporary ? 'unreachable' : 'nobody', message: error.message }
  }
}

/** Throws the failure, if it is one. */
function keysOf({ outcome }: { outcome: AssertionKeys | InvalidToken }): AssertionKeys {
  if (outcome instanceof InvalidToken) throw outcome
  return outcome
}

/** The bytes of an entry: an error has its stack, a name may be part of a URL as long as that of the document. */
function sizeOf({ outcome }: Cached, url: string): number {
  const base = 512 + 2 * url.length
  if (outcome instanceof InvalidToken) return base + 2048 + 2 * outcome.message.length
  return [...outcome.keys.keys()].reduce((sum, name) => sum + 200 + 2 * (name.length + url.length), base)
}

function read(body: Buffer, did: string): UnverifiedDidDocument {
  let document: UnverifiedDidDocument
  try {
    document = parseJson(body)
  } catch {
    throw new InvalidToken('issuer_invalid', `The document of ${did} is not a JSON object.`)
  }
  if (document.id !== did) throw new InvalidToken('issuer_invalid', `The document of ${did} has a different id.`)
  return document
}

/** Milliseconds that the document may be cached. */
function ageOf(control: string): number {
  const [, seconds] = /(?:^|[\s,])max-age=(\d{1,9})(?:$|[\s,])/i.exec(control) ?? []
  return Math.min(longest, Math.max(least, Number(seconds ?? 0) * 1000))
}
