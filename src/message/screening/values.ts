import { colorOf } from './colors.ts'
import { functionsIn, measureOf, wordsIn } from './lengths.ts'

const inner = 'flow flow-root flex grid table ruby math'
const single = new Set(
  (
    'none contents list-item run-in block inline inline-block inline-flex inline-grid inline-table table-row table-cell table-row-group ' +
    'table-header-group table-footer-group table-column table-column-group table-caption ruby-base ruby-text ' +
    `-webkit-box -webkit-inline-box -webkit-flex -webkit-inline-flex ${inner}`
  ).split(' '),
)
const outside = /^(?:block|inline|run-in)$/
const inside = new Set(inner.split(' '))

/** Sizes of fonts by name, in pixels. */
export const fontSizes: ReadonlyMap<string, number> = new Map(
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

const isPlace = (value: string) => value === 'auto' || isLength(value, true)
const isBoxSize = (value: string) =>
  /^(?:auto|none|(?:-webkit-|-moz-)?(?:min-content|max-content|fit-content|fill-available)|stretch|fit-content\(.{0,60}\))$/.test(
    value,
  ) || isLength(value)
export const isColor = (value: string) => value === 'currentcolor' || colorOf(value) !== undefined
const isFlow = (value: string) => /^(?:visible|hidden|clip|scroll|auto|overlay)$/.test(value)

/** What programs that display mail take for a value of a property; they ignore any other, so that the one before it holds. */
export const valid: ReadonlyMap<string, (value: string) => boolean> = new Map<string, (value: string) => boolean>([
  ['all', () => false],
  ['display', isDisplay],
  ['visibility', (value) => /^(?:visible|hidden|collapse)$/.test(value)],
  ['content-visibility', (value) => /^(?:visible|hidden|auto)$/.test(value)],
  ['opacity', (value) => !/[a-z]$/.test(value) && !Number.isNaN(measureOf(value, 1))],
  ['zoom', (value) => /^(?:normal|reset)$/.test(value) || measureOf(value, 1) >= 0],
  [
    'font',
    (value) => fontSizeIn(value) !== undefined || /^(?:caption|icon|menu|message-box|small-caption|status-bar)$/.test(value),
  ],
  ['font-size', (value) => fontSizes.has(value) || isLength(value)],
  ['color', isColor],
  ['-webkit-text-fill-color', isColor],
  ['background-color', isColor],
  ['background', isBackground],
  ['position', (value) => /^(?:static|relative|absolute|fixed|(?:-webkit-)?sticky)$/.test(value)],
  ['clip', (value) => value === 'auto' || /^rect\([^()]{1,100}\)$/.test(value)],
  [
    'clip-path',
    (value) => /^(?:none|(?:(?:inset|circle|ellipse|polygon|path|rect|xywh|shape|url)\(.{0,300})|[a-z]{1,8}-box)/.test(value),
  ],
  [
    'filter',
    (value) =>
      isFunctions(value, /^(?:blur|brightness|contrast|drop-shadow|grayscale|hue-rotate|invert|opacity|saturate|sepia|url)$/),
  ],
  [
    'transform',
    (value) => isFunctions(value, /^(?:(?:translate|scale|rotate|skew)(?:3d|[xyz])?|matrix(?:3d)?|perspective)$/, true),
  ],
  [
    'scale',
    (value) => value === 'none' || wordsIn(value).every((word) => /[\d.%)]$/.test(word) && !Number.isNaN(measureOf(word, 1))),
  ],
  ['translate', (value) => value === 'none' || wordsIn(value).every((word) => isLength(word, true))],
  ['text-indent', (value) => wordsIn(value).some((word) => isLength(word, true))],
  ['letter-spacing', (value) => value === 'normal' || isLength(value, true)],
  ['line-height', (value) => value === 'normal' || measureOf(value, 1) >= 0],
  ...['left', 'top', 'right', 'bottom', 'margin-left', 'margin-top', 'margin-right', 'margin-bottom'].map(
    (name) => [name, isPlace] as const,
  ),
  ...['padding-left', 'padding-top', 'padding-right', 'padding-bottom'].map(
    (name) => [name, (value: string) => isLength(value)] as const,
  ),
  ...['height', 'max-height', 'min-height', 'width', 'max-width', 'min-width'].map((name) => [name, isBoxSize] as const),
  ...['overflow-x', 'overflow-y'].map((name) => [name, isFlow] as const),
])

function isDisplay(value: string): boolean {
  const words = value.split(/\s{1,9}/)
  if (words.length === 1) return single.has(value)
  const rest = words.filter((word) => word !== 'list-item')
  if (rest.length < words.length - 1 || rest.length > 2) return false
  const isList = rest.length < words.length
  const outer = rest.filter((word) => outside.test(word)).length
  const others = rest.filter((word) => inside.has(word) && (!isList || word.startsWith('flow'))).length
  return outer <= 1 && others <= 1 && outer + others === rest.length
}

/** True for a size: a number only if it is 0. */
function isLength(value: string, mayBeNegative = false): boolean {
  const size = measureOf(value, 16)
  // what is computed to less than nothing is 0
  const isSize = mayBeNegative || value.endsWith(')') ? !Number.isNaN(size) : size >= 0
  return isSize && !/(?:deg|grad|rad|turn)$/.test(value) && (/[a-z%)]$/.test(value) || Number(value) === 0)
}

function isFunctions(value: string, names: RegExp, hasNumbers = false): boolean {
  if (value === 'none') return true
  const words = wordsIn(value)
  const calls = functionsIn(value).filter(({ name }) => names.test(name))
  if (words.length === 0 || !words.every((word) => word.endsWith(')') && names.test(word.slice(0, word.indexOf('(')))))
    return false
  return (
    !hasNumbers ||
    calls.every(
      ({ name, given }) =>
        given.length > 0 &&
        given.every((one) => !Number.isNaN(measureOf(one, 1)) && !(name.startsWith('scale') && /[a-z]$/.test(one))),
    )
  )
}

const backgroundWords =
  /^(?:none|repeat|repeat-x|repeat-y|no-repeat|space|round|scroll|fixed|local|left|right|top|bottom|center|cover|contain|auto|border-box|padding-box|content-box|text|transparent|currentcolor)$/

/** True for words of a background of which one at most is a colour; commas are between layers. */
function isBackground(value: string): boolean {
  let colors = 0
  for (const word of wordsIn(value.replace(/,\s{0,9}(?![^(]{0,300}\))/g, ' '))) {
    if (
      /^(?:url|image|image-set|-webkit-image-set|cross-fade|element|paint|(?:-[a-z]{1,6}-)?(?:repeating-)?[a-z]{1,7}-gradient)\(/.test(
        word,
      )
    )
      continue
    if (isColor(word)) colors += 1
    else if (!backgroundWords.test(word) && !isLength(word, true)) return false
  }
  return colors <= 1 && value !== ''
}

/** The size in a `font`, which has a family after it. */
export function fontSizeIn(font: string): string | undefined {
  const words = wordsIn(font)
  const at = words.findIndex((word) => fontSizes.has(word) || (isLength(word) && !/^\d+$/.test(word)) || word === '0')
  const hasFamily = words.slice(at + 1).some((word) => /^["a-z-]/.test(word))
  return at === -1 || !hasFamily ? undefined : words[at]
}
