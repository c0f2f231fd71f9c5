import { type Declared, declarationsOf } from '../markup.ts'
import { type Color, colorOf } from './colors.ts'
import { functionsIn, measureOf, wordsIn } from './lengths.ts'
import { isClippedAway, isFar, isTransformedAway } from './transforms.ts'

/** How a text can be hidden from a person who looks at a message. */
export type Hiding =
  // of a style, a script or a title, which is no text of the message
  | 'code'
  // of an element that is not displayed
  | 'element'
  | 'hidden_attribute'
  | 'display'
  | 'visibility'
  | 'opacity'
  | 'size'
  | 'color'
  | 'position'
  | 'clip'
  | 'zero_box'

/** How the text of an element looks, as far as that decides whether it can be seen. */
export interface Appearance {
  /** Hidden with all that is inside. */
  hidden: Hiding | null
  isInvisible: boolean
  /** In pixels. */
  size: number
  /** Null where unknown. */
  color: Color | 'transparent' | null
  /** Null where unknown, as behind an image. */
  background: Color | null
}

const black: Color = [0, 0, 0]
const white: Color = [255, 255, 255]

/** The appearance of a text outside of any element. */
export const plainAppearance: Appearance = { hidden: null, isInvisible: false, size: 16, color: black, background: white }

/** Text of fewer pixels cannot be read. */
const leastSize = 4

/** Colours whose parts differ by no more look the same. */
const sameColor = 20

/** How a text of this appearance is hidden; null for one that is seen. */
export function hidingOf({ hidden, isInvisible, size, color, background }: Appearance): Hiding | null {
  if (hidden !== null) return hidden
  if (isInvisible) return 'visibility'
  if (size < leastSize) return 'size'
  if (color === 'transparent') return 'color'
  if (color === null || background === null) return null
  return color.every((part, index) => Math.abs(part - background[index]!) <= sameColor) ? 'color' : null
}

/** What the styles of an element say, as its properties with their values. */
export type Styles = ReadonlyMap<string, string>

/** Declarations by their properties, only of properties that decide whether a text can be seen, each with the start of its value. */
export type Declarations = Map<string, Declared>

const properties = new Set(
  (
    'display content-visibility opacity filter mask mask-image -webkit-mask -webkit-mask-image position left top right bottom inset text-indent margin ' +
    'margin-left margin-top margin-right zoom transform scale translate rotate clip clip-path overflow overflow-x overflow-y height max-height width ' +
    'max-width block-size inline-size max-block-size max-inline-size line-height letter-spacing visibility font-size font color -webkit-text-fill-color ' +
    'background background-image background-color'
  ).split(' '),
)

/** Characters of a value: the same rule may hold for very many elements, and each reads it again. */
const longestValue = 300

const everywhere = /^(?:inherit|initial|unset|revert|revert-layer)$/
const displays = new Set(
  (
    'none block inline inline-block flex inline-flex grid inline-grid table inline-table table-row table-cell table-row-group table-header-group ' +
    'table-footer-group table-column table-column-group table-caption list-item contents flow flow-root run-in ruby ruby-base ruby-text math'
  ).split(' '),
)
const fontSizes: Readonly<Record<string, number>> = {
  'xx-small': 9,
  'x-small': 10,
  small: 13,
  medium: 16,
  large: 18,
  'x-large': 24,
  'xx-large': 32,
  'xxx-large': 48,
  smaller: 13,
  larger: 19,
}

/** What programs that display mail take for a value; they ignore any other, so that the one before it holds. */
const valid: Readonly<Record<string, (value: string) => boolean>> = {
  display: (value) => value.startsWith('-webkit-') || value.split(/\s{1,9}/).every((word) => displays.has(word)),
  visibility: (value) => /^(?:visible|hidden|collapse)$/.test(value),
  'content-visibility': (value) => /^(?:visible|hidden|auto)$/.test(value),
  opacity: (value) => !Number.isNaN(measureOf(value, 1)),
  zoom: (value) => /^(?:normal|reset)$/.test(value) || measureOf(value, 1) >= 0,
  'font-size': (value) => value in fontSizes || measureOf(value, 16) >= 0,
  color: (value) => value === 'currentcolor' || colorOf(value) !== undefined,
  '-webkit-text-fill-color': (value) => value === 'currentcolor' || colorOf(value) !== undefined,
  'background-color': (value) => value === 'currentcolor' || colorOf(value) !== undefined,
  position: (value) => /^(?:static|relative|absolute|fixed|(?:-webkit-)?sticky)$/.test(value),
  overflow: (value) => /^(?:visible|hidden|clip|scroll|auto|overlay)(?:\s{1,9}(?:visible|hidden|clip|scroll|auto))?$/.test(value),
}

/** True for a declaration that a program which displays mail takes, of a property that decides whether a text can be seen, or of a variable. */
function isTaken(property: string, value: string): boolean {
  if (property.startsWith('--')) return true
  if (!properties.has(property)) return false
  return value.includes('var(') || everywhere.test(value) || (valid[property]?.(value) ?? value !== '')
}

export function declarationsIn(style: string): Declarations {
  return new Map(
    [...declarationsOf(style, isTaken)].map(([property, { value, important }]) => [
      property,
      { value: value.slice(0, longestValue), important },
    ]),
  )
}

/** Adds what is declared later with the same weight. */
export function addDeclarations(earlier: Declarations, later: Declarations): void {
  for (const [property, declared] of later) {
    if (declared.important || earlier.get(property)?.important !== true) earlier.set(property, declared)
  }
}

/** The styles of an element: of its attributes, its rules and its own style, the weakest first. */
export function stylesOf(layers: readonly Declarations[]): Styles {
  const all: Declarations = new Map()
  for (const layer of layers) addDeclarations(all, layer)
  const styles = new Map<string, string>()
  for (const [property, { value }] of all) {
    if (!property.startsWith('--')) styles.set(property, value.includes('var(') ? withVariables(value, all) : value)
  }
  return styles
}

/** A value that only a browser can work out, as that of a variable of an element around. */
const unclear = 'unclear'

/** The value with its variables. */
function withVariables(value: string, all: Declarations): string {
  let found = value
  for (let step = 0; step < 5 && found.includes('var('); step += 1) {
    const [, name = '', fallback] = /var\(\s{0,9}(--[^\s,()]{1,100})\s{0,9}(?:,([^()]{0,200}))?\)/.exec(found) ?? []
    const stands = all.get(name)?.value ?? fallback?.trim()
    if (stands === undefined || stands === '') return unclear
    found = found.replace(/var\([^()]{0,300}\)/, () => stands)
  }
  return found.includes('var(') ? unclear : found
}

/** The appearance of an element with these styles in another. */
export function appearanceIn(around: Appearance, styles: Styles): Appearance {
  if (around.hidden !== null) return around
  return {
    hidden: hiddenBy(styles),
    isInvisible: isUnseen(around.isInvisible, styles.get('visibility')),
    size: sizeOf(styles.get('font-size') ?? sizeIn(styles.get('font')), around.size),
    color: colorIn(styles.get('-webkit-text-fill-color') ?? styles.get('color'), around.color),
    background: backgroundIn(styles, around.background),
  }
}

function hiddenBy(styles: Styles): Hiding | null {
  if (['display', 'visibility', 'opacity', 'zoom', 'font-size'].some((property) => styles.get(property) === unclear))
    return 'display'
  if (styles.get('display') === 'none' || styles.get('content-visibility') === 'hidden') return 'display'
  if (measureOf(styles.get('opacity'), 1) < 0.05 || isMasked(styles)) return 'opacity'
  if (isOutside(styles)) return 'position'
  if (measureOf(styles.get('zoom'), 1) < 0.2 || measureOf(styles.get('letter-spacing'), 16) <= -6) return 'size'
  if (isClipped(styles)) return 'clip'
  return isZeroBox(styles) ? 'zero_box' : null
}

function isUnseen(around: boolean, visibility: string | undefined): boolean {
  if (visibility === undefined || /^(?:inherit|unset|revert)/.test(visibility)) return around
  return visibility === 'hidden' || visibility === 'collapse'
}

function isMasked(styles: Styles): boolean {
  const isFaded = functionsIn(styles.get('filter') ?? '').some(
    ({ name, given }) => name === 'opacity' && measureOf(given[0], 1) < 0.05,
  )
  const masks = ['mask', 'mask-image', '-webkit-mask', '-webkit-mask-image']
  return isFaded || masks.some((name) => /transparent|#0000|rgba?\([^)]{1,40}[,/]\s{0,9}0\)/.test(styles.get(name) ?? ''))
}

/** The size in a `font`, which may also have a weight and a height. */
function sizeIn(font: string | undefined): string | undefined {
  return wordsIn(font ?? '').find(
    (word) => word in fontSizes || (/[a-z%)]$|^0$/.test(word) && !Number.isNaN(measureOf(word, 16))),
  )
}

function sizeOf(value: string | undefined, around: number): number {
  if (value === undefined || everywhere.test(value)) return value === 'initial' ? fontSizes['medium']! : around
  const size = fontSizes[value] ?? measureOf(value.replace(/(?<=\d)em$/, '00%'), around)
  return Number.isNaN(size) ? around : size
}

function isOutside(styles: Styles): boolean {
  const [top, right = top, , left = right] = wordsIn(styles.get('margin') ?? '')
  const margins = [styles.get('margin-top') ?? top, styles.get('margin-left') ?? left, styles.get('margin-right') ?? right]
  if ([styles.get('text-indent'), ...margins].some(isFar)) return true
  if (/^(?:absolute|fixed|relative)$/.test(styles.get('position') ?? '')) {
    const places = ['left', 'top', 'right', 'bottom'].map((side) => styles.get(side))
    if ([...places, ...wordsIn(styles.get('inset') ?? '')].some(isFar)) return true
  }
  return isTransformedAway(Object.fromEntries(styles))
}

function isClipped(styles: Styles): boolean {
  const clip = /^rect\(([^)]{1,100})\)/.exec(styles.get('clip') ?? '')?.[1]
  if (clip !== undefined) {
    const [top = 0, right = 0, bottom = 0, left = 0] = clip.split(/[\s,]{1,9}/).map((side) => measureOf(side))
    if (bottom - top <= 1 || right - left <= 1) return true
  }
  return isClippedAway(styles.get('clip-path') ?? '')
}

function isZeroBox(styles: Styles): boolean {
  const flow = ['overflow', 'overflow-x', 'overflow-y'].map((name) => styles.get(name) ?? '')
  if (!flow.some((value) => /hidden|clip|auto|scroll/.test(value))) return false
  if (measureOf(styles.get('line-height'), 16) === 0) return true
  const sides = ['height', 'max-height', 'width', 'max-width', 'block-size', 'inline-size', 'max-block-size', 'max-inline-size']
  return sides.some((name) => measureOf(styles.get(name), 1000) <= 1)
}

function colorIn(value: string | undefined, around: Appearance['color']): Appearance['color'] {
  if (value === undefined || value === 'currentcolor' || (everywhere.test(value) && value !== 'initial')) return around
  if (value === 'initial') return black
  const color = value === unclear ? 'unclear' : colorOf(value)
  // what only a browser can work out may be that of the background
  return color === 'unclear' ? 'transparent' : color === undefined ? around : color
}

function backgroundIn(styles: Styles, around: Color | null): Color | null {
  const shorthand = styles.get('background')
  const image = styles.get('background-image')
  if (hasImage(shorthand) || (image !== undefined && image !== 'none' && image !== '')) return null
  const value = styles.get('background-color') ?? wordsIn(shorthand ?? '').find((word) => colorOf(word) !== undefined)
  if (value === undefined) return shorthand === undefined || /^(?:none|inherit)/.test(shorthand) ? around : null
  const found = colorOf(value)
  if (found === 'unclear') return null
  return found === undefined || found === 'transparent' || everywhere.test(value) ? around : found
}

function hasImage(value: string | undefined): boolean {
  return value !== undefined && /url\(|gradient\(|image\(|image-set\(/.test(value)
}
