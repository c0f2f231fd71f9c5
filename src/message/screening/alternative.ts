/** Letters that are compared at once. */
const length = 6

/** So many letters that the HTML does not have are another text. */
const differs = 16

/** Characters of a text part that are compared. */
export const maxCompared = 256 * 1024

/** Characters of the names of pictures that are left out of the comparison; what is longer might say something. */
const maxLabels = 300

/** Numbers that are compared; those of a text that has more might say something. */
const maxNumbers = 200

/** What an HTML part shows, for comparison with other texts. It takes time in proportion to the texts, whatever they are. */
export class ShownText {
  readonly #letters: string
  readonly #bits: Uint8Array
  readonly #mask: number

  constructor(shown: string) {
    const letters = (this.#letters = lettersOf(shown))
    const size = 2 ** Math.max(10, Math.ceil(Math.log2(letters.length + 1)))
    this.#bits = new Uint8Array(size)
    this.#mask = size * 8 - 1
    for (let at = 0; at + length <= letters.length; at++) {
      const place = hashAt(letters, at) & this.#mask
      this.#bits[place >> 3]! |= 1 << (place & 7)
    }
  }

  /** The lines of a text that are not shown; the start of them. */
  missingLines(text: string): string[] {
    return linesOf(text).filter((line) => {
      const letters = lettersOf(line)
      const missing = this.#missingIn(letters)
      return missing >= differs || missing > (letters.length - length + 1) / 2
    })
  }

  /** The lines of a text with a number that is not shown, such as another code, amount or account. */
  linesOfOtherNumbers(text: string): string[] {
    let left = maxNumbers
    return linesOf(text).filter((line) =>
      (line.normalize('NFKC').match(number) ?? []).some((digits) => --left < 0 || !this.#letters.includes(digits)),
    )
  }

  #missingIn(letters: string): number {
    let missing = 0
    for (let at = 0; at + length <= letters.length; at++) {
      const place = hashAt(letters, at) & this.#mask
      if ((this.#bits[place >> 3]! & (1 << (place & 7))) === 0) missing += 1
    }
    return missing
  }
}

/** True if lines say something of their own: more than a word or two. */
export function saysMore(lines: readonly string[]): boolean {
  let letters = 0
  for (const line of lines) letters += lettersOf(line).length
  return letters >= differs
}

const number = /\p{Nd}{3,}/gu

function hashAt(letters: string, at: number): number {
  let hash = 0
  for (let index = at; index < at + length; index++)
    hash = Math.imul(hash ^ letters.charCodeAt(index), 0x9e3779b1) ^ (hash >>> 15)
  return (hash ^ (hash >>> 16)) >>> 0
}

function lettersOf(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '')
}

/** The lines of a text without what programs that make a text of HTML add; short lines that follow each other are one. */
function linesOf(text: string): string[] {
  const lines: string[] = []
  let short = ''
  let left = maxLabels
  const plain = text
    .slice(0, maxCompared)
    .replace(/https?:\/\/[^\s<>"]{1,4000}|<mailto:[^\s<>]{1,320}>|\[cid:[^\]\s]{0,200}\]/gi, '')
    .replace(/\[(?:cid|image|bild|imagen):[^\]\n]{0,60}\]/gi, (label) => ((left -= label.length) >= 0 ? '' : label))
  for (const line of plain.split('\n')) {
    if (line.trim().length >= 2 * length) {
      lines.push(line)
    } else {
      if (short.length < 2000) short += ` ${line.trim()}`
      continue
    }
    if (lettersOf(short).length >= length) lines.push(short)
    short = ''
  }
  if (lettersOf(short).length >= length) lines.push(short)
  return lines
}
