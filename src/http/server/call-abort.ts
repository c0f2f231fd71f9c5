import { Fault } from '../../core/fault.ts'

/** Why a handler's signal fired: the client went away, its time is up, or the box stops. */
export type Cut = 'gone' | 'late' | 'stopping'

/** One call in hand. Its signal is made only when a handler asks, which most never do. */
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

  /** Called once when the call is cut off, or now if it is; there is one listener. */
  onCut(listener: () => void): void {
    this.#onCut = listener
    if (this.#cut) listener()
  }

  /** The first reason stays. */
  abort(cut: Cut): void {
    if (this.#cut) return
    this.#cut = cut
    this.#onCut?.()
    this.#controller?.abort(reason(cut))
  }
}

/** A handler that gave up because the box stops, or because nobody listens any more, has no bug. */
export function toClientError(error: unknown, hand: CallAbort): unknown {
  if (error instanceof Fault || !hand.cut || hand.cut === 'late') return error
  return new Fault('internal_error', 'The box is restarting. Try again shortly.', {
    code: 'restarting',
    retryAfter: 2,
    cause: error,
  })
}

function reason(cut: Cut): DOMException {
  return new DOMException(`The call was cut short: ${cut}`, 'AbortError')
}
