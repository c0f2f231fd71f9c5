import {
  type Appearance,
  appearanceIn,
  type Declarations,
  declarationsIn,
  type Hiding,
  hidingOf,
  type Styles,
  stylesOf,
} from './appearance.ts'
import { StyleSheet } from './style-sheet.ts'

/** Where a text is that a person who looks at the message does not see. */
export type UnseenPlace = Exclude<Hiding, 'code'> | 'comment' | 'attribute'

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
}

/** Collects what is seen of HTML and what not, while its tokens are read. */
export class SeenTextCollector {
  readonly #html: string
  readonly #sheet: StyleSheet
  readonly #styles = new Map<string, Styles>()
  #merged = 0
  readonly #seen: string[] = []
  #seenLength = 0
  #isCut = false
  readonly #unseen = new Map<UnseenPlace, string>()
  /** The HTML that is kept, up to `#kept`. */
  readonly #pieces: string[] = []
  #kept = 0

  constructor(html: string) {
    this.#html = html
    this.#sheet = new StyleSheet(html)
  }

  /** The appearance of an element in another. */
  appearance(outside: Appearance, tag: string, look: LookAttributes): Appearance {
    const { style, class: classes, id, color, bgcolor, background } = look
    const isPlain = style === '' && color === '' && bgcolor === '' && background === ''
    if (outside.hidden !== null || (isPlain && this.#sheet.isEmpty)) return outside
    const key = JSON.stringify([tag, style, classes, this.#sheet.hasId(id) ? id : '', color, bgcolor, background])
    let styles = this.#styles.get(key)
    if (styles === undefined) {
      const rules = this.#sheet.rulesFor(tag, classes, id)
      const own = declarationsIn(style)
      // those inside inherit them
      this.#sheet.addVariables(own, false)
      const layers = [attributeDeclarations(look), ...rules, own]
      this.#merged += layers.reduce((sum, { size }) => sum + size, layers.length)
      if (this.#merged > maxMerged) return { ...outside, hidden: 'display' }
      styles = stylesOf(layers, this.#sheet.variables)
      if (this.#styles.size < maxStyles && key.length < longestStyles) this.#styles.set(key, styles)
    }
    return styles.size === 0 ? outside : appearanceIn(outside, tag, styles)
  }

  /** Text at a place of the HTML, in an element of this appearance. */
  text(start: number, end: number, text: string, appearance: Appearance): void {
    const hiding = hidingOf(appearance)
    if (hiding === null) {
      this.separate(text)
      return
    }
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

/** What attributes of HTML 4 declare. */
function attributeDeclarations({ color, bgcolor, background }: LookAttributes): Declarations {
  const declared = { color, 'background-color': bgcolor, 'background-image': background === '' ? '' : 'url(x)' }
  return new Map(
    Object.entries(declared)
      .filter(([, value]) => value !== '')
      .map(([property, value]) => [property, { value: value.slice(0, 100).trim().toLowerCase(), important: false }]),
  )
}
