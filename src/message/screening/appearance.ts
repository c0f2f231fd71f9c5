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
    'display content-visibility opacity filter mask mask-image -webkit-mask -webkit-mask-image position float left top right bottom inset text-indent margin ' +
    'margin-left margin-top margin-right zoom transform scale translate rotate clip clip-path overflow overflow-x overflow-y height max-height width ' +
    'max-width block-size inline-size max-block-size max-inline-size min-height min-width min-block-size min-inline-size letter-spacing visibility font-size font color -webkit-text-fill-color ' +
    'background background-image background-color background-clip -webkit-background-clip'
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
const fontSizes: ReadonlyMap<string, number> = new Map(
  Object.entries({
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
  }),
)

/** What programs that display mail take for a value; they ignore any other, so that the one before it holds. */
const valid: ReadonlyMap<string, (value: string) => boolean> = new Map(
  Object.entries<(value: string) => boolean>({
    display: (value) =>
      /^-webkit-(?:inline-)?(?:box|flex)$/.test(value) || value.split(/\s{1,9}/).every((word) => displays.has(word)),
    visibility: (value) => /^(?:visible|hidden|collapse)$/.test(value),
    'content-visibility': (value) => /^(?:visible|hidden|auto)$/.test(value),
    opacity: (value) => !/[a-z]$/.test(value) && !Number.isNaN(measureOf(value, 1)),
    zoom: (value) => /^(?:normal|reset)$/.test(value) || measureOf(value, 1) >= 0,
    'font-size': (value) => fontSizes.has(value) || isLength(value),
    color: (value) => value === 'currentcolor' || colorOf(value) !== undefined,
    '-webkit-text-fill-color': (value) => value === 'currentcolor' || colorOf(value) !== undefined,
    'background-color': (value) => value === 'currentcolor' || colorOf(value) !== undefined,
    position: (value) => /^(?:static|relative|absolute|fixed|(?:-webkit-)?sticky)$/.test(value),
    overflow: (value) =>
      /^(?:visible|hidden|clip|scroll|auto|overlay)(?:\s{1,9}(?:visible|hidden|clip|scroll|auto))?$/.test(value),
  }),
)

/** True for a size: not negative, and a number only if it is 0. */
function isLength(value: string): boolean {
  return measureOf(value, 16) >= 0 && !/(?:deg|grad|rad|turn)$/.test(value) && (/[a-z%)]$/.test(value) || Number(value) === 0)
}

/** True for a declaration that a program which displays mail takes, of a property that decides whether a text can be seen, or of a variable. */
function isTaken(property: string, value: string): boolean {
  if (property.startsWith('--')) return true
  if (!properties.has(property)) return false
  return value.includes('var(') || everywhere.test(value) || (valid.get(property)?.(value) ?? value !== '')
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
    if (!declared.important && earlier.get(property)?.important === true) continue
    earlier.delete(property)
    earlier.set(property, declared)
  }
}

/** The styles of an element: of its attributes, its rules and its own style, the weakest first; `variables` are those of others. */
export function stylesOf(layers: readonly Declarations[], variables: ReadonlyMap<string, Declared>): Styles {
  const all: Declarations = new Map()
  for (const layer of layers) addDeclarations(all, layer)
  const styles = new Map<string, string>()
  for (const [property, { value }] of all) {
    if (property.startsWith('--')) continue
    const resolved = value.includes('var(') ? withVariables(value, (name) => all.get(name) ?? variables.get(name)) : value
    if (resolved !== undefined) setStyle(styles, property, resolved)
  }
  return styles
}

/** Sets a property; a shorthand sets those that it stands for. */
function setStyle(styles: Map<string, string>, property: string, value: string): void {
  styles.set(property, value)
  if (property === 'font') {
    const size = sizeIn(value)
    if (size !== undefined) styles.set('font-size', size)
  } else if (property === 'background') {
    styles.delete('background-color')
    styles.delete('background-image')
  } else if (property === 'margin') {
    const [top = '', right = top, , left = right] = wordsIn(value)
    for (const [side, width] of Object.entries({ top, right, left })) styles.set(`margin-${side}`, width)
  }
}

/** The value with its variables; undefined where one is not known, as the property is not set then. */
function withVariables(value: string, known: (name: string) => Declared | undefined): string | undefined {
  let found = value
  for (let step = 0; step < 5; step += 1) {
    const start = found.indexOf('var(')
    if (start === -1) return found
    const end = closing(found, start + 4)
    const inner = found.slice(start + 4, end)
    const comma = inner.indexOf(',')
    const name = (comma === -1 ? inner : inner.slice(0, comma)).trim()
    const stands = known(name)?.value ?? (comma === -1 ? undefined : inner.slice(comma + 1).trim())
    if (stands === undefined) return undefined
    found = `${found.slice(0, start)}${stands}${found.slice(end + 1)}`.slice(0, longestValue)
  }
  return undefined
}

/** Where the parenthesis ends that is open before `start`. */
function closing(text: string, start: number): number {
  let depth = 1
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === '(') depth += 1
    else if (text[at] === ')') depth -= 1
    if (depth === 0) return at
  }
  return text.length
}

/** The appearance of an element with these styles in another. */
export function appearanceIn(around: Appearance, tag: string, styles: Styles): Appearance {
  if (around.hidden !== null) return around
  const size = sizeOf(styles.get('font-size'), around.size)
  const color = colorIn(styles.get('-webkit-text-fill-color') ?? styles.get('color'), around.color)
  const background = backgroundIn(styles, around.background)
  // then the letters are of the background, and behind them is what is around
  const isFilled = color === 'transparent' && fillsLetters(styles)
  return {
    hidden: hiddenBy(styles, tag, size),
    isInvisible: isUnseen(around.isInvisible, styles.get('visibility')),
    size,
    color: isFilled ? background : color,
    background: isFilled ? around.background : background,
  }
}

/** True if the background is painted into the letters. */
function fillsLetters(styles: Styles): boolean {
  return styles.get('background-clip') === 'text' || styles.get('-webkit-background-clip') === 'text'
}

function hiddenBy(styles: Styles, tag: string, size: number): Hiding | null {
  if (styles.get('display') === 'none' || styles.get('content-visibility') === 'hidden') return 'display'
  if (measureOf(styles.get('opacity'), 1) < 0.05 || isMasked(styles)) return 'opacity'
  if (isOutside(styles)) return 'position'
  if (measureOf(styles.get('zoom'), 1) < 0.2 || measureOf(styles.get('letter-spacing'), size, size) <= -size / 2) return 'size'
  if (isClipped(styles)) return 'clip'
  return isZeroBox(styles, tag) ? 'zero_box' : null
}

function isUnseen(around: boolean, visibility: string | undefined): boolean {
  if (visibility === undefined || /^(?:inherit|unset|revert)/.test(visibility)) return around
  return visibility === 'hidden' || visibility === 'collapse'
}

function isMasked(styles: Styles): boolean {
  const isFaded = functionsIn(styles.get('filter') ?? '').some(
    ({ name, given }) => name === 'opacity' && measureOf(given[0], 1) < 0.05,
  )
  return (
    isFaded || ['mask', 'mask-image', '-webkit-mask', '-webkit-mask-image'].some((name) => isEmptyMask(styles.get(name) ?? ''))
  )
}

/** True for gradients whose every colour is transparent. */
function isEmptyMask(mask: string): boolean {
  const gradients = functionsIn(mask).filter(({ name }) => name.endsWith('gradient'))
  const colors = gradients
    .flatMap(({ given }) => given.map((stop) => colorOf(wordsIn(stop)[0] ?? '')))
    .filter((color) => color !== undefined)
  return colors.length > 0 && colors.every((color) => color === 'transparent')
}

/** The size in a `font`, which may also have a weight and a height. */
function sizeIn(font: string | undefined): string | undefined {
  return wordsIn(font ?? '').find(
    (word) => fontSizes.has(word) || (/[a-z%)]$|^0$/.test(word) && !Number.isNaN(measureOf(word, 16))),
  )
}

function sizeOf(value: string | undefined, around: number): number {
  if (value === undefined || everywhere.test(value)) return value === 'initial' ? fontSizes.get('medium')! : around
  const size = fontSizes.get(value) ?? measureOf(value, around, around)
  return Number.isNaN(size) ? around : size
}

function isOutside(styles: Styles): boolean {
  if (['text-indent', 'margin-top', 'margin-left', 'margin-right'].some((property) => isFar(styles.get(property)))) return true
  if (/^(?:absolute|fixed|relative)$/.test(styles.get('position') ?? '')) {
    const places = ['left', 'top', 'right', 'bottom'].map((side) => styles.get(side))
    if ([...places, ...wordsIn(styles.get('inset') ?? '')].some((place) => isFar(place))) return true
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

/** Elements that are as large as their contents whatever height or width they are given. */
const growing = new Set('table thead tbody tfoot tr td th span a b i u em strong small font label abbr code'.split(' '))

const sides = [
  ['height', 'min-height'],
  ['max-height', 'min-height'],
  ['width', 'min-width'],
  ['max-width', 'min-width'],
  ['block-size', 'min-block-size'],
  ['inline-size', 'min-inline-size'],
  ['max-block-size', 'min-block-size'],
  ['max-inline-size', 'min-inline-size'],
] as const

function isZeroBox(styles: Styles, tag: string): boolean {
  const isBlock = /^(?:absolute|fixed)$/.test(styles.get('position') ?? '') || /^(?:left|right)$/.test(styles.get('float') ?? '')
  const display = styles.get('display')
  if (!isBlock && (display === undefined ? growing.has(tag) : /^(?:inline$|table|inline-table)/.test(display))) return false
  const flow = ['overflow', 'overflow-x', 'overflow-y'].map((name) => styles.get(name) ?? '').join(' ')
  const most = /hidden|clip/.test(flow) ? 1 : /auto|scroll/.test(flow) ? 0 : -1
  return sides.some(([side, least]) => {
    const value = styles.get(side)
    const size = measureOf(value, 1000)
    // what is computed to less than nothing is 0; written so it is not valid
    const isSize = size >= 0 || (size < 0 && value!.includes('('))
    return isSize && size <= most && !(measureOf(styles.get(least), 1000) >= leastSize)
  })
}

function colorIn(value: string | undefined, around: Appearance['color']): Appearance['color'] {
  if (value === undefined || value === 'currentcolor' || (everywhere.test(value) && value !== 'initial')) return around
  if (value === 'initial') return black
  const color = colorOf(value)
  return color === undefined ? around : color
}

function backgroundIn(styles: Styles, around: Color | null): Color | null {
  const shorthand = styles.get('background')
  const image = styles.get('background-image')
  if (hasImage(shorthand) || (image !== undefined && image !== 'none' && image !== '')) return null
  const value = styles.get('background-color') ?? wordsIn(shorthand ?? '').find((word) => colorOf(word) !== undefined)
  if (value === undefined) return shorthand === undefined || /^(?:none|inherit)/.test(shorthand) ? around : null
  const found = colorOf(value)
  return found === undefined || found === 'transparent' || everywhere.test(value) ? around : found
}

function hasImage(value: string | undefined): boolean {
  return value !== undefined && /url\(|gradient\(|image\(|image-set\(/.test(value)
}
