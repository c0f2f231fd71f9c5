/** Pixels in one of each unit (CSS Values 4); a font is taken to be of 16 pixels, a window of 1000 by 800. */
const units: ReadonlyMap<string, number> = new Map(
  Object.entries({
    '': 1,
    px: 1,
    pt: 4 / 3,
    pc: 16,
    in: 96,
    cm: 38,
    mm: 3.8,
    q: 0.95,
    em: 16,
    rem: 16,
    ex: 8,
    rex: 8,
    ch: 8,
    rch: 8,
    cap: 11,
    rcap: 11,
    ic: 16,
    ric: 16,
    lh: 20,
    rlh: 20,
    vw: 10,
    vi: 10,
    vh: 8,
    vb: 8,
    vmin: 8,
    vmax: 10,
    deg: 1,
    grad: 0.9,
    rad: 57.3,
    turn: 360,
  }),
)

/** The units that are relative to the font of the element. */
const ofFont = new Set(['em', 'ex', 'ch', 'cap', 'ic', 'lh'])

/** How deep functions may nest. */
const deepest = 8

/**
 * A length in pixels, an angle in degrees or a number of CSS, also as `calc()`, `min()`, `max()` or `clamp()`; a percentage is of `whole`, and the font
 * has `em` pixels. NaN for what is none, as `auto`.
 */
export function measureOf(value: string | undefined, whole = Number.NaN, em = 16): number {
  if (value === undefined) return Number.NaN
  const reader = new MeasureReader(value, whole, em)
  const found = reader.sum(0)
  return reader.isAtEnd ? found : Number.NaN
}

class MeasureReader {
  readonly #text: string
  readonly #whole: number
  readonly #em: number
  #at = 0

  constructor(text: string, whole: number, em: number) {
    this.#text = text.trim()
    this.#whole = whole
    this.#em = em
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length
  }

  sum(depth: number): number {
    let total = this.#product(depth)
    for (let sign = this.#take(/\s{0,9}([+-])\s{1,9}/y); sign !== undefined; sign = this.#take(/\s{0,9}([+-])\s{1,9}/y)) {
      const other = this.#product(depth)
      total = sign === '+' ? total + other : total - other
    }
    return total
  }

  #product(depth: number): number {
    let total = this.#value(depth)
    for (let sign = this.#take(/\s{0,9}([*/])\s{0,9}/y); sign !== undefined; sign = this.#take(/\s{0,9}([*/])\s{0,9}/y)) {
      const other = this.#value(depth)
      total = sign === '*' ? total * other : total / other
    }
    return total
  }

  #value(depth: number): number {
    if (depth > deepest) return Number.NaN
    const name = this.#take(/(-?[a-z][a-z-]{0,20}|)\(\s{0,9}/y)
    if (name !== undefined) return this.#call(name, depth + 1)
    const number = this.#take(/([+-]?(?:\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})(?:e[+-]?\d{1,3})?)/y)
    if (number === undefined) return Number.NaN
    const unit = this.#take(/(%|[a-z]{0,5})/y) ?? ''
    const one = unit === '%' ? this.#whole / 100 : (units.get(/^[sld]v/.test(unit) ? unit.slice(1) : unit) ?? Number.NaN)
    return Number(number) * (ofFont.has(unit) ? (one * this.#em) / 16 : one)
  }

  #call(name: string, depth: number): number {
    const given = [this.sum(depth)]
    while (this.#take(/\s{0,9}(,)\s{0,9}/y) !== undefined) given.push(this.sum(depth))
    if (this.#take(/\s{0,9}(\))/y) === undefined) return Number.NaN
    const [first = Number.NaN, second = Number.NaN, third = Number.NaN] = given
    if (name === '' || name === 'calc' || name === '-webkit-calc') return given.length === 1 ? first : Number.NaN
    if (name === 'min') return Math.min(...given)
    if (name === 'max') return Math.max(...given)
    if (name === 'clamp') return Math.max(first, Math.min(second, third))
    return Number.NaN
  }

  /** The first group of what comes next, if it matches. */
  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)
    if (!found) return undefined
    this.#at = pattern.lastIndex
    return found[1]
  }
}

/** The functions in a value with their arguments, as `scale(0) translate(1px, 2px)`. */
export function functionsIn(value: string): { name: string; given: string[] }[] {
  const found: { name: string; given: string[] }[] = []
  const names = /([a-z][a-z\d-]{0,20})\(/g
  for (let match = names.exec(value); match; match = names.exec(value)) {
    const given: string[] = []
    let depth = 1
    let start = names.lastIndex
    let at = start
    for (; at < value.length && depth > 0; at += 1) {
      const character = value[at]
      if (character === '(') depth += 1
      else if (character === ')') depth -= 1
      if (depth === 0 || (depth === 1 && character === ',')) {
        given.push(value.slice(start, at))
        start = at + 1
      }
    }
    names.lastIndex = at
    const words = given.length === 1 ? wordsIn(given[0]!) : given
    found.push({ name: match[1]!, given: words.map((one) => one.trim()) })
  }
  return found
}

/** The words of a value, with functions whole. */
export function wordsIn(value: string): string[] {
  const words: string[] = []
  let depth = 0
  let word = ''
  for (const character of value) {
    if (character === '(') depth += 1
    else if (character === ')') depth -= 1
    if (depth <= 0 && /[\s/]/.test(character)) {
      if (word !== '') words.push(word)
      word = ''
    } else word += character
  }
  return word === '' ? words : [...words, word]
}
