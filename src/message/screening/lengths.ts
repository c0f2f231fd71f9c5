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
    cqw: 10,
    cqi: 10,
    cqh: 8,
    cqb: 8,
    cqmin: 8,
    cqmax: 10,
    deg: 1,
    grad: 0.9,
    rad: 57.3,
    turn: 360,
  }),
)

/** The units that are relative to the font of the element. */
const ofFont = new Set(['em', 'ex', 'ch', 'cap', 'ic', 'lh'])

/** How deep functions may nest: as deep as the longest value has parentheses. */
const deepest = 150

const constants: ReadonlyMap<string, number> = new Map(
  Object.entries({ pi: Math.PI, e: Math.E, infinity: Infinity, '-infinity': -Infinity, nan: 0 }),
)

/** Mathematical functions (CSS Values 4, 10) by what they make of their arguments. */
const functions: ReadonlyMap<string, (...given: number[]) => number> = new Map(
  Object.entries({
    min: Math.min,
    max: Math.max,
    clamp: (least, value, most) =>
      Math.max(Number.isNaN(least) ? -Infinity : least, Math.min(value, Number.isNaN(most) ? Infinity : most)),
    abs: Math.abs,
    sign: Math.sign,
    sqrt: Math.sqrt,
    exp: Math.exp,
    hypot: Math.hypot,
    pow: (base, exponent) => base ** exponent,
    log: (value, base?: number) => Math.log(value) / Math.log(base ?? Math.E),
    mod: (value, of) => value - of * Math.floor(value / of),
    rem: (value, of) => value % of,
    sin: Math.sin,
    cos: Math.cos,
    tan: Math.tan,
    asin: (value) => degrees(Math.asin(value)),
    acos: (value) => degrees(Math.acos(value)),
    atan: (value) => degrees(Math.atan(value)),
    atan2: (y, x) => degrees(Math.atan2(y, x)),
  }),
)

const roundings: ReadonlyMap<string, (value: number) => number> = new Map(
  Object.entries({ nearest: Math.round, up: Math.ceil, down: Math.floor, 'to-zero': Math.trunc }),
)

function degrees(radians: number): number {
  return (radians * 180) / Math.PI
}

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
    const name = this.#take(/(-?[a-z][a-z\d-]{0,20}|)\(\s{0,9}/y)
    if (name !== undefined) return this.#call(name, depth + 1)
    const number = this.#take(/([+-]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300})(?:e[+-]?\d{1,9})?)/y)
    if (number === undefined) return constants.get(this.#take(/(-?[a-z]{1,8})/y) ?? '') ?? Number.NaN
    const unit = this.#take(/(%|[a-z]{0,5})/y) ?? ''
    const one = unit === '%' ? this.#whole / 100 : (units.get(/^[sld]v/.test(unit) ? unit.slice(1) : unit) ?? Number.NaN)
    return Number(number) * (ofFont.has(unit) ? (one * this.#em) / 16 : one)
  }

  #call(name: string, depth: number): number {
    const start = this.#at
    const rounding = name === 'round' ? this.#take(/(nearest|up|down|to-zero)\s{0,9},\s{0,9}/y) : undefined
    const given = [this.sum(depth)]
    while (this.#take(/\s{0,9}(,)\s{0,9}/y) !== undefined) given.push(this.sum(depth))
    const within = this.#text.slice(start, this.#at)
    if (this.#take(/\s{0,9}(\))/y) === undefined) return Number.NaN
    const [first = Number.NaN, step = 1] = given
    if (name === '' || name === 'calc' || name === '-webkit-calc') return given.length === 1 ? first : Number.NaN
    if (name === 'round') return step * roundings.get(rounding ?? 'nearest')!(first / step)
    // angles are in degrees, numbers are radians
    if (/^(?:sin|cos|tan)$/.test(name) && /\d(?:deg|grad|rad|turn)/.test(within))
      return functions.get(name)!((first * Math.PI) / 180)
    return functions.get(name)?.(...given) ?? Number.NaN
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

/** Where the parenthesis ends that is open before `start`: its place, or the end of the text. */
export function closing(text: string, start: number): number {
  let depth = 1
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === '(') depth += 1
    else if (text[at] === ')') depth -= 1
    if (depth === 0) return at
  }
  return text.length
}
