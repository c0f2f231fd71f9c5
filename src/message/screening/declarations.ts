import { remembered } from '../../core/memory.ts'
import { type Declared, declarationsOf } from '../markup.ts'
import { closing, wordsIn } from './lengths.ts'
import type { Match } from './selectors.ts'
import { fontSizeIn, isColor, valid } from './values.ts'

/** What the styles of an element say, as its properties with their values. */
export type Styles = ReadonlyMap<string, string>

/** A declaration of a rule; its layer is left out where there is none. */
interface Ranked extends Declared {
  layer?: number
}

/** Declarations by their properties, only of properties that decide whether a text can be seen, each with the start of its value. */
export type Declarations = Map<string, Ranked>
export type ReadonlyDeclarations = ReadonlyMap<string, Readonly<Ranked>>

const properties = new Set(
  (
    'all animation animation-name animation-fill-mode animation-duration display content-visibility opacity filter mask mask-image mask-size offset-path position float left top right bottom inset text-indent margin margin-left margin-top ' +
    'margin-right margin-bottom padding padding-top padding-bottom padding-left padding-right zoom transform scale translate rotate clip clip-path contain ' +
    'overflow overflow-x overflow-y height max-height min-height width max-width min-width letter-spacing line-height visibility font-size font color ' +
    'mix-blend-mode -webkit-text-security font-size-adjust content offset backface-visibility transform-origin container-type mask-position mask-repeat mask-composite ' +
    'mask-border -webkit-text-stroke-width background-size background-position background-repeat ' +
    '-webkit-text-fill-color -webkit-text-stroke text-shadow background background-image background-color background-clip'
  ).split(' '),
)

/** Other names of properties in text from the left to the right. */
const aliases: ReadonlyMap<string, string> = new Map(
  (
    'block-size height inline-size width max-block-size max-height max-inline-size max-width min-block-size min-height min-inline-size min-width ' +
    'overflow-block overflow-y overflow-inline overflow-x inset-inline-start left inset-inline-end right inset-block-start top inset-block-end bottom ' +
    'margin-inline-start margin-left margin-inline-end margin-right margin-block-start margin-top margin-block-end margin-bottom ' +
    'padding-block-start padding-top padding-block-end padding-bottom -webkit-margin-start margin-left -webkit-mask mask -webkit-mask-image mask-image -webkit-mask-size mask-size -webkit-mask-position mask-position -webkit-mask-repeat mask-repeat -webkit-mask-composite mask-composite ' +
    '-webkit-mask-box-image mask-border -webkit-backface-visibility backface-visibility -webkit-transform-origin transform-origin -webkit-animation animation ' +
    '-webkit-clip-path clip-path -webkit-filter filter -webkit-transform transform -webkit-background-clip background-clip -webkit-opacity opacity'
  )
    .split(' ')
    .flatMap((name, index, all) => (index % 2 === 0 ? [[name, all[index + 1]!] as const] : [])),
)

/** Shorthands of sides, with the sides that their one to four values are for. */
const sidesOf: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    margin: ['margin-top', 'margin-right', 'margin-bottom', 'margin-left'],
    padding: ['padding-top', 'padding-right', 'padding-bottom', 'padding-left'],
    inset: ['top', 'right', 'bottom', 'left'],
    'margin-inline': ['margin-left', 'margin-right'],
    'margin-block': ['margin-top', 'margin-bottom'],
    'padding-inline': ['padding-left', 'padding-right'],
    'padding-block': ['padding-top', 'padding-bottom'],
    'inset-inline': ['left', 'right'],
    'inset-block': ['top', 'bottom'],
    overflow: ['overflow-x', 'overflow-y'],
  }),
)

/** Characters of a value: the same rule may hold for very many elements, and each reads it again. */
const longestValue = 300

/** Values that the start says enough of. */
const mayBeLong = /^(?:background|mask|text-shadow|font$)/

/** Stands for a declaration that was not worked out: the element counts as hidden. */
export const undecided = 'undecided'

/** Steps in which variables are put in. */
const maxSteps = 100

const substitution = /(?:var|env)\(/

/** Functions whose value only a browser can work out. */
const unknownFunctions =
  /(?:^|[\s(,+*/-])(?:attr|if|inherit|sibling-index|sibling-count|progress|random|random-item|calc-size|anchor|anchor-size|alpha|--[\w\u00b7-]{1,200})\(/

/** Properties whose values elements only have from around them where they say so. */
const notInherited =
  /^(?:opacity|transform|scale|zoom|rotate|translate|filter|clip-path|mask|mask-image|offset-path|mix-blend-mode|height|max-height)$/

/** Values that every property takes. */
export const everywhere = /^(?:inherit|initial|unset|revert|revert-layer)$/

/** True for a declaration that a program which displays mail takes, of a property that decides whether a text can be seen, of a variable, or of one of `others`. */
function isTaken(property: string, value: string, others: ReadonlySet<string>): boolean {
  if (property.startsWith('--')) return true
  const name = aliases.get(property) ?? property
  const sides = sidesOf.get(name)
  if (sides === undefined && !properties.has(name)) return others.has(name) && value.length <= longestValue
  if (value.length > longestValue || substitution.test(value) || unknownFunctions.test(value) || everywhere.test(value))
    return true
  if (sides === undefined) return valid.get(name)?.(value) ?? value !== ''
  const words = wordsIn(value)
  return words.length > 0 && words.length <= sides.length && words.every((word) => valid.get(sides[0]!)!(word))
}

/** Whether programs that display mail take a declaration, for `@supports`. */
export function supportOf(declaration: string): Match {
  const [property = '', value = ''] = declaration.split(':', 2).map((part) => part.trim())
  const name = aliases.get(property) ?? property
  if (!properties.has(name) && !sidesOf.has(name)) return 1
  return isTaken(property, value, noProperties) ? 2 : /^[a-z]+$/.test(value) ? 0 : 1
}

const noProperties: ReadonlySet<string> = new Set()

/** The declarations of a style that decide whether a text can be seen, and those of `others`. */
export function declarationsIn(style: string, others = noProperties): ReadonlyDeclarations {
  return others.size === 0 ? usualDeclarations(style) : readDeclarations(style, others)
}

const usualDeclarations = remembered(
  (style) => readDeclarations(style, noProperties),
  (found) => [...found].reduce((sum, [name, { value }]) => sum + 200 + 2 * (name.length + value.length), 0),
)

/** The same, which may be changed. */
export function readDeclarations(style: string, others: ReadonlySet<string>): Declarations {
  const found: Declarations = new Map()
  for (const [property, { value, important }] of declarationsOf(style, (name, given) => isTaken(name, given, others)))
    for (const [name, one] of longhands(aliases.get(property) ?? property, value)) {
      if (!important && found.get(name)?.important === true) continue
      found.delete(name)
      found.set(name, { value: name.startsWith('--') ? one.slice(0, longestValue + 1) : one.slice(0, longestValue), important })
    }
  return found
}

/** What a declaration sets: a shorthand sets those that it stands for. */
function longhands(property: string, value: string): [string, string][] {
  if (property.startsWith('--')) return [[property, value]]
  if (value.length > longestValue && !mayBeLong.test(property)) return [[undecided, '']]
  if (unknownFunctions.test(value) || (value === 'inherit' && notInherited.test(property))) return [[undecided, '']]
  if (substitution.test(value)) return [[property, value]]
  const sides = sidesOf.get(property)
  if (sides !== undefined) {
    const words = wordsIn(value)
    return sides.map((side, index) => [side, words[index] ?? words[index % 2] ?? words[0] ?? ''])
  }
  if (property === 'font') return [['font-size', fontSizeIn(value) ?? (everywhere.test(value) ? value : 'medium')]]
  if (property !== 'background') return [[property, value]]
  const color = wordsIn(value).find(isColor) ?? 'transparent'
  const image = /(?:url|gradient|image|image-set|cross-fade|element|paint)\(/.test(value) ? value : 'none'
  const clip = /(?:^|\s)text(?:$|\s)/.test(value) ? 'text' : 'border-box'
  return [
    ['background-color', everywhere.test(value) ? value : color],
    ['background-image', image],
    ['background-clip', clip],
  ]
}

/** Adds what is declared later with the same weight. An important declaration of an earlier layer holds. */
export function addDeclarations(earlier: Declarations, later: ReadonlyDeclarations): void {
  for (const [property, declared] of later) {
    const before = earlier.get(property)
    if (before?.important === true) {
      if (!declared.important) continue
      // what the element itself declares is in no layer, and is the last
      if (before.layer !== undefined && before.layer !== declared.layer) continue
    }
    earlier.delete(property)
    earlier.set(property, declared)
  }
}

/** The values of variables of an element, null where a value is none, and those around it. */
export interface Variables {
  own: ReadonlyMap<string, string | null>
  outer: Variables | null
  depth: number
}

/** Levels of variables, after which they are copied into one. */
const maxLevels = 200

/** The value of a variable that is not worked out. */
export const undecidable = 'x'.repeat(longestValue + 1)

function inherited(name: string, around: Variables | null): string | null | undefined {
  for (let one = around; one !== null; one = one.outer) if (one.own.has(name)) return one.own.get(name)
  return undefined
}

/** The variables of an element with these styles. */
export function variablesIn(around: Variables | null, styles: Styles): Variables | null {
  const own = new Map<string, string | null>()
  for (const [name, value] of styles) if (name.startsWith('--')) own.set(name, value === invalidValue ? null : value)
  if (own.size === 0) return around
  if ((around?.depth ?? 0) < maxLevels) return { own, outer: around, depth: (around?.depth ?? 0) + 1 }
  for (let one = around; one !== null; one = one.outer)
    for (const [name, value] of one.own) if (!own.has(name)) own.set(name, value)
  return { own, outer: null, depth: 1 }
}

const invalidValue = ';'

/**
 * The styles of an element: of its attributes, its rules and its own style, the weakest first, with the variables that it declares; `around` are
 * those of the elements around it, and `whole` those of the document.
 */
export function stylesOf(
  layers: readonly ReadonlyDeclarations[],
  around: Variables | null,
  whole: ReadonlyMap<string, Declared>,
): Styles {
  const all: Declarations = new Map()
  for (const layer of layers) addDeclarations(all, layer)
  const known = (name: string): string | undefined => {
    if (whole.get(name)?.value === undecidable) return undecidable
    const own = all.get(name)?.value
    if (own === 'initial') return undefined
    if (own !== undefined && !everywhere.test(own)) return own
    const found = inherited(name, around)
    return found === undefined ? whole.get(name)?.value : (found ?? undefined)
  }
  const styles = new Map<string, string>()
  const reset = all.get('all')
  for (const [property, { value, important }] of all) {
    if (property.startsWith('--')) {
      const own = known(property)
      const resolved = own !== undefined && substitution.test(own) ? withVariables(own, known) : own
      styles.set(property, resolved === null ? undecidable : (resolved ?? invalidValue))
      continue
    }
    if (property === 'all') {
      for (const [name] of styles)
        if (!name.startsWith('--') && (important || all.get(name)?.important !== true)) styles.delete(name)
      for (const name of ['color', 'font-size', 'visibility', 'text-indent', 'letter-spacing', 'display'])
        if (!styles.has(name)) styles.set(name, value)
      continue
    }
    if (reset?.important === true && !important) continue
    // that of another layer
    if (value === 'revert-layer') styles.set(undecided, '')
    const resolved = substitution.test(value) ? withVariables(value, known) : value
    if (resolved === undefined) continue
    if (resolved === null) styles.set(undecided, '')
    else
      for (const [name, one] of longhands(property, resolved)) {
        styles.delete(name)
        styles.set(name, one)
      }
  }
  return styles
}

/** The value with its variables; undefined where one is not known, as the property is not set then, null where it takes too much to put them in. */
function withVariables(value: string, known: (name: string) => string | undefined): string | undefined | null {
  let found = value
  for (let step = 0; step < maxSteps && found.length <= longestValue; step += 1) {
    const start = found.search(substitution)
    if (start === -1) return found
    const end = closing(found, start + 4)
    const within = found.slice(start + 4, end)
    const comma = within.indexOf(',')
    const name = (comma === -1 ? within : within.slice(0, comma)).trim()
    const stands = known(name) ?? (comma === -1 ? undefined : within.slice(comma + 1).trim())
    if (stands === undefined) return undefined
    found = `${found.slice(0, start)}${stands}${found.slice(end + 1)}`
  }
  return null
}
