import { addDeclarations, type Declarations, readDeclarations, type Styles, undecidable } from './declarations.ts'
import { matchOf, type Place, type Selector, selectorsIn, type Walk } from './selectors.ts'
import { rulesOf } from './style-rules.ts'

/** Selectors and variables that are kept. */
const maxRules = 10_000
const maxVariables = 5000
const maxFrames = 1000

/** Steps of all matches of a message; what comes after them counts as hidden. */
const maxSteps = 1_000_000

interface Rule {
  selector: Selector
  declarations: Declarations
  layer: number
  order: number
  isSure: boolean
}

/** The rules that hold for an element, the weakest first. */
interface Matched {
  /** Names the rules. */
  key: string
  sure: Declarations[]
  /** With those that perhaps hold: all, and each of the first. */
  perhaps: Declarations[][]
}

const none: Matched = { key: '', sure: [], perhaps: [] }

/** Rules that perhaps hold and are looked at each by itself. */
const maxPerhaps = 8

/** The rules of the style sheets of HTML, as far as they hold on a usual screen. What cannot be told of an element while it is read holds perhaps. */
export class StyleSheet {
  /** The variables that are declared for the whole document. */
  readonly variables: Declarations = new Map()
  /** The names of attributes that rules ask for. */
  readonly attributes = new Set<string>()
  /** By what the last compound of the selector asks for: an id, a class, or an element; none is the empty word. */
  readonly #rules = new Map<string, Rule[]>()
  /** The first and the last frames of animations, by name and place. */
  readonly #frames = new Map<string, Declarations>()
  readonly #walk: Walk = { steps: 0 }
  #count = 0
  #isSimple = true

  constructor(html: string, others: ReadonlySet<string>) {
    for (const rule of rulesOf(html)) {
      if (rule === null) {
        this.#end()
        continue
      }
      const { selectors, style, layer, isSure } = rule
      const declarations = readDeclarations(style, others)
      // only a browser knows its first value, and whether elements inherit it
      if (selectors.startsWith('@property --')) {
        this.#addVariables(new Map([[selectors.slice(10), { value: undecidable, important: false }]]))
        continue
      }
      if (selectors.startsWith('@')) {
        const [name, ...places] = selectors.split(' ')
        if (this.#frames.size >= maxFrames) this.#end()
        else for (const place of places) this.#frames.set(`${name} ${place}`, declarations)
        continue
      }
      if (layer !== Infinity) for (const [property, declared] of declarations) declarations.set(property, { ...declared, layer })
      if (isSure && selectors.split(',', 20).some((one) => /^\s*(?::root|html|\*)\s*$/i.test(one)))
        this.#addVariables(declarations)
      for (const selector of selectorsIn(selectors) ?? []) this.#add(selector, declarations, layer, isSure)
    }
    // the same rule is read once for each element: of those that say the same of it, the last holds
    for (const [key, rules] of this.#rules) this.#rules.set(key, joined(rules))
  }

  /** Adds the variables of the whole document. */
  #addVariables(declarations: Declarations): void {
    for (const [property, declared] of declarations) {
      if (!property.startsWith('--')) continue
      if (this.variables.size >= maxVariables) this.#end()
      else if (this.variables.get(property)?.value !== undecidable) this.variables.set(property, declared)
    }
  }

  /** From now on all counts as hidden: there is more than is kept. */
  #end(): void {
    this.#walk.steps = Infinity
  }

  /** What animations say of an element that hardly begins them, and of one that has ended them; only where they say something. */
  framesOf(styles: Styles): Declarations[][] {
    const animation = ['animation', 'animation-name', 'animation-fill-mode', 'animation-duration']
      .map((name) => styles.get(name) ?? '')
      .join(' ')
    if (this.#frames.size === 0 || animation.trim() === '') return []
    const ends = /\b(?:forwards|both|infinite)\b/.test(animation)
    const isLong = /(?:^|\s)(?:\d{2,9}(?:\.\d{1,9})?s|\d{5,9}ms)\b/.test(animation)
    const names = animation.split(/[\s,]+/)
    const framesAt = (place: string): Declarations[] => names.flatMap((name) => this.#frames.get(`@${name} ${place}`) ?? [])
    return [isLong ? framesAt('from') : [], ends ? framesAt('to') : []].filter((frames) => frames.length > 0)
  }

  /** True where there is no rule. */
  get isEmpty(): boolean {
    return this.#rules.size === 0 && this.#walk.steps === 0
  }

  /** True where no rule asks for more than an element by itself. */
  get isSimple(): boolean {
    return this.#isSimple
  }

  /** True if a rule is for this id. */
  hasId(id: string): boolean {
    return this.#rules.has(`#${id}`)
  }

  /** Null once the rules of the message have taken too many steps. */
  rulesFor(place: Place): Matched | null {
    if (this.isEmpty) return none
    if (this.#walk.steps > maxSteps) return null
    const sure: Rule[] = []
    const perhaps: Rule[] = []
    for (const key of ['', place.tag, ...place.marks]) {
      for (const rule of this.#rules.get(key) ?? []) {
        const found = matchOf(rule.selector, place, this.#walk)
        if (found === 2 && rule.isSure) sure.push(rule)
        else if (found > 0) perhaps.push(rule)
      }
    }
    return {
      key: `${sure.map(({ order }) => order).join()} ${perhaps.map(({ order }) => order).join()}`,
      sure: inOrder(sure),
      perhaps: [...(perhaps.length > 1 ? perhaps.slice(0, maxPerhaps).map((one) => [one]) : []), perhaps]
        .filter((some) => some.length > 0)
        .map((some) => inOrder([...sure, ...some])),
    }
  }

  #add(selector: Selector, declarations: Declarations, layer: number, isSure: boolean): void {
    if (++this.#count > maxRules) {
      this.#end()
      return
    }
    for (const name of selector.attributes) this.attributes.add(name)
    if (!selector.isSimple) this.#isSimple = false
    const { marks, tag } = selector.compounds.at(-1)!
    const key = marks.find((mark) => mark.startsWith('#')) ?? marks[0] ?? tag
    const others = this.#rules.get(key)
    const rule = { selector, declarations, layer, order: this.#count, isSure }
    if (others === undefined) this.#rules.set(key, [rule])
    else others.push(rule)
  }
}

function inOrder(rules: Rule[]): Declarations[] {
  return rules
    .toSorted(
      (one, other) =>
        (one.layer === other.layer ? 0 : one.layer - other.layer) ||
        one.selector.specificity - other.selector.specificity ||
        one.order - other.order,
    )
    .map(({ declarations }) => declarations)
}

/** Rules with the same simple selector as one, in the place of the last. */
function joined(rules: Rule[]): Rule[] {
  const found = new Map<string, Rule>()
  for (const rule of rules) {
    const { isSimple, compounds } = rule.selector
    const { tag, marks } = compounds.at(-1)!
    const key = isSimple ? `${tag}${marks.join('')} ${rule.layer} ${rule.isSure}` : `${rule.order}`
    const before = found.get(key)
    if (before === undefined || rule.order !== before.order + 1) {
      found.set(key, isSimple ? { ...rule, declarations: new Map(rule.declarations) } : rule)
      continue
    }
    addDeclarations(before.declarations, rule.declarations)
    found.delete(key)
    found.set(key, { ...before, order: rule.order })
  }
  return [...found.values()]
}
