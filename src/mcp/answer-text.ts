import { displayLine, upToLength } from '../core/text.ts'
import { Fence } from './fence.ts'

/** The most characters of an answer, and of these of the lines after its fence. */
export const longestAnswer = 8000
const longestEnd = 500

/** Lines of the box, then what strangers wrote, within the length of an answer. */
export class AnswerText {
  readonly #lines: string[] = []
  readonly #fence = new Fence()
  readonly #fenced: string[] = []
  #left = longestAnswer - Fence.overhead - longestEnd

  /** Adds a line of the box; nothing that others chose but addresses of known form. */
  line(text: string): void {
    this.#lines.push(text)
    this.#left -= text.length + 1
  }

  /** Adds a line that others wrote, cut at so many characters. False if no more fits. */
  foreign(label: string, text: string, longest = 300): boolean {
    const line = `${label}${upToLength(displayLine(text), longest)}`
    if (line.length + 1 > this.#left) return false
    this.#fenced.push(line)
    this.#left -= line.length + 1
    return true
  }

  /** Adds what fits of a text that others wrote, from `offset` on. Returns where the next part begins, which is `offset` if nothing fits; null after the last. */
  page(text: string, offset: number, longest = longestAnswer): number | null {
    const part = upToLength(text.slice(offset), Math.max(0, Math.min(this.#left, longest)))
    this.#fenced.push(part)
    this.#left -= part.length + 1
    const next = offset + part.length
    return next < text.length ? next : null
  }

  get left(): number {
    return this.#left
  }

  /** The whole answer. `last` are lines that stand after the fence, the most important last: of too many the first are left out. */
  toString(last: string[] = []): string {
    const fenced = this.#fenced.length === 0 ? [] : [this.#fence.wrap(this.#fenced.join('\n'))]
    const kept: string[] = []
    let left = longestEnd
    for (const line of last.toReversed()) if ((left -= line.length + 1) >= 0) kept.unshift(line)
    return [...this.#lines, ...fenced, ...kept].join('\n')
  }
}
