import { black, type Color, colorOf, over, white } from './colors.ts'
import { everywhere, type Styles, undecided, type Variables, variablesIn } from './declarations.ts'
import { functionsIn, measureOf, wordsIn } from './lengths.ts'
import type { Place } from './selectors.ts'
import { isClippedAway, isFarAway, isOnScreen, type Shift, shiftOf } from './transforms.ts'
import { fontSizes } from './values.ts'

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
  /** In pixels, before it is scaled. */
  size: number
  /** Null where unknown. */
  color: Color | 'transparent' | null
  /** The colour of the letters where it is another; undefined where it is not. */
  fill: Color | 'transparent' | null | undefined
  /** The filters of all around, and how many of them the background has too. */
  filters: Filters
  backgroundFilters: number
  /** Null where unknown, as behind an image. */
  background: Color | null
  /** How opaque it is with all around, 0 to 1. */
  opacity: number
  shift: Shift
  /** In pixels, of the first line. */
  indent: number
  /** In pixels, between letters. */
  spacing: number
  /** True in a box that is no higher than its lines, which have no height. */
  isCutLine: boolean
  /** True in a box whose elements are boxes, whatever they are elsewhere. */
  hasItems: boolean
  /** The element; null outside of any, or where no rule asks for it. */
  place: Place | null
  variables: Variables | null
}

/** The appearance of a text outside of any element. */
export const plainAppearance: Appearance = {
  hidden: null,
  isInvisible: false,
  size: 16,
  color: black,
  fill: undefined,
  filters: [],
  backgroundFilters: 0,
  background: white,
  opacity: 1,
  shift: { x: 0, y: 0, paddingX: 0, paddingY: 0, scaleX: 1, scaleY: 1 },
  indent: 0,
  spacing: 0,
  isCutLine: false,
  hasItems: false,
  place: null,
  variables: null,
}

/** Filters that are worked out. */
const maxFilters = 20

/** Text of fewer pixels cannot be read. */
const leastSize = 4

/** Colours whose parts differ by no more look the same. */
const sameColor = 20

/** How a text of this appearance is hidden; null for one that is seen. */
export function hidingOf(look: Appearance): Hiding | null {
  const { hidden, isInvisible, size, opacity, shift, indent, spacing, isCutLine } = look
  if (hidden !== null) return hidden
  if (isInvisible) return 'visibility'
  if (opacity < 0.05) return 'opacity'
  if (size * Math.min(Math.abs(shift.scaleX), Math.abs(shift.scaleY)) < leastSize || spacing <= -size / 2) return 'size'
  if (isFarAway(shift.x + indent, shift.paddingX) || isFarAway(shift.y, shift.paddingY)) return 'position'
  if (isCutLine) return 'zero_box'
  const color = filtered(look.fill === undefined ? look.color : look.fill, look.filters)
  if (color === 'transparent') return 'color'
  const background = filtered(look.background, look.filters.slice(0, look.backgroundFilters))
  if (background === 'transparent') return null
  if (color === null || background === null) return color !== null && (color[3] ?? 1) * opacity < 0.05 ? 'color' : null
  const seen = over(color, background)
  return [0, 1, 2].every((part) => Math.abs(seen[part]! - background[part]!) * opacity <= sameColor) ? 'color' : null
}

/** The appearance of an element with these styles in another. */
export function appearanceIn(around: Appearance, tag: string, styles: Styles): Appearance {
  if (around.hidden !== null) return around
  const size = sizeOf(styles.get('font-size'), around.size)
  const own = colorIn(styles.get('color'), around.color)
  const fill = styles.get('-webkit-text-fill-color')
  const isFlowOnly = styles.get('display') === 'contents'
  const background = isFlowOnly ? around.background : backgroundIn(styles, around.background, own)
  const filters = isFlowOnly ? [] : functionsIn(styles.get('filter') ?? '')
  const stroke = strokeOf(styles, own)
  const all = filters.length === 0 ? around.filters : [...around.filters, ...filters].slice(0, maxFilters)
  const letters = stroke !== undefined ? stroke : lettersIn(fill, around.fill, own)
  // then the letters are of the background, and behind them is what is around
  const isFilled = styles.get('background-clip') === 'text' && isClear(letters === undefined ? own : letters)
  const lineHeight = measureOf(styles.get('line-height'), 1)
  const isZeroLine = lineHeight < 0.1 && isCutting(styles)
  return {
    hidden: hiddenBy(styles, tag, isFlowOnly, around.hasItems),
    isInvisible: isUnseen(around.isInvisible, styles.get('visibility')),
    size,
    color: isFilled ? background : own,
    fill: isFilled ? undefined : letters,
    filters: all,
    backgroundFilters: background === around.background ? around.backgroundFilters : all.length,
    background: styles.get('background-clip') === 'text' ? around.background : background,
    opacity: isFlowOnly ? around.opacity : around.opacity * opacityOf(styles, filters),
    shift: isFlowOnly ? around.shift : shiftOf(around.shift, styles, size),
    indent: inheritedOf(styles.get('text-indent'), around.indent, size),
    spacing: inheritedOf(styles.get('letter-spacing'), around.spacing, size),
    isCutLine: isZeroLine || (around.isCutLine && !(lineHeight >= 0.1) && styles.get('line-height') !== 'normal'),
    hasItems: isFlowOnly ? around.hasItems : /flex|grid/.test(styles.get('display') ?? ''),
    place: around.place,
    variables: variablesIn(around.variables, styles),
  }
}

/** The colour of letters that is another than that of the text; undefined where there is none. */
function lettersIn(fill: string | undefined, around: Appearance['fill'], own: Appearance['color']): Appearance['fill'] {
  if (fill === undefined) return around
  return fill === 'currentcolor' || fill === 'initial' ? undefined : colorIn(fill, around ?? own)
}

/** The colour of lines around letters that are so wide that nothing else is seen of them. */
function strokeOf(styles: Styles, color: Appearance['color']): Appearance['color'] | undefined {
  const words = wordsIn(`${styles.get('-webkit-text-stroke') ?? ''} ${styles.get('-webkit-text-stroke-width') ?? ''}`)
  if (!words.some((word) => measureOf(word) >= 3)) return undefined
  const own = words.map((word) => colorOf(word)).find((found) => found !== undefined)
  return own === undefined ? (styles.has('-webkit-text-stroke-width') ? null : color) : own
}

function isClear(color: Appearance['color']): boolean {
  return color === 'transparent' || (color !== null && (color[3] ?? 1) < 0.05)
}

function inheritedOf(value: string | undefined, around: number, size: number): number {
  if (value === undefined || /^(?:inherit|unset|revert)/.test(value)) return around
  const found = measureOf(wordsIn(value)[0], 400, size)
  return Number.isNaN(found) ? 0 : found
}

function opacityOf(styles: Styles, filters: Filters): number {
  const own = measureOf(styles.get('opacity'), 1)
  const all = filters.filter(({ name }) => name === 'opacity').map(({ given }) => measureOf(given[0] ?? '1', 1))
  return [own, ...all].reduce((product, one) => product * (Number.isNaN(one) ? 1 : Math.min(1, Math.max(0, one))), 1)
}

type Filters = ReturnType<typeof functionsIn>

/** A colour after filters of its element. */
function filtered(color: Appearance['color'], filters: Filters): Appearance['color'] {
  let found = color
  for (const { name, given } of filters) {
    if (found === null || found === 'transparent') return found
    const amount = measureOf(given[0] ?? '1', 1)
    const each = (change: (part: number) => number): Color => {
      const [red, green, blue, alpha = 1] = found as Color
      const within = (part: number) => Math.min(255, Math.max(0, change(part)))
      return [within(red), within(green), within(blue), alpha]
    }
    if (name === 'brightness') found = each((part) => part * amount)
    else if (name === 'invert') found = each((part) => part + (255 - 2 * part) * Math.min(1, amount))
    else if (name === 'contrast') found = each((part) => (part - 127.5) * amount + 127.5)
  }
  return found
}

function hiddenBy(styles: Styles, tag: string, isFlowOnly: boolean, isItem: boolean): Hiding | null {
  if (styles.has(undecided) || /^(?:none|table-column|table-column-group)$/.test(styles.get('display') ?? '')) return 'display'
  if (styles.get('content-visibility') === 'hidden' || /(?:url|image-set|gradient)\(/.test(styles.get('content') ?? ''))
    return 'display'
  if (isFlowOnly) return null
  if (isMasked(styles) || isBlended(styles)) return 'opacity'
  if (measureOf(styles.get('font-size-adjust')) < 0.2) return 'size'
  if (!isOnScreen(styles) || (isCutting(styles) && measureOf(styles.get('text-indent'), 1000) >= 900)) return 'position'
  if (['offset-path', 'offset'].some((name) => (styles.get(name) ?? 'none') !== 'none')) return 'position'
  if (isClipped(styles)) return 'clip'
  return isZeroBox(styles, tag, isItem) ? 'zero_box' : null
}

/** True for a box that cuts what is larger. */
function isCutting(styles: Styles): boolean {
  const flow = `${styles.get('overflow-x') ?? ''} ${styles.get('overflow-y') ?? ''}`
  return /hidden|clip/.test(flow) || /paint|strict|content/.test(styles.get('contain') ?? '')
}

function isUnseen(around: boolean, visibility: string | undefined): boolean {
  // what is visible in what is not is left out too, as the text that is made of the HTML lacks it
  return around || visibility === 'hidden' || visibility === 'collapse'
}

/** True for letters that are drawn as dots, or in a way in which they look like what is behind them. */
function isBlended(styles: Styles): boolean {
  const [blend = 'normal', security = 'none'] = ['mix-blend-mode', '-webkit-text-security'].map((name) => styles.get(name))
  return !/^(?:normal|multiply|darken|color-burn)$/.test(blend) || security !== 'none'
}

function isMasked(styles: Styles): boolean {
  const masks = ['mask', 'mask-image', 'mask-border'].map((name) => styles.get(name) ?? 'none').filter((mask) => mask !== 'none')
  // what an image leaves of a text is not known
  if (masks.some((mask) => /url\(|no-repeat|\/|radial-|conic-/.test(mask) || mask.split('gradient(').length > 2)) return true
  if (masks.length > 0 && ['mask-position', 'mask-repeat', 'mask-composite'].some((name) => styles.has(name))) return true
  if (/url\(/.test(`${styles.get('filter') ?? ''} ${styles.get('clip-path') ?? ''}`)) return true
  if (functionsIn(styles.get('filter') ?? '').some(({ name, given }) => name === 'blur' && measureOf(given[0]) >= 12)) return true
  if (wordsIn(styles.get('mask-size') ?? '').some((word) => measureOf(word) === 0)) return true
  return ['mask', 'mask-image'].some((name) => isEmptyMask(styles.get(name) ?? ''))
}

/** True for gradients whose every colour is transparent. */
function isEmptyMask(mask: string): boolean {
  const gradients = functionsIn(mask).filter(({ name }) => name.endsWith('gradient'))
  const colors = gradients
    .flatMap(({ given }) => given.map((stop) => colorOf(wordsIn(stop)[0] ?? '')))
    .filter((color) => color !== undefined)
  return colors.length > 0 && colors.every((color) => color === 'transparent' || (color?.[3] ?? 1) < 0.1)
}

function sizeOf(value: string | undefined, around: number): number {
  if (value === undefined || everywhere.test(value)) return value === 'initial' ? fontSizes.get('medium')! : around
  const size = fontSizes.get(value) ?? measureOf(value, around, around)
  return Number.isNaN(size) ? around : size
}

function isClipped(styles: Styles): boolean {
  const isPlaced = /^(?:absolute|fixed)$/.test(styles.get('position') ?? '')
  const clip = isPlaced ? /^rect\(([^)]{1,100})\)/.exec(styles.get('clip') ?? '')?.[1] : undefined
  if (clip !== undefined) {
    const [top = 0, right = 0, bottom = 0, left = 0] = clip.split(/[\s,]{1,9}/).map((side) => measureOf(side))
    if (bottom - top <= 1 || right - left <= 1) return true
  }
  return isClippedAway(styles.get('clip-path') ?? '')
}

/** Elements that are as large as their contents whatever height or width they are given. */
const growing = new Set('table thead tbody tfoot tr td th span a b i u em strong small font label abbr code'.split(' '))

/** The sizes of a box, and where what is larger can still be seen. */
const sides = [
  ['height', 'min-height', 'padding-bottom'],
  ['max-height', 'min-height', 'padding-bottom'],
  ['width', 'min-width', 'padding-right'],
  ['max-width', 'min-width', 'padding-right'],
] as const

function isZeroBox(styles: Styles, tag: string, isItem: boolean): boolean {
  const isBlock =
    /^(?:absolute|fixed)$/.test(styles.get('position') ?? '') ||
    /^(?:left|right|inline-start|inline-end)$/.test(styles.get('float') ?? '') ||
    isItem
  const display = styles.get('display')
  if (!isBlock && (display === undefined ? growing.has(tag) : /^(?:inline$|table|inline-table)/.test(display))) return false
  const flow = `${styles.get('overflow-x') ?? ''} ${styles.get('overflow-y') ?? ''}`
  const isWithoutSize = /size|strict/.test(`${styles.get('contain') ?? ''} ${styles.get('container-type') ?? ''}`)
  if (isCutting(styles) && isWithoutSize && !(measureOf(styles.get('height'), 400) > 0)) return true
  const most = isCutting(styles) ? leastSize : /auto|scroll/.test(flow) ? 0 : -1
  return sides.some(([side, least, padding]) => {
    const value = styles.get(side)
    const size = measureOf(value, 1000)
    // what is computed to less than nothing is 0; written so it is not valid
    const isNone = size <= most && (size >= 0 || value?.endsWith(')') === true)
    return isNone && !(measureOf(styles.get(least), 1000) > 1 + most) && !(measureOf(styles.get(padding), 400) >= 8)
  })
}

function colorIn(value: string | undefined, around: Appearance['color']): Appearance['color'] {
  if (value === undefined || value === 'currentcolor' || (everywhere.test(value) && value !== 'initial')) return around
  if (value === 'initial') return black
  const color = colorOf(value)
  return color === undefined ? around : color
}

function backgroundIn(styles: Styles, around: Color | null, color: Appearance['color']): Color | null {
  const value = styles.get('background-color') ?? 'transparent'
  const own =
    value === 'currentcolor' ? color : value === 'inherit' ? around : everywhere.test(value) ? 'transparent' : colorOf(value)
  const found = own === null ? null : own === undefined || own === 'transparent' ? around : laid(own, around)
  const image = styles.get('background-image') ?? 'none'
  if (image === 'none' || image === '' || everywhere.test(image)) return found
  const flat = flatColor(image)
  return flat === undefined ? null : flat === 'transparent' ? found : laid(flat, found)
}

function laid(color: Color, around: Color | null): Color | null {
  if ((color[3] ?? 1) >= 0.98) return color
  return around === null ? null : over(color, around)
}

/** The colour of gradients of one; undefined for other images. */
function flatColor(image: string): Color | 'transparent' | undefined {
  const calls = functionsIn(image)
  if (calls.length !== 1 || !calls[0]!.name.endsWith('gradient')) return undefined
  const colors = calls[0]!.given.map((stop) => colorOf(wordsIn(stop)[0] ?? '')).filter((found) => found !== undefined)
  const [first] = colors
  if (first === undefined || first === null) return undefined
  if (first === 'transparent') return colors.every((one) => one === 'transparent') ? first : undefined
  const isFlat = colors.every(
    (one) => Array.isArray(one) && [0, 1, 2].every((part) => Math.abs(one[part]! - first[part]!) <= sameColor),
  )
  return isFlat ? first : undefined
}
