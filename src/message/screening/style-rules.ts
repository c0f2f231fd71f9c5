import { Tokenizer, withoutStrings, withVariableCase } from '../markup.ts'
import { supportOf } from './declarations.ts'
import { measureOf, wordsIn } from './lengths.ts'
import type { Match } from './selectors.ts'

/** Characters of style sheets that are read. */
const maxLength = 512 * 1024

/** How deep blocks nest, and the selectors of one rule in another. */
const deepest = 12
const maxNested = 50
const longestSelectors = 20_000

/** A rule of a style sheet: its layer is Infinity outside of any. One of an animation has `@` and its name, and `from` or `to` or both, as its selectors; a registered variable `@property` and its name. */
interface StyleRule {
  selectors: string
  style: string
  layer: number
  /** False where only a browser can tell whether it holds. */
  isSure: boolean
}

interface Block {
  /** Null for one that has no rules of its own. */
  selectors: string | null
  /** Whether its rules hold on a usual screen. */
  holds: Match
  layer: number
  style: string[]
  /** The name of the animation whose frames it has. */
  frames?: string
}

/** The rules of the style elements of HTML that hold on a usual screen of 1000 pixels in light colours; null where there is more than is read. */
export function* rulesOf(html: string): Generator<StyleRule | null> {
  const layers = new Map<string, number>()
  let left = maxLength
  for (const { css, holds } of styleElements(html)) {
    if (css.length > left) yield null
    yield* rulesIn(withoutStrings(css.slice(0, left)).replace(/\s+/g, ' '), layers, holds)
    left = Math.max(0, left - css.length)
  }
}

interface StyleElement {
  css: string
  holds: Match
}

/** The contents of the style elements for a usual screen. */
function styleElements(html: string): StyleElement[] {
  if (!/<style/i.test(html)) return []
  const reader = new StyleElementReader(html)
  const tokenizer = new Tokenizer({ decodeEntities: true }, reader)
  tokenizer.write(html)
  tokenizer.end()
  return reader.found
}

/** Elements whose style sheets are not used, or only where no scripts run. */
const inert = /^(?:template|noscript|iframe|noembed|noframes|select)$/

class StyleElementReader {
  readonly found: StyleElement[] = []
  readonly #html: string
  #open = 0
  #tag = ''
  #name = ''
  #attributes = new Map<string, string>()
  #current: StyleElement | undefined

  constructor(html: string) {
    this.#html = html
  }

  onopentagname(start: number, end: number): void {
    this.#tag = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    this.#attributes = new Map()
    if (inert.test(this.#tag)) this.#open += 1
  }

  onattribname(start: number, end: number): void {
    this.#name = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    // the first of several attributes of one name counts
    if (this.#attributes.has(this.#name)) this.#name = ''
    this.#attributes.set(this.#name, '')
  }

  onattribdata(start: number, end: number): void {
    if (this.#tag === 'style') this.#attributes.set(this.#name, this.#attributes.get(this.#name)! + this.#html.slice(start, end))
  }

  onattribentity(codepoint: number): void {
    this.#attributes.set(this.#name, this.#attributes.get(this.#name)! + String.fromCodePoint(codepoint))
  }

  onopentagend(): void {
    if (this.#tag !== 'style') return
    const media = Math.max(...(this.#attributes.get('media') ?? '').split(',').map(mediaHolds)) as Match
    const isCss = /^(?:text\/css)?$/i.test(this.#attributes.get('type') ?? '')
    // of style sheets with titles some are alternatives
    const most = this.#open > 0 || this.#attributes.has('title') ? 1 : 2
    this.#current = { css: '', holds: isCss ? (Math.min(media, most) as Match) : 0 }
  }

  onselfclosingtag(): void {
    this.onopentagend()
  }

  ontext(start: number, end: number): void {
    if (this.#current) this.#current.css += this.#html.slice(start, end)
  }

  onclosetag(start: number, end: number): void {
    const tag = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    if (inert.test(tag)) this.#open = Math.max(0, this.#open - 1)
    if (tag === 'style') this.#end()
  }

  onend(): void {
    this.#end()
  }

  onattribend(): void {}
  ontextentity(): void {}
  oncdata(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onprocessinginstruction(): void {}

  #end(): void {
    if (this.#current && this.#current.holds > 0) this.found.push(this.#current)
    this.#current = undefined
  }
}

function* rulesIn(text: string, layers: Map<string, number>, holds: Match): Generator<StyleRule | null> {
  const open: Block[] = [{ selectors: null, holds, layer: Infinity, style: [] }]
  const marks = /[{};()]|\\[\s\S]/g
  let start = 0
  let round = 0
  let skipped = 0
  for (let found = marks.exec(text); found; found = marks.exec(text)) {
    const mark = found[0]
    if (mark === '(') round += 1
    else if (mark === ')') round = Math.max(0, round - 1)
    if (round > 0 || mark === ')' || mark.startsWith('\\')) continue
    const top = open.at(-1)!
    if (mark === '}' && open.length === 1) continue
    const before = text.slice(start, found.index)
    start = marks.lastIndex
    if (mark === '{') {
      if (open.length > deepest) {
        skipped += 1
        yield null
      } else open.push(blockOf(before.replace(/<!--|-->/g, '').trim(), top, layers))
    } else if (mark === ';') {
      if (top.selectors !== null) top.style.push(before)
      else if (/^\s*@layer\s/i.test(before)) for (const name of before.trim().slice(6).split(',')) layerOf(name, layers)
    } else if (skipped > 0) skipped -= 1
    else {
      top.style.push(before)
      yield* ended(open.pop()!)
    }
  }
  // blocks that are not closed end with the text
  open.at(-1)!.style.push(text.slice(start))
  for (const block of open.toReversed()) yield* ended(block)
}

function* ended({ selectors, holds, layer, style }: Block): Generator<StyleRule | null> {
  if (holds > 0 && selectors === '') yield null
  else if (holds > 0 && selectors !== null && style.length > 0)
    yield { selectors, layer, style: style.join(';'), isSure: holds === 2 }
}

function blockOf(prelude: string, outer: Block, layers: Map<string, number>): Block {
  const inner = { selectors: outer.selectors, holds: outer.holds, layer: outer.layer, style: [] }
  const [, rule, given = ''] = /^@([a-z-]{1,30})([\s\S]*)$/i.exec(prelude) ?? []
  if (outer.frames !== undefined) return { ...inner, selectors: frameOf(outer.frames, prelude) }
  if (rule === undefined) return { ...inner, selectors: nested(prelude, outer.selectors) }
  const within = (holds: Match): Block => ({ ...inner, holds: Math.min(inner.holds, holds) as Match })
  switch (rule.toLowerCase()) {
    case 'media':
      return within(Math.max(...given.split(',').map(mediaHolds)) as Match)
    case 'supports':
      return within(condition(given, supportOf))
    case 'keyframes':
    case '-webkit-keyframes':
      return { ...inner, selectors: null, frames: given.trim().toLowerCase().replace(/\s.*/s, '') }
    case 'property':
      return { ...inner, selectors: `@property ${withVariableCase(given.trim()).toLowerCase()}` }
    case 'layer':
      return { ...inner, layer: layerOf(given, layers) }
    case 'scope':
    case 'container':
    case 'starting-style':
      return within(1)
    default:
      return within(0)
  }
}

/** The first or the last frame of an animation; null for one between. */
function frameOf(animation: string, prelude: string): string | null {
  const places = prelude
    .toLowerCase()
    .split(',', 20)
    .map((place) => place.trim())
  const found = [
    places.some((place) => place === 'from' || place === '0%') ? ' from' : '',
    places.some((place) => place === 'to' || place === '100%') ? ' to' : '',
  ].join('')
  return found === '' ? null : `@${animation}${found}`
}

function layerOf(given: string, layers: Map<string, number>): number {
  const name = given.trim() || `: ${layers.size}`
  const known = layers.get(name) ?? layers.size
  layers.set(name, known)
  return known
}

/** The selectors of a rule in another (CSS Nesting); '' of more than are read. */
function nested(inner: string, outer: string | null): string {
  const list = inner.split(',')
  if (outer === '' || (outer !== null && list.length > maxNested)) return ''
  const whole = `:is(${outer})`
  const all =
    outer === null
      ? inner
      : list.map((one) => (one.includes('&') ? one.replaceAll('&', whole) : `${whole} ${one.trim()}`)).join(',')
  return all.length > longestSelectors ? '' : all
}

/** Whether a usual screen answers a query. */
function mediaHolds(query: string): Match {
  const [, isNot, type = '', rest = ''] =
    /^(?:(not)\s{1,9}|only\s{1,9})?([a-z-]{1,40})(?:\s{1,9}and\b(.*))?$/s.exec(query.trim().toLowerCase()) ?? []
  if (type === '') return query.trim() === '' ? 2 : condition(query, featureHolds)
  const holds = /^(?:screen|all)$/.test(type) ? (rest.trim() === '' ? 2 : condition(rest, featureHolds)) : 0
  return isNot === undefined ? holds : ((2 - holds) as Match)
}

/** How deep conditions may nest. */
const deepestCondition = 20

/** Whether a condition of parts in parentheses with `and`, `or` and `not` holds. */
function condition(text: string, leaf: (text: string) => Match, depth = 0): Match {
  let found: Match | undefined
  let [isOr, isNot] = [false, false]
  for (const word of wordsIn(text.trim().toLowerCase())) {
    if (word === 'and' || word === 'or') isOr = word === 'or'
    else if (word === 'not') isNot = true
    else {
      const inner = word.startsWith('(') && word.endsWith(')') ? word.slice(1, -1).trim() : undefined
      const isNested = inner?.startsWith('(') === true || inner?.startsWith('not ') === true
      const one = inner === undefined || depth > deepestCondition ? 1 : isNested ? condition(inner, leaf, depth + 1) : leaf(inner)
      const own = isNot ? ((2 - one) as Match) : one
      found = found === undefined ? own : ((isOr ? Math.max(found, own) : Math.min(found, own)) as Match)
      isNot = false
    }
  }
  return found ?? 1
}

const screen: Readonly<Record<string, number>> = { width: 1000, height: 800, resolution: 1, 'device-pixel-ratio': 1 }

/** What holds on a usual screen of the features that only have words. */
const features = new Map<string, Match>([
  ['prefers-color-scheme:light', 2],
  ['prefers-color-scheme:dark', 0],
  ['prefers-reduced-motion:no-preference', 2],
  ['prefers-reduced-motion:reduce', 0],
  ['orientation:landscape', 2],
  ['orientation:portrait', 0],
  ['color', 2],
])

function featureHolds(text: string): Match {
  const plain = text.replace(/\s{0,9}([:<>=]{1,2})\s{0,9}/g, '$1')
  const known = features.get(plain)
  if (known !== undefined) return known
  const [, low, below = '', name = '', above = '', high] =
    /^(?:([^<>=:]+)([<>]=?|=))?([a-z-]+)(?:([<>]=?|=|:)([^<>=:]+))?$/.exec(plain) ?? []
  const [, limit = '', feature = ''] = /^(?:-webkit-)?(min-|max-)?(?:device-(?!pixel))?([a-z-]+)$/.exec(name) ?? []
  const size = screen[feature]
  if (size === undefined) return 1
  const holds = [
    low === undefined ? undefined : compared(sizeOf(low), below, size),
    high === undefined ? undefined : compared(size, limit === 'min-' ? '>=' : limit === 'max-' ? '<=' : above, sizeOf(high)),
  ].filter((one) => one !== undefined)
  return holds.length === 0 ? 1 : (Math.min(...holds) as Match)
}

function sizeOf(text: string): number {
  const [, number, unit] = /^([\d.]{1,20})(dppx|x|dpi|dpcm)$/.exec(text.trim()) ?? []
  return number === undefined ? measureOf(text) : Number(number) / (unit === 'dpi' ? 96 : unit === 'dpcm' ? 37.8 : 1)
}

function compared(one: number, operator: string, other: number): Match {
  if (Number.isNaN(one) || Number.isNaN(other)) return 1
  const isEqual = one === other && operator !== '<' && operator !== '>'
  return isEqual || (operator.startsWith('<') && one < other) || (operator.startsWith('>') && one > other) ? 2 : 0
}
