import type { Appearance } from './screening/appearance.ts'
import { black, type Color, colorOf, over, white } from './screening/colors.ts'
import type { Styles } from './screening/declarations.ts'

const length = /^(?:\d{1,3}(?:\.\d{1,4})?|\.\d{1,4})(?:px|pt|em|rem|%)$|^0$|^auto$/
const size = /^(?:[2-9]\d|[1-9]\d\d|1\d{3})(?:\.\d{1,4})?(?:px|pt)$|^(?:[5-9]|[1-9]\d|100)(?:\.\d{1,4})?%$/
const border =
  /^(?:(?:\d|1\d)(?:\.\d{1,4})?(?:px|pt)|0|thin|medium|thick|none)(?: (?:solid|dashed|dotted|double|groove|ridge|inset|outset|none))?(?: (?:#[\da-f]{3,6}|[a-z]{3,20}))?$/

/**
 * What is displayed of the styles of elements, with its values. Nothing of it can hide a text, whatever it is combined with: no positions, negative or
 * huge lengths, heights, clipping, transparency or transformations. Colours and sizes of fonts are those of `textStyle`.
 */
const displayed: readonly (readonly [property: string, values: RegExp])[] = [
  ...['margin-top', 'margin-right', 'margin-bottom', 'margin-left'].map((side) => [side, length] as const),
  ...['padding-top', 'padding-right', 'padding-bottom', 'padding-left'].map((side) => [side, length] as const),
  ...['border', 'border-top', 'border-right', 'border-bottom', 'border-left'].map((side) => [side, border] as const),
  ['border-radius', /^\d{1,2}px$/],
  ['border-collapse', /^(?:collapse|separate)$/],
  ['width', size],
  ['max-width', size],
  ['display', /^(?:block|inline|inline-block|table|table-row|table-cell|list-item)$/],
  ['text-align', /^(?:left|right|center|justify|start|end)$/],
  ['vertical-align', /^(?:top|middle|bottom|baseline)$/],
  ['white-space', /^(?:normal|pre|pre-wrap|pre-line)$/],
  ['font-weight', /^(?:normal|bold|bolder|lighter|[1-9]00)$/],
  ['font-style', /^(?:normal|italic|oblique)$/],
  ['text-decoration', /^(?:none|underline|line-through)$/],
  ['list-style-type', /^(?:none|disc|circle|square|decimal|lower-alpha|upper-alpha|lower-roman|upper-roman)$/],
]

/** The properties that are displayed, for who collects styles. */
export const displayedProperties: ReadonlySet<string> = new Set([...displayed.map(([property]) => property), 'font-family'])

/** The style of an element that is displayed, as the value of an attribute; '' for none. */
export function elementStyle(styles: Styles): string {
  const kept = displayed.flatMap(([property, values]) => {
    const value = styles.get(property)
    // each line is wrapped: where those from right to left end, nobody can scroll
    return value !== undefined && values.test(value) ? [`${property}:${value === 'pre' ? 'pre-wrap' : value}`] : []
  })
  const background = colorOf(styles.get('background-color') ?? '')
  if (Array.isArray(background)) kept.push(`background-color:${hex(background as Color)}`)
  const family = styles.get('font-family')
  if (family !== undefined) kept.push(`font-family:${generic(family)}`)
  return kept.join(';')
}

/**
 * The style of a text, as the value of an attribute; '' for a black one on white of the usual size on a page that is not `painted`. Its colour and what is
 * behind it come together, so that no other element makes it unreadable.
 */
export function textStyle({ color, background, size: given }: Appearance, painted: boolean): string {
  const kept: string[] = []
  const behind = background ?? white
  const own = Array.isArray(color) ? over(color as Color, behind) : black
  const letters = isFaint(own, behind) ? contrastTo(behind) : own
  if (background === null) kept.push(`color:${hex(letters)}`, `background-color:${hex(contrastTo(letters))}`)
  else if (painted || hex(letters) !== '#000000' || hex(background) !== '#ffffff')
    kept.push(`color:${hex(letters)}`, `background-color:${hex(background)}`)
  if (given !== 16) kept.push(`font-size:${Math.round(Math.min(72, Math.max(9, given)))}px`)
  return kept.join(';')
}

/** Colours whose parts differ by no more are hard to tell apart. */
const hardToSee = 48

function isFaint(letters: Color, behind: Color): boolean {
  return [0, 1, 2].every((part) => Math.abs(letters[part]! - behind[part]!) <= hardToSee)
}

function contrastTo([red, green, blue]: Color): Color {
  return 0.3 * red + 0.6 * green + 0.1 * blue > 128 ? black : white
}

/** A family that every system has: others may have no letters. */
function generic(family: string): string {
  if (/mono|courier|consol/.test(family)) return 'monospace'
  return /georgia|times|garamond|palatino|^serif|[^-]serif/.test(family.replaceAll('sans-serif', '')) ? 'serif' : 'sans-serif'
}

function hex(color: Color): string {
  return `#${[0, 1, 2].map((part) => Math.round(color[part]!).toString(16).padStart(2, '0')).join('')}`
}
