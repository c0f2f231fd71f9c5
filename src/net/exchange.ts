import { Chunks, ByteBuffer } from '../core/byte-buffer.ts'
import type { Socket } from 'node:net'

/** What a stranger answered. */
export interface OutsideDocument {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** As much of it as was kept. */
  body: Buffer
}

/**
 * Octets of an answer that are read, and those that are kept. When there are more to read, or they come in too many chunks, `tooMuch` or `tooMany` is
 * thrown, else the rest is left.
 */
export interface Appetite {
  read: number
  kept: number
  tooMuch?: Error
  tooMany?: Error
  /** Called for octets before they are kept; what it throws ends the exchange. */
  take?: ((octets: number) => void) | undefined
}

/** The connection of a request that has begun. */
interface Controller {
  abort(reason: Error): void
}

/** One request as undici tells of it, piece by piece: no stream is made of an answer of which little is read. */
export class Exchange {
  readonly #settled = Promise.withResolvers<OutsideDocument>()
  readonly #appetite: Appetite
  readonly #kept = new ByteBuffer()
  readonly #chunks = new Chunks()
  #size = 0
  #answer: Pick<OutsideDocument, 'status' | 'headers'> | undefined
  #controller: Controller | undefined
  #cut: Error | undefined
  /** No more is read: what was under way may still come. */
  #enough = false

  constructor(appetite: Appetite) {
    this.#appetite = appetite
  }

  /** Rejects with what went wrong on the wire, or with the reason of `cut`. */
  get answer(): Promise<OutsideDocument> {
    return this.#settled.promise
  }

  /** Gives it up: nothing more is sent, also when the connection is still being made. */
  cut(reason: Error): void {
    this.#cut = reason
    this.#enough = true
    this.#settled.reject(reason)
    this.#controller?.abort(reason)
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#cut) controller.abort(this.#cut)
  }

  onResponseStart(_controller: Controller, status: number, headers: OutsideDocument['headers']): void {
    // those below 200 come before the answer (RFC 9110 15.2)
    if (status >= 200) this.#answer = { status, headers }
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#enough) return
    const { read, kept, tooMuch, tooMany } = this.#appetite
    const few = this.#chunks.add(chunk)
    this.#size += chunk.length
    if (few && this.#size <= read) return this.#keep(chunk.subarray(0, kept - this.#kept.size))
    const why = few ? tooMuch : tooMany
    if (why) return this.cut(why)
    this.#keep(chunk.subarray(0, kept - this.#kept.size))
    this.onResponseEnd()
    controller.abort(new Error('the answer is too long'))
  }

  onResponseEnd(): void {
    if (this.#enough) return
    this.#enough = true
    this.#settled.resolve({ ...this.#answer!, body: this.#kept.take()! })
  }

  #keep(octets: Buffer): void {
    try {
      this.#appetite.take?.(octets.length)
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
 * Closes a connection with this error once more than `most` octets have come in answer to what was last said on it: heads, interim
 * answers and chunk extensions are no body, and an HTTP client reads them without end.
 */
export function allow(socket: Socket, most: number, tooMuch: () => Error): void {
  let said = socket.bytesWritten
  let heard = socket.bytesRead
  let before = heard
  socket.on('readable', () => {
    const { bytesWritten, bytesRead } = socket
    if (bytesWritten !== said) {
      said = bytesWritten
      before = heard
    }
    heard = bytesRead
    if (heard - before > most) socket.destroy(tooMuch())
  })
}
