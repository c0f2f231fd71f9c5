/** What a stranger answered. */
export interface OutsideAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** The first KiB of the body, as UTF-8. */
  body: string
}

/** An answer as it came; `whole` unless it was longer than what is read. */
export interface RawAnswer extends Pick<OutsideAnswer, 'status' | 'headers'> {
  bytes: Buffer
  whole: boolean
}

/** The connection of a request that has begun. */
interface Controller {
  abort(reason: Error): void
}

/** Bytes of an answer that are read, and those that are kept. */
const few = { read: 64 * 1024, kept: 1024 }

/** One request as undici tells of it, piece by piece: no stream is made of an answer of which little is read. */
export class Exchange {
  readonly #settled = Promise.withResolvers<RawAnswer>()
  readonly #most: { read: number; kept: number }
  readonly #kept: Buffer[] = []
  #size = 0
  #answer: Pick<OutsideAnswer, 'status' | 'headers'> | undefined
  #controller: Controller | undefined
  #cut: Error | undefined

  constructor(most = few) {
    this.#most = most
  }

  /** Rejects with what went wrong on the wire, or with the reason of `cut`. */
  get answer(): Promise<RawAnswer> {
    return this.#settled.promise
  }

  /** Gives it up: nothing more is sent, also when the connection is still being made. */
  cut(reason: Error): void {
    this.#cut = reason
    this.#settled.reject(reason)
    this.#controller?.abort(reason)
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#cut) controller.abort(this.#cut)
  }

  onResponseStart(_controller: Controller, status: number, headers: OutsideAnswer['headers']): void {
    // those below 200 come before the answer (RFC 9110 15.2)
    if (status >= 200) this.#answer = { status, headers }
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#size < this.#most.kept) this.#kept.push(chunk.subarray(0, this.#most.kept - this.#size))
    this.#size += chunk.length
    if (this.#size <= this.#most.read) return
    this.onResponseEnd()
    controller.abort(new Error('the answer is too long'))
  }

  onResponseEnd(): void {
    this.#settled.resolve({ ...this.#answer!, bytes: Buffer.concat(this.#kept), whole: this.#size <= this.#most.read })
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.#settled.reject(error)
  }
}
