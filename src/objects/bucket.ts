import { setTimeout as sleep } from 'node:timers/promises'
import { AwsV4Signer } from 'aws4fetch'
import { fetchConfigured } from '../net/configured.ts'
import type { OutsideDocument } from '../net/exchange.ts'
import { BucketFailure, failureOf } from './bucket-failure.ts'

export interface BucketSettings {
  /** The URL of the store, without the bucket. */
  endpoint: string
  bucket: string
  region: string
  access_key_id: string
  secret_access_key: string
  /** The beginning of the names of all objects. */
  prefix: string
  /** True if the bucket is in the path of URLs, not in their host name. */
  path_style: boolean
  /** Milliseconds for one object, retries included. */
  timeout: number
}

interface ObjectRequest {
  method: 'GET' | 'PUT' | 'DELETE'
  key: string
  body?: Uint8Array
  /** Bytes that are read of the response. */
  limit: number
}

/** Bytes of a request that are sent at once: to encrypt many takes time on the main thread. */
const piece = 256 * 1024

/** Bytes that are read of a response without an object. */
const errorBytes = 64 * 1024

/** Milliseconds before each further attempt at what a store could not do. */
const waits = [100, 500]

/** A bucket of a store that speaks the protocol of Amazon S3 (Amazon S3 API Reference; Signature Version 4). */
export class Bucket {
  readonly settings: BucketSettings
  /** Keys for signing, by day. */
  readonly #signingKeys = new Map<string, ArrayBuffer>()
  /** True while requests fail as the store does not answer: one is attempted at a time, and the others fail at once. */
  #away = false
  #trying = false

  constructor(settings: BucketSettings) {
    this.settings = settings
  }

  /** Stores an object durably. Throws BucketFailure. */
  async put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
    await this.#request({ method: 'PUT', key, body: bytes, limit: errorBytes }, signal)
  }

  /** Reads a whole object, of at most so many bytes. Throws BucketFailure. */
  async get(key: string, limit: number, signal?: AbortSignal): Promise<Buffer> {
    return (await this.#request({ method: 'GET', key, limit: Math.max(limit, errorBytes) }, signal)).body
  }

  /** Deletes an object; one that does not exist is deleted. Throws BucketFailure. */
  async delete(key: string, signal?: AbortSignal): Promise<void> {
    try {
      await this.#request({ method: 'DELETE', key, limit: errorBytes }, signal)
    } catch (error) {
      if (!(error instanceof BucketFailure && error.kind === 'missing')) throw error
    }
  }

  async #request(asked: ObjectRequest, signal?: AbortSignal): Promise<OutsideDocument> {
    if (this.#away && this.#trying) throw new BucketFailure('unreachable', 'The store of objects does not answer.')
    const deadline = AbortSignal.timeout(this.settings.timeout)
    const either = signal ? AbortSignal.any([signal, deadline]) : deadline
    const first = this.#away
    if (first) this.#trying = true
    try {
      const answer = await this.#attempts(asked, either, deadline)
      this.#away = false
      return answer
    } catch (error) {
      signal?.throwIfAborted()
      this.#away = error instanceof BucketFailure && error.kind === 'unreachable'
      throw error
    } finally {
      if (first) this.#trying = false
    }
  }

  /** Tries again what the store could not do, or whose connection was lost: each request has the same effect once and twice. */
  async #attempts(asked: ObjectRequest, signal: AbortSignal, deadline: AbortSignal): Promise<OutsideDocument> {
    for (let attempt = 0; ; attempt += 1) {
      const failure = await this.#attempt(asked, signal).then(
        (answer) => failureOf(answer.status, answer.body) ?? answer,
        (error: unknown) => error,
      )
      if (!(failure instanceof Error)) return failure as OutsideDocument
      const seconds = this.settings.timeout / 1000
      if (deadline.aborted)
        throw new BucketFailure('unreachable', `The store of objects did not answer within ${seconds} s.`, failure)
      signal.throwIfAborted()
      const known = failure instanceof BucketFailure ? failure : unreachable(failure)
      const wait = waits[attempt]
      if (wait === undefined || (known.kind !== 'busy' && known.kind !== 'unreachable')) throw known
      await sleep(wait * (1 + Math.random()), undefined, { signal }).catch(() => undefined)
    }
  }

  async #attempt({ method, key, body, limit }: ObjectRequest, signal: AbortSignal): Promise<OutsideDocument> {
    const { access_key_id, secret_access_key, region } = this.settings
    const digest = await crypto.subtle.digest('SHA-256', body ?? new Uint8Array())
    const signer = new AwsV4Signer({
      method,
      url: this.#urlOf(key),
      headers: { 'x-amz-content-sha256': Buffer.from(digest).toString('hex') },
      accessKeyId: access_key_id,
      secretAccessKey: secret_access_key,
      service: 's3',
      region,
      cache: this.#signingKeys,
    })
    const { url, headers } = await signer.sign()
    const length = body ? { 'content-length': String(body.length), 'content-type': 'application/octet-stream' } : {}
    return fetchConfigured(url, {
      method,
      headers: { ...Object.fromEntries(headers), ...length },
      body: body ? piecesOf(body) : null,
      signal,
      limit,
    })
  }

  #urlOf(key: string): string {
    const { endpoint, bucket, path_style } = this.settings
    const url = new URL(endpoint)
    if (!path_style) url.hostname = `${bucket}.${url.hostname}`
    const base = url.href.replace(/\/$/, '')
    return path_style ? `${base}/${bucket}/${key}` : `${base}/${key}`
  }
}

function* piecesOf(body: Uint8Array): Iterable<Uint8Array> {
  for (let at = 0; at < body.length; at += piece) yield body.subarray(at, at + piece)
}

function unreachable(error: Error): BucketFailure {
  const why = error.message === '' ? ((error as NodeJS.ErrnoException).code ?? 'it failed') : error.message
  return new BucketFailure('unreachable', `The store of objects does not answer: ${why}.`, error)
}
