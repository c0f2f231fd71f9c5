import { Fault } from '../../core/fault.ts'

/** Why a call is aborted: the client disconnected, the handler timed out, or the box stops. */
export type Cut = 'gone' | 'late' | 'stopping'

/** The abort state of a running call. Its signal is created only when it is used. */
export class CallAbort {
  #controller: AbortController | undefined
  #cut: Cut | undefined
  #onCut: (() => void) | undefined

  get cut(): Cut | undefined {
    return this.#cut
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#cut) this.#controller.abort(reason(this.#cut))
    }
    return this.#controller.signal
  }

  /** Sets the listener that is called once when the call is aborted, or now if it was. */
  onCut(listener: () => void): void {
    this.#onCut = listener
    if (this.#cut) listener()
  }

  /** Aborts the call; the first reason stays. */
  abort(cut: Cut): void {
    if (this.#cut) return
    this.#cut = cut
    this.#onCut?.()
    this.#controller?.abort(reason(cut))
  }
}

/** The error to send: an error of a handler that was aborted by a stop or a disconnect is not a bug. */
export function toClientError(error: unknown, abort: CallAbort): unknown {
  if (error instanceof Fault || !abort.cut || abort.cut === 'late') return error
  return new Fault('internal_error', 'The box is restarting. Try again shortly.', {
    code: 'restarting',
    retryAfter: 2,
    cause: error,
  })
}

function reason(cut: Cut): DOMException {
  return new DOMException(`The call was aborted: ${cut}`, 'AbortError')
}
