import { type Declared, declarationsOf } from '../markup.ts'

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

/** Red, green and blue, each 0 to 255. */
type Color = readonly [number, number, number]

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
    'display content-visibility opacity filter position left top right bottom text-indent margin-left margin-top margin-right zoom transform clip ' +
    'clip-path overflow overflow-x overflow-y height max-height width max-width visibility font-size font color background background-image ' +
    'background-color'
  ).split(' '),
)

/** Characters of a value: the same rule may hold for very many elements, and each reads it again. */
const longestValue = 300

export function declarationsIn(style: string): Declarations {
  const kept: Declarations = new Map()
  for (const [property, { value, important }] of declarationsOf(style)) {
    if (properties.has(property)) kept.set(property, { value: value.slice(0, longestValue), important })
  }
  return kept
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
  return new Map([...all].map(([property, { value }]) => [property, value]))
}

/** The appearance of an element with these styles in another. */
export function appearanceIn(around: Appearance, styles: Styles): Appearance {
  if (around.hidden !== null) return around
  return {
    hidden: hiddenBy(styles),
    isInvisible: isUnseen(around.isInvisible, styles.get('visibility')),
    size: sizeOf(styles.get('font-size') ?? sizeIn(styles.get('font')), around.size),
    color: colorIn(styles.get('color'), around.color),
    background: backgroundIn(styles, around.background),
  }
}

function hiddenBy(styles: Styles): Hiding | null {
  if (styles.get('display') === 'none' || styles.get('content-visibility') === 'hidden') return 'display'
  if (ratio(styles.get('opacity')) < 0.05 || /opacity\((?:0|0?\.0\d*|0%|[0-4]%)\)/.test(styles.get('filter') ?? ''))
    return 'opacity'
  if (isOutside(styles)) return 'position'
  if (ratio(styles.get('zoom')) < 0.2) return 'size'
  if (isClipped(styles)) return 'clip'
  return isZeroBox(styles) ? 'zero_box' : null
}

function isUnseen(around: boolean, visibility: string | undefined): boolean {
  if (visibility === undefined || visibility === 'inherit') return around
  return visibility === 'hidden' || visibility === 'collapse'
}

function ratio(value: string | undefined): number {
  if (value === undefined) return 1
  const number = Number.parseFloat(value)
  return Number.isNaN(number) ? 1 : value.endsWith('%') ? number / 100 : number
}

/** Pixels in one of each unit; a font is taken to be of 16 pixels. */
const units: Readonly<Record<string, number>> = {
  px: 1,
  pt: 4 / 3,
  em: 16,
  rem: 16,
  ex: 8,
  ch: 8,
  pc: 16,
  in: 96,
  cm: 38,
  mm: 3.8,
  vw: 10,
  vh: 8,
}

/** A length in pixels; NaN for what is none, as `auto` and percents. */
function pixels(value: string | undefined): number {
  const [, number = '', unit = ''] = /^([+-]?(?:\d{1,12}(?:\.\d{0,12})?|\.\d{1,12}))([a-z]{0,4})$/.exec(value ?? '') ?? []
  return Number.parseFloat(number) * (unit === '' ? 1 : (units[unit] ?? Number.NaN))
}

/** The size in a `font`, which may also have a weight and a height. */
function sizeIn(font: string | undefined): string | undefined {
  return /(?:^|\s)(\d{1,6}(?:\.\d{1,6})?(?:px|pt|em|rem|%)|0)[/\s]/.exec(font ?? '')?.[1]
}

function sizeOf(value: string | undefined, around: number): number {
  if (value === undefined) return around
  const [, factor] = /^(\d{0,6}\.?\d{0,6})(?:%|em)$/.exec(value) ?? []
  if (factor !== undefined) {
    const size = (around * Number.parseFloat(factor)) / (value.endsWith('%') ? 100 : 1)
    return Number.isNaN(size) ? around : size
  }
  const size = pixels(value)
  return Number.isNaN(size) ? (value === 'inherit' ? around : 16) : size
}

/** So far from the edge nobody scrolls. */
const farOutside = 500

function isOutside(styles: Styles): boolean {
  const far = (property: string) => pixels(styles.get(property)) <= -farOutside
  if (['text-indent', 'margin-left', 'margin-top', 'margin-right'].some(far)) return true
  if (/^(?:absolute|fixed|relative)$/.test(styles.get('position') ?? '') && ['left', 'top', 'right', 'bottom'].some(far))
    return true
  const transform = styles.get('transform') ?? ''
  return /scale[xy]?\(\s?0?(?:\.0\d{0,9})?[\s,)]|translate[xy]?\([^)]{0,20}-\d{3,}/.test(transform.slice(0, 200))
}

function isClipped(styles: Styles): boolean {
  const clip = /^rect\(([^)]{1,100})\)/.exec(styles.get('clip') ?? '')?.[1]
  if (clip !== undefined) {
    const [top = 0, right = 0, bottom = 0, left = 0] = clip.split(/[\s,]{1,9}/).map((side) => pixels(side))
    if (bottom - top <= 1 || right - left <= 1) return true
  }
  return /^(?:inset\((?:50|[6-9]\d|100)%|circle\(0|ellipse\(0|polygon\(0(?:px|%)? 0(?:px|%)?(?:,\s?0(?:px|%)? 0(?:px|%)?){1,9}\))/.test(
    styles.get('clip-path') ?? '',
  )
}

function isZeroBox(styles: Styles): boolean {
  if (!['overflow', 'overflow-x', 'overflow-y'].some((name) => /^(?:hidden|clip)/.test(styles.get(name) ?? ''))) return false
  return ['height', 'max-height', 'width', 'max-width'].some((name) => pixels(styles.get(name)) <= 1)
}

function colorIn(value: string | undefined, around: Appearance['color']): Appearance['color'] {
  if (value === undefined || value === 'inherit' || value === 'currentcolor') return around
  return colorOf(value)
}

function backgroundIn(styles: Styles, around: Color | null): Color | null {
  const shorthand = styles.get('background')
  const image = styles.get('background-image')
  if (hasImage(shorthand) || (image !== undefined && image !== 'none' && image !== '')) return null
  const value = styles.get('background-color') ?? shorthand?.split(/\s/).find((word) => colorOf(word) !== null)
  if (value === undefined) return shorthand === undefined || /^(?:none|inherit)/.test(shorthand) ? around : null
  const found = colorOf(value)
  return found === 'transparent' || value === 'inherit' || value === 'initial' ? around : found
}

function hasImage(value: string | undefined): boolean {
  return value !== undefined && /url\(|gradient\(/.test(value)
}

/** Colours by name, as far as they are common in mail or near to white or black. */
const named = new Map(
  (
    'white ffffff black 000000 snow fffafa ivory fffff0 ghostwhite f8f8ff floralwhite fffaf0 whitesmoke f5f5f5 mintcream f5fffa azure f0ffff ' +
    'aliceblue f0f8ff seashell fff5ee honeydew f0fff0 lavenderblush fff0f5 oldlace fdf5e6 linen faf0e6 gainsboro dcdcdc lightgray d3d3d3 ' +
    'lightgrey d3d3d3 silver c0c0c0 gray 808080 grey 808080 darkgray a9a9a9 red ff0000 green 008000 blue 0000ff navy 000080 yellow ffff00 ' +
    'orange ffa500 purple 800080 maroon 800000 teal 008080 lightyellow ffffe0 beige f5f5dc cornsilk fff8dc'
  )
    .split(' ')
    .map((word, index, all) => [word, all[index + 1]!] as const)
    .filter((_, index) => index % 2 === 0),
)

/** A colour of CSS or of an attribute; null for one that is not known. */
function colorOf(value: string): Color | 'transparent' | null {
  if (value === 'transparent') return 'transparent'
  const hex = /^#?([\da-f]{3,8})$/.exec(named.get(value) ?? value)?.[1]
  if (hex !== undefined) return ofHex(hex)
  const [, name, inner = ''] = /^(rgba?|hsla?)\(([^)]{1,80})\)$/.exec(value) ?? []
  if (name === undefined) return null
  const [first = '', second = '', third = '', alpha] = inner.split(/[\s,/]{1,9}/).filter((part) => part !== '')
  if (alpha !== undefined && ratio(alpha) < 0.05) return 'transparent'
  // what is half transparent mixes with what is behind
  if (alpha !== undefined && ratio(alpha) < 0.95) return null
  const parts = [first, second, third].map((part) => Number.parseFloat(part))
  if (parts.some(Number.isNaN)) return null
  if (name.startsWith('hsl')) return ofHsl(parts[0]!, parts[1]! / 100, parts[2]! / 100)
  return parts.map((part, index) => ([first, second, third][index]!.endsWith('%') ? part * 2.55 : part)) as unknown as Color
}

function ofHex(hex: string): Color | 'transparent' | null {
  const short = hex.length < 6
  const at = (index: number) => {
    const digits = short ? (hex[index] ?? '').repeat(2) : hex.slice(index * 2, index * 2 + 2)
    return Number.parseInt(digits, 16)
  }
  const alpha = at(3)
  if (hex.length === 5 || hex.length === 7) return null
  if (alpha < 13) return 'transparent'
  return alpha < 242 ? null : [at(0), at(1), at(2)]
}

function ofHsl(hue: number, saturation: number, lightness: number): Color {
  const part = (offset: number) => {
    const at = (offset + hue / 30) % 12
    return 255 * (lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(at - 3, 9 - at, 1)))
  }
  return [part(0), part(8), part(4)]
}
