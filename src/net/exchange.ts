import { Chunks, ByteBuffer } from '../core/byte-buffer.ts'
import type { Socket } from 'node:net'

/** The response of an external server. */
export interface OutsideDocument {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** The part of the body that was kept. */
  body: Buffer
}

/**
 * Bytes of a response that are read, and those that are kept. Beyond `read`, or with too many chunks, `tooMuch` or `tooMany` is thrown if given;
 * else the rest is discarded.
 */
interface ReadLimits {
  read: number
  kept: number
  tooMuch?: Error
  tooMany?: Error
  /** Called with a number of bytes before they are kept. An error that it throws ends the exchange. */
  onBytes?: ((octets: number) => void) | undefined
}

/** Interim responses before the final one: a server has one or two to give (RFC 9110 15.2, RFC 8297). */
const maxInterim = 10

/** Aborts a request that has begun. */
interface Controller {
  abort(reason: Error): void
}

/** Handler of one undici request. It needs no stream for a response of which little is read. */
export class Exchange {
  readonly #settled = Promise.withResolvers<OutsideDocument>()
  readonly #limits: ReadLimits
  readonly #kept = new ByteBuffer()
  readonly #chunks = new Chunks()
  #size = 0
  #interim = 0
  #answer: Pick<OutsideDocument, 'status' | 'headers'> | undefined
  #controller: Controller | undefined
  #abortReason: Error | undefined
  /** True if no more is read; chunks may still arrive. */
  #isDone = false

  constructor(limits: ReadLimits) {
    this.#limits = limits
  }

  /** Rejects with a connection error, or with the reason of `cut`. */
  get answer(): Promise<OutsideDocument> {
    return this.#settled.promise
  }

  /** Aborts the request, also while it is still connecting. */
  cut(reason: Error): void {
    this.#abortReason = reason
    this.#isDone = true
    this.#settled.reject(reason)
    this.#controller?.abort(reason)
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#abortReason) controller.abort(this.#abortReason)
  }

  onResponseStart(_controller: Controller, status: number, headers: OutsideDocument['headers']): void {
    if (status >= 200) this.#answer = { status, headers }
    else if (++this.#interim > maxInterim) this.cut(new Error(`it sends more than ${maxInterim} interim responses`))
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#isDone) return
    const { read, kept, tooMuch, tooMany } = this.#limits
    const few = this.#chunks.add(chunk)
    this.#size += chunk.length
    if (few && this.#size <= read) return this.#keep(chunk.subarray(0, kept - this.#kept.size))
    const why = few ? tooMuch : tooMany
    if (why) return this.cut(why)
    this.#keep(chunk.subarray(0, kept - this.#kept.size))
    this.onResponseEnd()
    controller.abort(new Error('the response is too long'))
  }

  onResponseEnd(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#settled.resolve({ ...this.#answer!, body: this.#kept.take()! })
  }

  #keep(octets: Buffer): void {
    try {
      this.#limits.onBytes?.(octets.length)
      this.#kept.add(octets)
    } catch (error) {
      this.cut(error as Error)
    }
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.#settled.reject(error)
  }
}

/**
 * Closes a connection with this error once more than `maxBytes` were received since the last write. This also limits headers, interim responses
 * and chunk extensions, which an HTTP client reads without limit.
 */
export function limitResponseBytes(socket: Socket, maxBytes: number, tooMuch: () => Error): void {
  let sent = socket.bytesWritten
  let received = socket.bytesRead
  let before = received
  socket.on('readable', () => {
    const { bytesWritten, bytesRead } = socket
    if (bytesWritten !== sent) {
      sent = bytesWritten
      before = received
    }
    received = bytesRead
    if (received - before > maxBytes) socket.destroy(tooMuch())
  })
}
