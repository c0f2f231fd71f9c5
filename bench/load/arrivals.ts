import { monotonic } from '../program.ts'

/** When each numbered thing came, and how many came in all. */
export class Arrivals {
  #count = 0
  #times: [string, number][] = []
  #last = 0
  #wanted = Infinity
  #enough: ((at: number) => void) | undefined

  /** Forgets what came. */
  reset(): void {
    this.#count = 0
    this.#times = []
    this.#last = 0
  }

  /** Something came, with its number when there is one. */
  note(number?: string, many = 1): void {
    this.#last = monotonic()
    this.#count += many
    if (number !== undefined) this.#times.push([number, this.#last])
    if (this.#count >= this.#wanted) {
      this.#wanted = Infinity
      this.#enough?.(this.#last)
    }
  }

  /** When so many had come; throws after a minute. */
  until(count: number): Promise<number> {
    if (this.#count >= count) return Promise.resolve(this.#last)
    this.#wanted = count
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${this.#count} of ${count} came`)), 60_000)
      this.#enough = (at) => {
        clearTimeout(timer)
        resolve(at)
      }
    })
  }

  get count(): number {
    return this.#count
  }

  get times(): [string, number][] {
    return this.#times
  }
}
