import { RE2JS } from 're2js'

/** The matched prefix of a value in characters: one event may be matched by many watchers. */
const looked = 1000

/** The instructions of the largest pattern. Matching takes time in proportion to steps × characters. */
export const maxSteps = 500

/** The limit of a filter's compile cost: a few milliseconds. */
export const maxWork = 150_000

/** A compiled text pattern. */
export interface Pattern {
  /** Compiled instructions: the cost for each character. */
  steps: number
  /** The compile cost of its classes: case-folded characters, and ranges. */
  work: number
  matches: (text: string) => boolean
}

/**
 * A regular expression, matched anywhere in linear time whatever the pattern. Undefined for an invalid one, or one above `maxSteps` or
 * `maxWork`: repetitions such as `(a?){1000}` make a short text a long program, and ignoring case folds every character of a range.
 */
export function expression(pattern: string, ignoreCase: boolean): Pattern | undefined {
  const { steps: foreseen, work } = sizeOf(pattern, ignoreCase || /\(\?[a-z-]*i/i.test(pattern))
  if (foreseen > maxSteps || work > maxWork) return undefined
  try {
    const compiled = RE2JS.compile(pattern, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
    const steps = compiled.programSize()
    if (steps > maxSteps) return undefined
    return { steps, work, matches: (text) => compiled.matcher(text.slice(0, looked)).find() }
  } catch {
    return undefined
  }
}

/** SQL's LIKE: `%` any text, `_` one character, `\` escapes the next; `*` equals `%`, as in PostgREST URLs. */
export function like(pattern: string, ignoreCase: boolean): Pattern | undefined {
  const parts = pattern.matchAll(/\\([^])|([%*])|(_)|([^])/g)
  const source = [...parts].map(([, escaped, many, one, plain]) =>
    many ? '.*' : one ? '.' : RE2JS.quote(escaped ?? plain ?? ''),
  )
  return expression(`(?s)^${source.join('')}$`, ignoreCase)
}

/** Instructions, and the character ranges they distinguish. */
interface Size {
  steps: number
  ranges: number
}

const none: Size = { steps: 0, ranges: 0 }

/** Estimates the compiled size before compiling, as compiling is what takes time and memory. */
function sizeOf(pattern: string, folds: boolean): { steps: number; work: number } {
  // between \Q and \E all characters are literal
  if (pattern.includes('\\Q')) return { steps: Infinity, work: Infinity }
  const groups = [none]
  let last = none
  let folded = 0
  const add = (size: Size): void => void (groups[groups.length - 1] = sum(groups.at(-1)!, size))
  for (let at = 0; at < pattern.length;) {
    repetition.lastIndex = at
    const [repeated, most, more] = repetition.exec(pattern) ?? []
    if (repeated !== undefined) {
      const times = Math.min(Math.max(1, Number(more || most)) - 1, maxSteps)
      const added = { steps: last.steps * times, ranges: last.ranges * times }
      add(added)
      last = sum(last, added)
      at += repeated.length
    } else if (pattern[at] === '(') {
      groups.push(none)
      at += 1
    } else if (pattern[at] === ')' && groups.length > 1) {
      // anchors are instructions as well
      last = sum(groups.pop()!, { steps: 2, ranges: 0 })
      add(last)
      at += 1
    } else {
      const read = readClass(pattern, at, folds)
      folded += read.folded
      last = { steps: 1, ranges: read.ranges }
      add(last)
      at = read.end
    }
  }
  const { steps, ranges } = groups.reduce(sum)
  return { steps, work: folded + ranges }
}

function sum(one: Size, other: Size): Size {
  return { steps: one.steps + other.steps, ranges: one.ranges + other.ranges }
}

/** The largest named class, such as \p{L}: its ranges, and the characters to fold. */
const largest = { ranges: 700, folded: 7000 }

/** The last character with another case: later ones are not folded. */
const lastCased = 0x1e943

/** Reads the class or character at this position: its ranges, the number of folded characters, and its end. */
function readClass(pattern: string, begin: number, folds: boolean): { ranges: number; folded: number; end: number } {
  const isClass = pattern[begin] === '['
  const first = isClass ? begin + (pattern[begin + 1] === '^' ? 2 : 1) : begin
  const most = isClass ? pattern.length : 0
  const read = { ranges: 0, folded: 0, end: first }
  do {
    item.lastIndex = read.end
    const [text = pattern[read.end] ?? '', from, to] = item.exec(pattern) ?? []
    const isNamed = /^\\p/i.test(text)
    read.ranges += isNamed ? largest.ranges : 1
    if (isNamed) read.folded += largest.folded
    else if (folds && isClass && to !== undefined)
      read.folded += Math.max(0, Math.min(codePoint(to), lastCased) - codePoint(from!))
    // outside a class - is a literal
    read.end += !isClass && from !== undefined ? from.length : text.length
    // a ] in first position is a literal
  } while (read.end < most && pattern[read.end] !== ']')
  if (isClass) read.end += 1
  return read
}

function codePoint(character: string): number {
  const [, hexadecimal, octal] = /^\\(?:x\{?([\da-f]+)|([0-7]+))/i.exec(character) ?? []
  if (hexadecimal !== undefined) return Number.parseInt(hexadecimal, 16)
  if (octal !== undefined) return Number.parseInt(octal, 8)
  return character.codePointAt(character.length > 1 && character.startsWith('\\') ? 1 : 0)!
}

const escape = String.raw`\\(?:x\{[^}]*\}|x[\da-fA-F]{2}|[0-7]{1,3}|[^])`

/** An item of a class: a named class, a character, or a range. */
const item = new RegExp(
  String.raw`\[:\^?\w+:\]|\\[pP](?:\{[^}]*\}|[^])|\\[dswDSW]|(${escape}|[^\\])(?:-(${escape}|[^\]\\]))?`,
  'uy',
)

const repetition = /\{(\d+)(?:,(\d*))?\}/y
