import { withoutEscapes } from '../markup.ts'
import { closing } from './lengths.ts'

/** An element with those around it, as far as selectors ask. */
export interface Place {
  tag: string
  /** Classes with a point and the id with a hash. */
  marks: ReadonlySet<string>
  /** Which child it is, from 1. */
  index: number
  attributes: Readonly<Record<string, string>>
  parent: Place | null
  /** The sibling before it. */
  previous: Place | null
  /** The child that was opened last. */
  last: Place | null
}

/** Whether a selector matches: not, perhaps, surely. */
export type Match = 0 | 1 | 2

type Check = (place: Place, walk: Walk) => Match

/** Counts steps, so that a hostile selector ends. */
export interface Walk {
  steps: number
}

interface Compound {
  tag: string
  marks: string[]
  checks: Check[]
  /** How it follows the one before it. */
  combinator: string
}

/** A selector for one element; undefined of what is not one. */
export interface Selector {
  compounds: Compound[]
  /** Ids, classes and elements as one number (Selectors 4, 17). */
  specificity: number
  /** True where the element alone, by its name, classes and id, says whether it matches. */
  isSimple: boolean
  /** The attributes that it asks for. */
  attributes: string[]
}

const never =
  /^(?:empty|hover|active|focus|focus-visible|focus-within|visited|target|checked|disabled|fullscreen|-moz-.*|-ms-.*|-webkit-.*)$/
const always = /^(?:defined|read-only)$/

const deepest = 3
const maxCompounds = 40
const longest = 2000

/** Steps of one match; after them it is perhaps one. */
const maxSteps = 400

/** Reads the selectors of a rule; undefined where one is not valid, as the rule is ignored then. */
export function selectorsIn(text: string): Selector[] | undefined {
  const found = listedIn(text).map((one) => selectorOf(one.trim(), 0))
  return found.every((one) => one !== undefined) ? found : undefined
}

/** What is between the commas of a text that are not in parentheses or brackets. */
function listedIn(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]!
    if (character === '\\') at += 1
    else if (character === '(' || character === '[') depth += 1
    else if (character === ')' || character === ']') depth -= 1
    else if (character === ',' && depth === 0) {
      parts.push(text.slice(start, at))
      start = at + 1
    }
  }
  return [...parts, text.slice(start)]
}

const pieces =
  /(?<combinator>\s{0,20}[>+~]\s{0,20}|\s{1,20})|(?<mark>[.#](?:[\w-]|[^\0-\x7f]|\\.[\da-f]{0,5}\s?){1,2000})|\[\s{0,9}(?<attribute>[\w-]{1,2000})\s{0,9}(?:(?<operator>[~^$*|]?=)\s{0,9}(?<value>[^\]]{0,2000}))?\]|::?(?<pseudo>[a-z-]{1,40})(?<open>\()?|(?<tag>\*|[a-z](?:[\w-]|\\.){0,2000})|(?<other>[\s\S])/giy

/** Perhaps for any element: too much of a selector to read. */
const undecided: Selector = {
  compounds: [{ tag: '', marks: [], checks: [() => 1], combinator: '' }],
  specificity: 0,
  isSimple: false,
  attributes: [],
}

function selectorOf(text: string, depth: number): Selector | undefined {
  if (text === '') return undefined
  if (text.length > longest) return undecided
  const selector: Selector = { compounds: [], specificity: 0, isSimple: true, attributes: [] }
  let compound: Compound = { tag: '', marks: [], checks: [], combinator: '' }
  let isEmpty = true
  pieces.lastIndex = 0
  for (let at = 0; at < text.length; at = pieces.lastIndex) {
    pieces.lastIndex = at
    const piece = pieces.exec(text)
    const { combinator, mark, attribute, operator, value, pseudo, open, tag } = piece?.groups ?? {}
    if (combinator !== undefined) {
      if (isEmpty) return undefined
      if (selector.compounds.length >= maxCompounds) return undecided
      selector.compounds.push(compound)
      compound = { tag: '', marks: [], checks: [], combinator: combinator.trim() || ' ' }
      isEmpty = true
      continue
    }
    if (tag !== undefined && !isEmpty) return undefined
    isEmpty = false
    if (tag !== undefined) {
      compound.tag = tag === '*' ? '' : withoutEscapes(tag).toLowerCase()
      selector.specificity += tag === '*' ? 0 : 1
    } else if (mark !== undefined) {
      compound.marks.push(withoutEscapes(mark))
      selector.specificity += mark.startsWith('#') ? 1_000_000 : 1000
    } else if (attribute !== undefined) {
      selector.attributes.push(attribute.toLowerCase())
      compound.checks.push(attributeCheck(attribute.toLowerCase(), operator, value))
      selector.specificity += 1000
    } else if (pseudo !== undefined) {
      const end = open === undefined ? pieces.lastIndex : Math.min(closing(text, pieces.lastIndex) + 1, text.length)
      const given = open === undefined ? '' : text.slice(pieces.lastIndex, end - 1)
      const isElement = piece![0].startsWith('::') || /^(?:before|after|first-line|first-letter)$/i.test(pseudo)
      const check = isElement
        ? () => (pseudo.toLowerCase() === 'first-line' ? 1 : 0)
        : pseudoCheck(selector, pseudo.toLowerCase(), given, depth)
      if (check === undefined) return undefined
      compound.checks.push(check)
      pieces.lastIndex = end
    } else return undefined
  }
  if (isEmpty) return undefined
  selector.compounds.push(compound)
  selector.isSimple = selector.compounds.length === 1 && compound.checks.length === 0
  return selector
}

/** What a pseudo-class asks; its specificity is added to the selector. */
function pseudoCheck(selector: Selector, name: string, given: string, depth: number): Check | undefined {
  if (/^(?:is|where|not|matches|-webkit-any)$/.test(name)) {
    if (depth >= deepest) return () => 1
    const list = listedIn(given).map((one) => selectorOf(one.trim(), depth + 1))
    if (name === 'not' && list.includes(undefined)) return undefined
    const known = list.filter((one) => one !== undefined)
    if (name !== 'where') selector.specificity += Math.max(0, ...known.map(({ specificity }) => specificity))
    selector.attributes.push(...known.flatMap(({ attributes }) => attributes))
    return (place, walk) => {
      const found = known.reduce<Match>((best, one) => Math.max(best, matchOf(one, place, walk)) as Match, 0)
      return name === 'not' ? ((2 - found) as Match) : found
    }
  }
  selector.specificity += 1000
  if (name === 'link' || name === 'any-link') return ({ tag }) => (tag === 'a' ? 1 : 0)
  if (name === 'root' || name === 'scope')
    return ({ parent, tag }) => (tag === 'html' && (parent === null || parent.parent?.parent === null) ? 2 : 0)
  if (name === 'first-child') return ({ index }) => (index === 1 ? 2 : 0)
  if (name === 'nth-child') return nthCheck(given)
  if (never.test(name)) return () => 0
  if (always.test(name)) return () => 2
  // of the others only a browser can tell, also which there are
  return () => 1
}

function nthCheck(given: string): Check | undefined {
  const text = given
    .trim()
    .toLowerCase()
    .replace(/^even$/, '2n')
    .replace(/^odd$/, '2n+1')
  const parts = /^(?:([+-]?\d{0,6})n)?\s{0,9}([+-]?\s{0,9}\d{1,6})?$/.exec(text)
  if (!parts || text === '') return () => 1
  const step = parts[1] === undefined ? 0 : /\d/.test(parts[1]) ? Number(parts[1]) : Number(`${parts[1]}1`)
  const start = Number((parts[2] ?? '0').replace(/\s/g, ''))
  return ({ index }) => {
    const past = index - start
    return (step === 0 ? past === 0 : past % step === 0 && past / step >= 0) ? 2 : 0
  }
}

/** The strings of a style sheet are left out before: such a value may be any. Whether the case counts depends on the attribute. */
function attributeCheck(name: string, operator: string | undefined, value = ''): Check {
  const wanted = value.trim().replace(/\s[is]$/i, '')
  const isUnknown = wanted === '' || wanted.includes('"')
  return ({ attributes }) => {
    const has = Object.hasOwn(attributes, name) ? attributes[name]! : undefined
    if (has === undefined) return 0
    if (operator === undefined) return 2
    if (isUnknown) return 1
    if (isSame(has, operator, wanted)) return 2
    return isSame(has.toLowerCase(), operator, wanted.toLowerCase()) ? 1 : 0
  }
}

function isSame(has: string, operator: string, wanted: string): boolean {
  switch (operator) {
    case '=':
      return has === wanted
    case '~=':
      return has.split(/\s+/).includes(wanted)
    case '^=':
      return has.startsWith(wanted)
    case '$=':
      return has.endsWith(wanted)
    case '*=':
      return has.includes(wanted)
    default:
      return has === wanted || has.startsWith(`${wanted}-`)
  }
}

/** Whether a selector matches an element. */
export function matchOf({ compounds }: Selector, place: Place, walk: Walk): Match {
  return matchFrom(compounds, compounds.length - 1, place, walk, { steps: 0 })
}

function matchFrom(compounds: readonly Compound[], at: number, place: Place, walk: Walk, own: Walk): Match {
  walk.steps += 1
  if (++own.steps > maxSteps) return 1
  const compound = compounds[at]!
  const { tag, marks, checks, combinator } = compound
  if ((tag !== '' && tag !== place.tag) || !marks.every((mark) => place.marks.has(mark))) return 0
  let found: Match = 2
  for (const check of checks) {
    found = Math.min(found, check(place, walk)) as Match
    if (found === 0) return 0
  }
  if (at === 0) return found
  const isSibling = combinator === '+' || combinator === '~'
  const isOne = combinator === '+' || combinator === '>'
  let best: Match = 0
  let other = isSibling ? place.previous : place.parent
  while (other !== null && best < 2) {
    best = Math.max(best, matchFrom(compounds, at - 1, other, walk, own)) as Match
    if (isOne || own.steps > maxSteps) break
    other = isSibling ? other.previous : other.parent
  }
  return Math.min(found, best) as Match
}
