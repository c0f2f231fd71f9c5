/** Letters that are compared at once. */
const length = 6

/** Characters of a text part that are compared. */
export const maxCompared = 256 * 1024

/** Characters of the names of pictures that are left out of the comparison; what is longer might say something. */
const maxLabels = 300

/** Characters of short lines that are one. */
const maxJoined = 2000

/** Numbers that are compared; those of a text that has more might say something. */
const maxNumbers = 200

/** What an HTML part shows, for comparison with other texts. It takes time in proportion to the texts, whatever they are. */
export class ShownText {
  readonly #letters: string
  readonly #bits: Uint8Array
  readonly #mask: number
  readonly #urls: ReadonlySet<string>

  /** Of what is seen of HTML, as text and as HTML. */
  constructor(shown: string, html: string) {
    this.#urls = new Set(urlsOf(html.replaceAll('&amp;', '&')))
    const letters = (this.#letters = lettersOf(shown))
    // at least 32 bits for each place, so that few letters that are not there seem to be
    const size = 4 * 2 ** Math.max(10, Math.ceil(Math.log2(letters.length + 1)))
    this.#bits = new Uint8Array(size)
    this.#mask = size * 8 - 1
    for (let at = 0; at + length <= letters.length; at++) {
      const place = hashAt(letters, at) & this.#mask
      this.#bits[place >> 3]! |= 1 << (place & 7)
    }
  }

  /** The lines of a text with anything that is not shown, be it a word or another number, and its URLs that the HTML does not have. */
  missingLines(text: string): string[] {
    let left = maxNumbers
    const hasOtherNumber = (line: string): boolean =>
      (line.normalize('NFKC').match(number) ?? []).some((digits) => --left < 0 || !this.#letters.includes(digits))
    const lines = linesOf(text).filter((line) => this.#isMissing(lettersOf(line)) || hasOtherNumber(line))
    return [...lines, ...urlsOf(text.slice(0, maxCompared)).filter((url) => !this.#urls.has(url))]
  }

  #isMissing(letters: string): boolean {
    // of a whole text at most
    if (letters.length < length) return !this.#letters.includes(letters)
    for (let at = 0; at + length <= letters.length; at++) {
      const place = hashAt(letters, at) & this.#mask
      if ((this.#bits[place >> 3]! & (1 << (place & 7))) === 0) return true
    }
    return false
  }
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

const url = /https?:\/\/[^\s<>"]{1,4000}/gi

/** The URLs of a text or of HTML, without what stands behind them in a sentence. */
function urlsOf(text: string): string[] {
  return (text.match(url) ?? []).map((found) => found.replace(/[)\]}'.,;:!?]{1,9}$/, ''))
}

/**
 * The lines of a text without what programs that make a text of HTML add. Short lines that follow each other are one; with too few letters to be compared
 * they are part of the line before, or at the start of the line after.
 */
function linesOf(text: string): string[] {
  const lines: string[] = []
  let short = ''
  let left = maxLabels
  const plain = text
    .slice(0, maxCompared)
    .replace(url, '')
    .replace(/<mailto:[^\s<>]{1,320}>|\[cid:[^\]\s]{0,200}\]/gi, '')
    .replace(/\[(?:cid|image|bild|imagen):[^\]\n]{0,60}\]/gi, (label) => ((left -= label.length) >= 0 ? '' : label))
  const endShort = (): void => {
    if (lettersOf(short).length >= length || lines.length === 0) lines.push(short)
    else lines.push(`${lines.pop()} ${short}`)
    short = ''
  }
  for (const line of plain.split('\n')) {
    if (line.trim().length < 2 * length) {
      short += ` ${line.trim()}`
      if (short.length > maxJoined) endShort()
    } else if (lines.length === 0 && lettersOf(short).length < length) {
      lines.push(`${short} ${line}`)
      short = ''
    } else {
      endShort()
      lines.push(line)
    }
  }
  endShort()
  return lines
}
