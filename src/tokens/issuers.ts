import type { Clock } from '../core/clock.ts'
import { lruMap } from '../core/memory.ts'
import { type Outside, Unreachable } from '../net/outside.ts'
import { parseJson } from '../http/json.ts'
import type { UnverifiedDidDocument } from './did-document.ts'
import type { DidWebLocation } from './did-web.ts'
import { InvalidToken } from './reading.ts'

interface Cached {
  asked: number
  until: number
  document: Promise<UnverifiedDidDocument>
  /** A newer document while it is being fetched; undefined when there is none. */
  renewal?: Promise<UnverifiedDidDocument | undefined> | undefined
}

/** The most cached documents and concurrent fetches, overall and for one host, so that one host cannot block the others. */
const maxDocuments = 1000
const maxInFlight = 64
const maxOfHost = 8

/** The largest document in bytes, and the timeout in milliseconds. */
const largest = 64 * 1024
const timeout = 5000

/** In milliseconds: the shortest and longest time a document is cached, regardless of its server, and the time a failure is. */
const least = 60_000
const longest = 300_000
const failureKept = 30_000

/** Milliseconds before a document is fetched again for something it lacks. */
const pause = 30_000

/** The DID documents of other boxes, fetched through the outbound HTTP client and cached for a few minutes. */
export class Issuers {
  readonly #outside: Outside
  readonly #clock: Clock
  readonly #cache = lruMap<Cached>(maxDocuments)
  readonly #inFlight = new Map<string, number>()

  constructor({ outside, clock }: { outside: Outside; clock: Clock }) {
    this.#outside = outside
    this.#clock = clock
  }

  /** The document of a did:web. Throws Disbelief when it does not exist, cannot be parsed, or its host does not answer. */
  document(place: DidWebLocation): Promise<UnverifiedDidDocument> {
    const known = this.#cache.get(place.url)
    if (known && known.until > this.#clock.now()) return known.document
    const kept = this.#ask(place)
    kept.document.catch(() => (kept.until = this.#clock.now() + failureKept))
    this.#cache.set(place.url, kept)
    return kept.document
  }

  /**
   * A newer document than that of `document`, for something that one lacks, such as a key; undefined when there is none yet. It is fetched
   * at most twice a minute, and the cached one stays when the fetch fails.
   */
  async younger(place: DidWebLocation): Promise<UnverifiedDidDocument | undefined> {
    const known = this.#cache.get(place.url)
    if (!known) return undefined
    if (known.renewal === undefined && known.asked + pause <= this.#clock.now()) known.renewal = this.#renew(place, known)
    return known.renewal
  }

  /** Drops the cache after settings changed, which may allow or refuse other hosts. */
  forget(): void {
    this.#cache.clear()
  }

  async #renew(place: DidWebLocation, known: Cached): Promise<UnverifiedDidDocument | undefined> {
    known.asked = this.#clock.now()
    try {
      const kept = this.#ask(place)
      const document = await kept.document
      this.#cache.set(place.url, kept)
      return document
    } catch (error) {
      if (!(error instanceof InvalidToken)) throw error
      return undefined
    } finally {
      known.renewal = undefined
    }
  }

  /** Throws Disbelief when too many fetches are running; callers share a running fetch. */
  #ask(place: DidWebLocation): Cached {
    const all = [...this.#inFlight.values()].reduce((sum, inFlight) => sum + inFlight, 0)
    if (all >= maxInFlight || (this.#inFlight.get(place.host) ?? 0) >= maxOfHost) {
      throw new InvalidToken(
        'issuer_unreachable',
        `${place.host} cannot be queried now: too many requests are in progress.`,
        true,
      )
    }
    const kept: Cached = {
      asked: this.#clock.now(),
      until: Infinity,
      document: this.#fetch(place).then(({ age, document }) => this.#stays(kept, age, document)),
    }
    return kept
  }

  #stays(kept: Cached, age: number, document: UnverifiedDidDocument): UnverifiedDidDocument {
    kept.until = this.#clock.now() + age
    return document
  }

  #count(host: string, more: number): void {
    const inFlight = (this.#inFlight.get(host) ?? 0) + more
    if (inFlight > 0) this.#inFlight.set(host, inFlight)
    else this.#inFlight.delete(host)
  }

  async #fetch({ url, did, host }: DidWebLocation): Promise<{ age: number; document: UnverifiedDidDocument }> {
    this.#count(host, 1)
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
      return { age: ageOf([headers['cache-control']].flat().join(',')), document: read(body, did) }
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      if (error.tooLarge)
        throw new InvalidToken('issuer_invalid', `The document of ${host} for ${did} is too large: ${error.message}.`)
      throw new InvalidToken('issuer_unreachable', `${did} could not be fetched from ${host}: ${error.message}.`, true)
    } finally {
      this.#count(host, -1)
    }
  }
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
