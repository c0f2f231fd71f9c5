import { type Appearance, appearanceIn, type Hiding, hidingOf, plainAppearance } from './appearance.ts'
import { htmlLimit } from '../markdown.ts'
import { colorOfAttribute } from './colors.ts'
import {
  type Declarations,
  declarationsIn,
  type ReadonlyDeclarations,
  type Styles,
  stylesOf,
  type Variables,
} from './declarations.ts'
import type { Place } from './selectors.ts'
import { StyleSheet } from './style-sheet.ts'

/** Where a text is that a person who looks at the message does not see. */
type UnseenPlace = Exclude<Hiding, 'code'> | 'comment' | 'attribute'

/** What a person sees of HTML, and what not. */
export interface SeenText {
  /** What is seen, with a space in place of each tag that separates words; at most so much as is converted to Markdown. */
  text: string
  /** True if more is seen than `text` has. */
  isCut: boolean
  /** What is not seen, by its place; the start of each. */
  unseen: ReadonlyMap<UnseenPlace, string>
  /** The HTML without the text that is not seen. */
  html: string
}

/** Characters of seen text, and of the unseen text of one place. */
const maxSeen = 1024 * 1024
const maxUnseen = 16 * 1024

/** Styles of elements that are kept, as elements often have the same, and how long they may be for that. */
const maxStyles = 1000
const longestStyles = 2000

/** Declarations that are merged for the elements of a message; where there are more, what comes after counts as hidden. */
const maxMerged = 500_000

/** The attributes of an element that say how it looks. */
export interface LookAttributes {
  style: string
  class: string
  id: string
  color: string
  bgcolor: string
  background: string
  /** Those that a rule asks for. */
  others: Readonly<Record<string, string>>
}

/** How an element looks, and what its styles say; null for nothing. */
export interface ElementLook {
  appearance: Appearance
  styles: Styles | null
}

/** Collects what is seen of HTML and what not, while its tokens are read. */
export class SeenTextCollector {
  readonly #html: string
  readonly #others: ReadonlySet<string>
  readonly #sheet: StyleSheet
  readonly #styles = new Map<string, Styles[]>()
  /** The same in elements that have variables. */
  readonly #stylesWithin = new WeakMap<Variables, Map<string, Styles[]>>()
  #body: Appearance | undefined
  #merged = 0
  readonly #seen: string[] = []
  #seenLength = 0
  #isCut = false
  readonly #unseen = new Map<UnseenPlace, string>()
  /** The HTML that is kept, up to `#kept`. */
  readonly #pieces: string[] = []
  #kept = 0
  /** Characters of text that is not seen. */
  #removed = 0

  /** `others` are properties that are read too, though they hide nothing. */
  constructor(html: string, others: ReadonlySet<string> = new Set()) {
    this.#html = html
    this.#others = others
    this.#sheet = new StyleSheet(html, others)
  }

  /** True for an attribute that a rule asks for. */
  asksFor(attribute: string): boolean {
    return this.#sheet.attributes.has(attribute)
  }

  /** The look of an element in another; `hiding` is for one that is hidden by what it is. */
  look(around: Appearance, tag: string, look: LookAttributes, hiding?: Hiding): ElementLook {
    if (hiding !== undefined) return { appearance: { ...around, hidden: around.hidden ?? hiding }, styles: null }
    return this.#look(/^(?:html|head|body)$/.test(tag) ? around : this.within(around), tag, look)
  }

  /** The appearance of what is in it: outside of any element that is a body, also where the HTML has none. */
  within(around: Appearance): Appearance {
    if (around !== plainAppearance || this.#sheet.isEmpty) return around
    if (this.#body === undefined) {
      const html = this.#look(around, 'html', noLook).appearance
      this.#look(html, 'head', noLook)
      this.#body = this.#look(html, 'body', noLook).appearance
    }
    return this.#body
  }

  #look(outside: Appearance, tag: string, look: LookAttributes): ElementLook {
    const { style, class: classes, id, color, bgcolor, background } = look
    const isPlain = style === '' && color === '' && bgcolor === '' && background === ''
    if (outside.hidden !== null || (isPlain && this.#sheet.isEmpty)) return { appearance: outside, styles: null }
    const key = JSON.stringify([tag, style, classes, this.#sheet.hasId(id) ? id : '', color, bgcolor, background])
    const place = this.#sheet.isSimple ? null : placeIn(outside.place, tag, look)
    const around = place === outside.place ? outside : { ...outside, place }
    const cache = this.#cacheIn(outside.variables)
    const known = place === null ? cache.get(key) : undefined
    if (known !== undefined) return lookIn(around, tag, known)
    const matched = this.#sheet.rulesFor(place ?? placeIn(null, tag, look))
    if (matched === null) return { appearance: { ...around, hidden: 'display' }, styles: null }
    const whole = `${key} ${matched.key}`
    let styles = place === null ? undefined : cache.get(whole)
    if (styles === undefined) {
      const own = declarationsIn(style, this.#others)
      const attributes = attributeDeclarations(look)
      styles = []
      for (const rules of [...matched.perhaps, matched.sure]) {
        const layers = [attributes, ...rules, own]
        const found = this.#merge(layers, outside.variables)
        const animated = this.#sheet
          .framesOf(found ?? new Map())
          .map((frames) => this.#merge([...layers, ...frames], outside.variables))
        for (const one of [found, ...animated]) {
          if (one === undefined) return { appearance: { ...around, hidden: 'display' }, styles: null }
          styles.push(one)
        }
      }
      const kept = place === null ? key : whole
      if (cache.size < maxStyles && kept.length < longestStyles) cache.set(kept, styles)
    }
    return lookIn(around, tag, styles)
  }

  #cacheIn(variables: Variables | null): Map<string, Styles[]> {
    if (variables === null) return this.#styles
    const known = this.#stylesWithin.get(variables) ?? new Map<string, Styles[]>()
    this.#stylesWithin.set(variables, known)
    return known
  }

  /** The styles of these layers; undefined once too much was merged. */
  #merge(layers: readonly ReadonlyDeclarations[], variables: Variables | null): Styles | undefined {
    this.#merged += layers.reduce((sum, { size }) => sum + size, layers.length)
    return this.#merged > maxMerged ? undefined : stylesOf(layers, variables, this.#sheet.variables)
  }

  /** Text at a place of the HTML, in an element of this appearance. */
  text(start: number, end: number, text: string, appearance: Appearance): void {
    const hiding = hidingOf(this.within(appearance))
    if (hiding === null) {
      // what is further is in no Markdown, and is not displayed
      if (start - this.#removed < htmlLimit) this.separate(text)
      else this.#isCut ||= text.trim() !== ''
      return
    }
    this.#removed += end - start
    this.#pieces.push(this.#html.slice(this.#kept, start))
    this.#kept = end
    if (hiding !== 'code') this.unseen(hiding, text)
  }

  /** Adds text that is seen, or the space between words. */
  separate(text: string): void {
    if (this.#seenLength >= maxSeen) {
      this.#isCut ||= text.trim() !== ''
      return
    }
    this.#seenLength += text.length
    this.#seen.push(text)
  }

  /** Adds text that is not seen. */
  unseen(place: UnseenPlace, text: string): void {
    const before = this.#unseen.get(place) ?? ''
    if (before.length < maxUnseen) this.#unseen.set(place, before + text.slice(0, maxUnseen))
  }

  result(): SeenText {
    const html = this.#kept === 0 ? this.#html : this.#pieces.join('') + this.#html.slice(this.#kept)
    return { text: this.#seen.join(''), isCut: this.#isCut, unseen: this.#unseen, html }
  }
}

/** The appearance with one of the styles that hold perhaps: where one hides the element, that. */
function lookIn(around: Appearance, tag: string, all: readonly Styles[]): ElementLook {
  let first: ElementLook | undefined
  for (const styles of all) {
    const found = { appearance: styles.size === 0 ? around : appearanceIn(around, tag, styles), styles }
    if (hidingOf(found.appearance) !== null) return found
    first ??= found
  }
  return first ?? { appearance: around, styles: null }
}

/** Of an element without attributes. */
export const noLook: LookAttributes = { style: '', class: '', id: '', color: '', bgcolor: '', background: '', others: {} }

function placeIn(parent: Place | null, tag: string, { class: classes, id, others, ...rest }: LookAttributes): Place {
  const names = classes === '' ? [] : classes.trim().split(/\s+/)
  const previous = parent?.last ?? null
  const place: Place = {
    tag,
    marks: new Set([...names.map((name) => `.${name}`), ...(id === '' ? [] : [`#${id}`])]),
    index: (previous?.index ?? 0) + 1,
    attributes: Object.assign(
      Object.fromEntries(Object.entries({ ...rest, class: classes, id }).filter(([, value]) => value !== '')),
      others,
    ),
    parent,
    previous,
    last: null,
  }
  if (parent !== null) parent.last = place
  return place
}

/** What attributes of HTML 4 declare. */
function attributeDeclarations({ color, bgcolor, background }: LookAttributes): Declarations {
  const declared = { color, 'background-color': bgcolor, 'background-image': background === '' ? '' : 'url(x)' }
  return new Map(
    Object.entries(declared)
      .filter(([, value]) => value !== '')
      .map(([property, value]) => [
        property,
        { value: colorOfAttribute(value.slice(0, 100).trim().toLowerCase()), important: false },
      ]),
  )
}
