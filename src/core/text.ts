/** The candidate most similar to a word: one or two typing errors away, ignoring case and separators; undefined when none is similar. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > 128) return undefined
  const given = plain(word)
  if (given === '' || given.length > 64) return undefined
  let best: string | undefined
  let least = given.length < 4 ? 1 : Math.max(2, Math.floor(given.length / 4))
  for (const candidate of candidates) {
    const distance = editDistance(given, plain(candidate))
    if (distance < least || (distance === least && best === undefined)) {
      best = candidate
      least = distance
    }
  }
  return best
}

function plain(word: string): string {
  return word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
}

// Insertions, deletions, substitutions and transpositions: the optimal string alignment distance.
function editDistance(from: string, to: string): number {
  let before: number[] = []
  let above = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row += 1) {
    const here = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1]
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      here.push(
        Math.min(
          at(above, column) + 1,
          at(here, column - 1) + 1,
          at(above, column - 1) + (same ? 0 : 1),
          swapped ? at(before, column - 2) + 1 : Infinity,
        ),
      )
    }
    before = above
    above = here
  }
  return at(above, to.length)
}

function at(row: number[], column: number): number {
  return row[column] ?? Infinity
}

/**
 * Removes `characters` from the end of a text. A single pass: a regular expression like `/-+$/` starts again at each hyphen of a run that
 * something else follows, which takes quadratic time.
 */
export function trimEnd(text: string, characters: string): string {
  let end = text.length
  while (end > 0 && characters.includes(text[end - 1]!)) end -= 1
  return text.slice(0, end)
}

export function trimBothEnds(text: string, characters: string): string {
  let start = 0
  while (start < text.length && characters.includes(text[start]!)) start += 1
  return trimEnd(text.slice(start), characters)
}

/** A percent-encoded text (RFC 3986 2.1); undefined when it is not UTF-8. */
export function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/**
 * Untrusted text as one line that is safe to display beside other text: white space and control characters become one space, and explicit
 * direction controls (Unicode TR 9) are removed. Right-to-left letters need no such controls.
 */
export function displayLine(text: string): string {
  return text.replace(allDirectionControls, '').replace(spacesAndControls, ' ').trim()
}

const spacesAndControls = /[\s\p{Cc}]+/gu

export function hasDirectionControls(text: string): boolean {
  return directionControls.test(text)
}

const directionControls = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u
const allDirectionControls = new RegExp(directionControls, 'gu')

/** A text as one line: white space in runs is one space. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

/** A text as it is written in HTML, also within quotation marks. */
export function htmlEscaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

/** The text with a capital first letter. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** The first `max` characters of a text; one less when that would cut a surrogate pair. */
export function upToLength(text: string, max: number): string {
  if (text.length <= max) return text
  return text.slice(0, text.codePointAt(max - 1)! > 0xffff ? max - 1 : max)
}

/** The longest beginning of a text that has at most `max` bytes as a JSON string in UTF-8, without its quotes. */
export function upToJsonBytes(text: string, max: number): string {
  if (text.length * longestEscape <= max) return text
  let bytes = 0
  for (let end = 0; end < text.length;) {
    const character = text.codePointAt(end)!
    bytes += jsonBytes(character)
    if (bytes > max) return text.slice(0, end)
    end += character > 0xffff ? 2 : 1
  }
  return text
}

/** Bytes of `\u0001`. */
const longestEscape = 6

function jsonBytes(character: number): number {
  if (character === 0x22 || character === 0x5c) return 2
  if (character < 0x20) return shortEscapes.has(character) ? 2 : longestEscape
  if (character < 0x80) return 1
  if (character < 0x800) return 2
  if (character > 0xffff) return 4
  // half a surrogate pair is escaped
  return character >= 0xd800 && character <= 0xdfff ? longestEscape : 3
}

/** `\b`, `\t`, `\n`, `\f` and `\r`. */
const shortEscapes = new Set([0x08, 0x09, 0x0a, 0x0c, 0x0d])

/**
 * Characters of a text that are searched at once for control characters: one replacement of all in 5 MB would take memory for
 * each of millions of them.
 */
const piece = 64 * 1024

// eslint-disable-next-line no-control-regex -- these are what is looked for
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]+/g

/**
 * Text of a message without control characters except tab and line ends, and well-formed: senders mean nothing by them, and in JSON each takes
 * six bytes.
 */
export function withoutControls(text: string): string {
  if (text.search(controls) === -1) return text.toWellFormed()
  const kept: string[] = []
  for (let start = 0; start < text.length; start += piece) kept.push(text.slice(start, start + piece).replace(controls, ''))
  return kept.join('').toWellFormed()
}
