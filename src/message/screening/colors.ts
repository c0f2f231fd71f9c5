import { ofLab, ofOklab, ofSpace } from './color-spaces.ts'
import { functionsIn, measureOf, wordsIn } from './lengths.ts'

/** Red, green and blue, each 0 to 255, and how opaque it is, 1 where left out. */
export type Color = readonly [number, number, number, number?]

export const black: Color = [0, 0, 0]
export const white: Color = [255, 255, 255]

/** Colours by name (CSS Color 4), and those of the system on a light page. */
const named = new Map(
  (
    'aliceblue f0f8ff antiquewhite faebd7 aqua 00ffff aquamarine 7fffd4 azure f0ffff beige f5f5dc bisque ffe4c4 black 000000 blanchedalmond ffebcd blue 0000ff ' +
    'blueviolet 8a2be2 brown a52a2a burlywood deb887 cadetblue 5f9ea0 chartreuse 7fff00 chocolate d2691e coral ff7f50 cornflowerblue 6495ed cornsilk fff8dc ' +
    'crimson dc143c cyan 00ffff darkblue 00008b darkcyan 008b8b darkgoldenrod b8860b darkgray a9a9a9 darkgreen 006400 darkgrey a9a9a9 darkkhaki bdb76b ' +
    'darkmagenta 8b008b darkolivegreen 556b2f darkorange ff8c00 darkorchid 9932cc darkred 8b0000 darksalmon e9967a darkseagreen 8fbc8f darkslateblue 483d8b ' +
    'darkslategray 2f4f4f darkslategrey 2f4f4f darkturquoise 00ced1 darkviolet 9400d3 deeppink ff1493 deepskyblue 00bfff dimgray 696969 dimgrey 696969 ' +
    'dodgerblue 1e90ff firebrick b22222 floralwhite fffaf0 forestgreen 228b22 fuchsia ff00ff gainsboro dcdcdc ghostwhite f8f8ff gold ffd700 goldenrod daa520 ' +
    'gray 808080 green 008000 greenyellow adff2f grey 808080 honeydew f0fff0 hotpink ff69b4 indianred cd5c5c indigo 4b0082 ivory fffff0 khaki f0e68c ' +
    'lavender e6e6fa lavenderblush fff0f5 lawngreen 7cfc00 lemonchiffon fffacd lightblue add8e6 lightcoral f08080 lightcyan e0ffff lightgoldenrodyellow fafad2 ' +
    'lightgray d3d3d3 lightgreen 90ee90 lightgrey d3d3d3 lightpink ffb6c1 lightsalmon ffa07a lightseagreen 20b2aa lightskyblue 87cefa lightslategray 778899 ' +
    'lightslategrey 778899 lightsteelblue b0c4de lightyellow ffffe0 lime 00ff00 limegreen 32cd32 linen faf0e6 magenta ff00ff maroon 800000 ' +
    'mediumaquamarine 66cdaa mediumblue 0000cd mediumorchid ba55d3 mediumpurple 9370db mediumseagreen 3cb371 mediumslateblue 7b68ee mediumspringgreen 00fa9a ' +
    'mediumturquoise 48d1cc mediumvioletred c71585 midnightblue 191970 mintcream f5fffa mistyrose ffe4e1 moccasin ffe4b5 navajowhite ffdead navy 000080 ' +
    'oldlace fdf5e6 olive 808000 olivedrab 6b8e23 orange ffa500 orangered ff4500 orchid da70d6 palegoldenrod eee8aa palegreen 98fb98 paleturquoise afeeee ' +
    'palevioletred db7093 papayawhip ffefd5 peachpuff ffdab9 peru cd853f pink ffc0cb plum dda0dd powderblue b0e0e6 purple 800080 rebeccapurple 663399 ' +
    'red ff0000 rosybrown bc8f8f royalblue 4169e1 saddlebrown 8b4513 salmon fa8072 sandybrown f4a460 seagreen 2e8b57 seashell fff5ee sienna a0522d ' +
    'silver c0c0c0 skyblue 87ceeb slateblue 6a5acd slategray 708090 slategrey 708090 snow fffafa springgreen 00ff7f steelblue 4682b4 tan d2b48c teal 008080 ' +
    'thistle d8bfd8 tomato ff6347 turquoise 40e0d0 violet ee82ee wheat f5deb3 white ffffff whitesmoke f5f5f5 yellow ffff00 yellowgreen 9acd32 ' +
    'canvas ffffff canvastext 000000 window ffffff windowtext 000000 field ffffff fieldtext 000000 buttonface efefef buttontext 000000 linktext 0000ee ' +
    'activecaption ffffff appworkspace ffffff background ffffff buttonhighlight efefef buttonshadow efefef captiontext 000000 inactivecaption ffffff infobackground ffffff ' +
    'infotext 000000 menu ffffff menutext 000000 scrollbar ffffff threeddarkshadow 000000 threedface efefef threedhighlight 000000 threedlightshadow 000000'
  )
    .split(' ')
    .map((word, index, all) => [word, all[index + 1]!] as const)
    .filter((_, index) => index % 2 === 0),
)

/** A colour that nothing behind is seen through. */
type Solid = readonly [number, number, number]

/** Functions whose colour only a browser can work out. */
const unknown = /^(?:contrast-color|device-cmyk|env|attr)$/

/** A colour of CSS: null for one that is not worked out, undefined for what is none. */
export function colorOf(value: string, depth = 0): Color | 'transparent' | null | undefined {
  if (value === 'transparent') return 'transparent'
  const name = named.get(value)
  if (name !== undefined) return ofHex(name)
  if (value.startsWith('#')) return /^#[\da-f]{3,8}$/.test(value) ? ofHex(value.slice(1)) : undefined
  if (/^-webkit-link$|^(?:activetext|visitedtext|highlight|mark|graytext|accentcolor|buttonborder)$/.test(value)) return null
  const whole = closed(value)
  const [call, ...more] = depth > 2 || whole === undefined ? [] : functionsIn(whole)
  if (!call || more.length > 0 || !value.startsWith(`${call.name}(`)) return undefined
  if (/^[^(]{1,20}\([^()]*,/.test(value) && !takesCommas(call)) return undefined
  return ofFunction(call.name, call.given, depth)
}

/** True if a colour may be written with commas (CSS Color 4, 4.1.1), and is written so throughout. */
function takesCommas({ name, given }: { name: string; given: readonly string[] }): boolean {
  if (/^(?:color-mix|light-dark|contrast-color|device-cmyk|env|attr)$/.test(name)) return true
  if (!/^(?:rgb|hsl)a?$/.test(name) || given.some((part) => part === 'none' || /[\s/]/.test(part.trim()))) return false
  return name.startsWith('rgb') || given.slice(1, 3).every((part) => part.endsWith('%'))
}

/** A function whose open parentheses are closed, as they end with the value; undefined where something follows them. */
function closed(value: string): string | undefined {
  const depth = value.split('(').length - value.split(')').length
  if (depth > 0 && depth < 5) return value + ')'.repeat(depth)
  return depth === 0 && value.endsWith(')') ? value : undefined
}

/** A colour of an attribute of HTML, which may lack the hash. */
export function colorOfAttribute(value: string): string {
  return /^[\da-f]{3}$|^[\da-f]{6}$/.test(value) ? `#${value}` : value
}

function ofFunction(name: string, all: readonly string[], depth: number): Color | 'transparent' | null | undefined {
  if (unknown.test(name)) return null
  if (name === 'light-dark') return colorOf(all[0] ?? '', depth + 1)
  if (name === 'color-mix') return mixed(all.slice(/^in\s/.test(all[0] ?? '') ? 1 : 0), depth)
  let given = [...all]
  if (given[0] === 'from') {
    const from = colorOf(given[1] ?? '', depth + 1)
    if (!/^rgba?$/.test(name) || !Array.isArray(from)) return null
    const [red, green, blue, alpha = 1] = from as Color
    const parts: Readonly<Record<string, number>> = { r: red, g: green, b: blue, alpha }
    given = given.slice(2).map((part) => `${parts[part] ?? part}`)
  }
  const space = name === 'color' ? given.shift() : undefined
  const [first, second, third, alpha = '1', ...more] = given.filter((part) => part !== '')
  const parts = partsOf(name, [first, second, third])
  if (more.length > 0 || !parts || parts.some(Number.isNaN)) return undefined
  const opacity = alpha === 'none' ? 0 : measureOf(alpha, 1)
  if (Number.isNaN(opacity)) return undefined
  const color = ofParts(name, space, parts as [number, number, number])
  return color ? withAlpha(color, opacity) : color
}

function withAlpha([red, green, blue]: readonly number[], alpha: number): Color | 'transparent' {
  if (alpha <= 0) return 'transparent'
  return alpha >= 1 ? [red!, green!, blue!] : [red!, green!, blue!, alpha]
}

function ofParts(name: string, space: string | undefined, parts: readonly [number, number, number]): Solid | null | undefined {
  const [one, two, three] = parts
  switch (name) {
    case 'rgb':
    case 'rgba':
      return parts.map((part) => Math.min(255, Math.max(0, part))) as unknown as Solid
    case 'hsl':
    case 'hsla':
      return ofHsl(one, Math.min(1, Math.max(0, two)), Math.min(1, Math.max(0, three)))
    case 'hwb':
      return two + three >= 1
        ? grey(two / (two + three))
        : (ofHsl(one, 1, 0.5).map((part) => part * (1 - two - three) + 255 * two) as unknown as Solid)
    case 'color':
      return ofSpace(space ?? '', parts)
    case 'lab':
    case 'oklab':
      return name === 'lab' ? ofLab(parts) : ofOklab(parts)
    default: {
      const angle = (three * Math.PI) / 180
      const lab = [one, two * Math.cos(angle), two * Math.sin(angle)] as const
      return name === 'lch' ? ofLab(lab) : ofOklab(lab)
    }
  }
}

/** The colour between two, each with its part in percent (CSS Color 5). */
function mixed(given: readonly string[], depth: number): Color | 'transparent' | null | undefined {
  if (given.length !== 2) return undefined
  const [first, second] = given.map((one) => {
    const words = wordsIn(one)
    const part = words.find((word) => word.endsWith('%') || word.startsWith('calc('))
    return { color: colorOf(words.find((word) => word !== part) ?? '', depth + 1), part: measureOf(part, 1) }
  })
  if (!first || !second || first.color === undefined || second.color === undefined) return undefined
  if (first.color === null || second.color === null) return null
  const part = Number.isNaN(first.part) ? (Number.isNaN(second.part) ? 0.5 : 1 - second.part) : first.part
  const rest = Number.isNaN(second.part) ? 1 - part : second.part
  const sum = part + rest
  if (!(sum > 0)) return undefined
  const [one, other] = [first.color, second.color].map((color) => (color === 'transparent' ? ([0, 0, 0, 0] as const) : color))
  const [share, otherShare] = [(part / sum) * (one![3] ?? 1), (rest / sum) * (other![3] ?? 1)]
  const alpha = share + otherShare
  if (alpha === 0) return 'transparent'
  return withAlpha(
    [0, 1, 2].map((index) => (one![index]! * share + other![index]! * otherShare) / alpha),
    alpha * Math.min(1, sum),
  )
}

/** The numbers of a colour: fractions of 1, but red, green and blue of 255, hues in degrees, and Lab as it is. */
function partsOf(name: string, given: (string | undefined)[]): number[] | undefined {
  const [first, second, third] = given.map((part) => (part === 'none' ? '0' : part))
  if (/^rgba?$/.test(name))
    return [first, second, third].every(isNumber) ? [first, second, third].map((part) => measureOf(part, 255)) : undefined
  if (/^(?:hsla?|hwb)$/.test(name)) return [measureOf(first), fraction(second), fraction(third)]
  if (name === 'color') return [first, second, third].map((part) => measureOf(part, 1))
  if (/^(?:ok)?(?:lab|lch)$/.test(name)) {
    const isOk = name.startsWith('ok')
    const most = isOk ? 0.4 : name === 'lch' ? 150 : 125
    const light = measureOf(first, isOk ? 1 : 100)
    return [
      Math.min(isOk ? 1 : 100, Math.max(0, light)),
      measureOf(second, most),
      name.endsWith('lch') ? measureOf(third) : measureOf(third, most),
    ]
  }
  return undefined
}

/** A percentage, also without its sign. */
function fraction(part: string | undefined): number {
  return measureOf(part, 1) / (part?.endsWith('%') ? 1 : 100)
}

function grey(lightness: number): Solid {
  return [lightness * 255, lightness * 255, lightness * 255]
}

function ofHex(hex: string): Color | 'transparent' | undefined {
  if (hex.length === 5 || hex.length === 7) return undefined
  const short = hex.length < 6
  const at = (index: number) => {
    const digits = short ? (hex[index] ?? '').repeat(2) : hex.slice(index * 2, index * 2 + 2)
    return digits === '' ? 255 : Number.parseInt(digits, 16)
  }
  return withAlpha([at(0), at(1), at(2)], at(3) / 255)
}

function ofHsl(hue: number, saturation: number, lightness: number): Solid {
  const part = (offset: number) => {
    const at = (offset + hue / 30) % 12
    return 255 * (lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(at - 3, 9 - at, 1)))
  }
  return [part(0), part(8), part(4)]
}

/** A colour on another. */
export function over([red, green, blue, alpha = 1]: Color, [r, g, b]: Color): Color {
  return [r + (red - r) * alpha, g + (green - g) * alpha, b + (blue - b) * alpha]
}

function isNumber(part: string | undefined): boolean {
  return part === undefined || !/[a-z]$/.test(part)
}
