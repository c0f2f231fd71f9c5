/** What a stranger answered. */
export interface OutsideDocument {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** As much of it as was kept. */
  body: Buffer
}

/** Octets of an answer that are read, and those that are kept; `tooMuch` is thrown when there are more to read, else the rest is left. */
export interface Appetite {
  read: number
  kept: number
  tooMuch?: Error
}

/** The connection of a request that has begun. */
interface Controller {
  abort(reason: Error): void
}

/** One request as undici tells of it, piece by piece: no stream is made of an answer of which little is read. */
export class Exchange {
  readonly #settled = Promise.withResolvers<OutsideDocument>()
  readonly #appetite: Appetite
  readonly #kept: Buffer[] = []
  #size = 0
  #answer: Pick<OutsideDocument, 'status' | 'headers'> | undefined
  #controller: Controller | undefined
  #cut: Error | undefined

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
    const { read, kept, tooMuch } = this.#appetite
    if (this.#size < kept) this.#kept.push(chunk.subarray(0, kept - this.#size))
    this.#size += chunk.length
    if (this.#size <= read) return
    if (tooMuch) return this.cut(tooMuch)
    this.onResponseEnd()
    controller.abort(new Error('the answer is too long'))
  }

  onResponseEnd(): void {
    this.#settled.resolve({ ...this.#answer!, body: Buffer.concat(this.#kept) })
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.#settled.reject(error)
  }
}
