import { withoutEscapes, withoutStrings } from '../markup.ts'
import { addDeclarations, type Declarations, declarationsIn } from './appearance.ts'

/** Characters of style sheets that are read, and rules that are kept. */
const maxLength = 128 * 1024
const maxRules = 2000

/** A rule for elements of several classes or ids. */
interface Compound {
  tag: string
  marks: string[]
  declarations: Declarations
}

/** Variables that are kept. */
const maxVariables = 5000

/** Rules for several classes that are kept for each of them. */
const maxCompounds = 8

/**
 * The rules of the style sheets of HTML that a selector of one element decides: for a tag, classes or an id, and those for what is inside of others by the
 * innermost. Rules that hold for some screens or programs only are left out, as what they hide is seen elsewhere.
 */
export class StyleSheet {
  /** The variables that are declared anywhere. */
  readonly variables: Declarations = new Map()
  readonly #rules = new Map<string, Declarations>()
  readonly #compounds = new Map<string, Compound[]>()
  readonly #ids = new Set<string>()
  #count = 0

  constructor(html: string) {
    for (const css of styleElements(html)) {
      for (const { selectors, style } of rulesIn(css)) {
        const declarations = declarationsIn(style)
        this.addVariables(declarations, /(?::root|html|body|\*)\s*$/i.test(selectors.slice(-20)))
        for (const selector of selectors.split(',')) this.#add(selector, declarations)
      }
    }
  }

  /** Adds the variables of a rule or an element: those of a rule for the whole document hold before others. */
  addVariables(declarations: Declarations, isWhole: boolean): void {
    for (const [property, declared] of declarations) {
      if (!property.startsWith('--') || this.variables.size >= maxVariables) continue
      if (isWhole || !this.variables.has(property)) this.variables.set(property, declared)
    }
  }

  /** True where there is no rule. */
  get isEmpty(): boolean {
    return this.#rules.size === 0 && this.#compounds.size === 0
  }

  /** True if a rule is for this id. */
  hasId(id: string): boolean {
    return this.#ids.has(id)
  }

  /** The styles that hold for an element, the weakest first. */
  rulesFor(tag: string, classes: string, id: string): Declarations[] {
    const names = classes === '' ? [] : classes.slice(0, 1000).trim().split(/\s+/, 20)
    const marks = [...names.map((name) => `.${name}`), ...(this.#ids.has(id) ? [`#${id}`] : [])]
    const simple = [tag, ...marks, ...marks.map((mark) => `${tag}${mark}`)].flatMap((key) => this.#rules.get(key) ?? [])
    if (this.#compounds.size === 0) return simple
    const has = new Set(marks)
    const several = marks
      .flatMap((mark) => this.#compounds.get(mark) ?? [])
      .filter((one) => (one.tag === '' || one.tag === tag) && one.marks.every((mark) => has.has(mark)))
    return [...simple, ...several.map(({ declarations }) => declarations)]
  }

  #add(selector: string, declarations: Declarations): void {
    const found = innermostOf(selector)
    if (found === undefined || ++this.#count > maxRules) return
    const { tag, marks } = found
    for (const mark of marks) if (mark.startsWith('#')) this.#ids.add(mark.slice(1))
    const [first = '', second] = marks
    if (second === undefined) {
      const known = this.#rules.get(`${tag}${first}`) ?? new Map()
      addDeclarations(known, declarations)
      this.#rules.set(`${tag}${first}`, known)
      return
    }
    const others = this.#compounds.get(first) ?? []
    if (others.length < maxCompounds) this.#compounds.set(first, [...others, { tag, marks, declarations }])
  }
}

/** The contents of the style elements, but those in comments. */
function* styleElements(html: string): Generator<string> {
  const marks = /<!--|<style\b/gi
  let left = maxLength
  for (let found = marks.exec(html); found && left > 0; found = marks.exec(html)) {
    if (found[0] === '<!--') {
      const end = html.indexOf('-->', marks.lastIndex)
      if (end === -1) return
      marks.lastIndex = end + 3
      continue
    }
    const start = html.indexOf('>', marks.lastIndex)
    if (start === -1) return
    const close = /<\/style/gi
    close.lastIndex = start
    const end = close.exec(html)?.index ?? html.length
    const css = html.slice(start + 1, Math.min(end, start + 1 + left))
    left -= css.length
    marks.lastIndex = end
    yield css
  }
}

/** The beginnings of blocks whose rules hold everywhere: for all screens, or in a layer. */
const forAll = /^@(?:media\s{1,9}(?:only\s{1,9})?(?:screen|all)|layer\b[^{;]{0,60})\s{0,9}$/i

/** The rules outside of blocks, and those in blocks for all screens. */
function* rulesIn(css: string): Generator<{ selectors: string; style: string }> {
  const text = withoutStrings(css)
  let at = 0
  while (at < text.length) {
    const brace = text.indexOf('{', at)
    if (brace === -1) return
    const before = text.slice(at, brace)
    const selectors = before.slice(Math.max(before.lastIndexOf('}'), before.lastIndexOf(';')) + 1).trim()
    if (forAll.test(selectors.slice(-120))) {
      at = brace + 1
    } else if (selectors.includes('@')) {
      at = blockEnd(text, brace)
    } else {
      const end = text.indexOf('}', brace)
      if (end === -1) return
      yield { selectors, style: text.slice(brace + 1, end) }
      at = end + 1
    }
  }
}

function blockEnd(text: string, brace: number): number {
  const braces = /[{}]/g
  braces.lastIndex = brace
  let depth = 0
  for (let found = braces.exec(text); found; found = braces.exec(text)) {
    depth += found[0] === '{' ? 1 : -1
    if (depth === 0) return braces.lastIndex
  }
  return text.length
}

/** The innermost part of a selector; undefined for one that needs more than that to be decided, such as `u + .body .hide`. */
function innermostOf(selector: string): { tag: string; marks: string[] } | undefined {
  const text = withoutEscapes(
    selector
      .trim()
      .slice(0, 200)
      .replace(/:(?:is|where)\(([^():]{1,60})\)/gi, '$1'),
  )
  if (/[+~[\]:*]/.test(text)) return undefined
  const parts = text.split(/[\s>]{1,9}/)
  const last = parts.at(-1) ?? ''
  const [, tag = '', marks = ''] = /^([a-z\d]{0,20})((?:[.#][\w-]{1,60}){0,4})$/i.exec(last) ?? []
  // `div p` says too little of a `p`
  if (marks === '' && parts.length > 1) return undefined
  if (tag === '' && marks === '') return undefined
  return { tag: tag.toLowerCase(), marks: marks.match(/[.#][\w-]{1,60}/g) ?? [] }
}
