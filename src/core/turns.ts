/** Longest that work goes on before others have their turn, in milliseconds. */
const longest = 5

/** For long work on the main thread, done in small steps: says when the others should have their turn of the event loop. */
export class Turns {
  #since = performance.now()

  /** Whether it has gone on for long enough. */
  get due(): boolean {
    return performance.now() - this.#since > longest
  }

  /** Resolves when everything else that was ready has run. */
  async yield(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    this.#since = performance.now()
  }
}
