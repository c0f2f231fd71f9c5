/** Characters up to which `String.includes` is used: it may compare each of them at each place of a text. */
const short = 32

/** A text to be found in others, in time that is linear in their length whatever both are (Knuth, Morris and Pratt). */
export class Substring {
  readonly #text: string
  /** For each character, the length of the longest start of the text that also ends there, not counting the text up to there itself. */
  readonly #borders: Uint16Array | undefined

  /** `text` has at most 65,535 characters. */
  constructor(text: string) {
    this.#text = text
    this.#borders = text.length > short ? bordersOf(text) : undefined
  }

  isIn(other: string): boolean {
    const text = this.#text
    const borders = this.#borders
    if (!borders) return other.includes(text)
    let matched = 0
    for (let at = 0; at < other.length && matched < text.length; at += 1) {
      matched = extended(text, borders, matched, other.charCodeAt(at))
    }
    return matched === text.length
  }
}

function bordersOf(text: string): Uint16Array {
  const borders = new Uint16Array(text.length)
  for (let at = 1; at < text.length; at += 1) borders[at] = extended(text, borders, borders[at - 1]!, text.charCodeAt(at))
  return borders
}

/** How many characters of the start of a text are matched once another character follows those that were. */
function extended(text: string, borders: Uint16Array, before: number, next: number): number {
  let matched = before
  while (matched > 0 && text.charCodeAt(matched) !== next) matched = borders[matched - 1]!
  return text.charCodeAt(matched) === next ? matched + 1 : matched
}
