import { functionsIn, measureOf, wordsIn } from './lengths.ts'

/** Pixels before the start of a page where nobody can scroll, and after it where nobody does. */
const before = 600
const after = 5000

/** What a percentage is taken to be of, in pixels: a box, the element itself, and the window. */
const whole = 1000
const own = 1000
const ownHeight = 200
const clipped = 400
const windowWidth = 1000
const windowHeight = 800

/** Where an element is for what is around it, in pixels, and how much larger it is drawn. */
export interface Shift {
  x: number
  y: number
  /** The paddings of all around, which move what is inside, or do not, as in an element of a line. */
  paddingX: number
  paddingY: number
  scaleX: number
  scaleY: number
}

/** True for a place that nobody sees, `padding` further or not. */
export function isFarAway(place: number, padding = 0): boolean {
  return place <= -before || place + padding >= after
}

/** True unless an element has a fixed place outside of the window. */
export function isOnScreen(styles: ReadonlyMap<string, string>): boolean {
  if (styles.get('position') !== 'fixed') return true
  const [left, top] = [measureOf(styles.get('left'), windowWidth), measureOf(styles.get('top'), windowHeight)]
  const [right, bottom] = [measureOf(styles.get('right'), windowWidth), measureOf(styles.get('bottom'), windowHeight)]
  return !(left >= windowWidth || top >= windowHeight || right >= windowWidth || bottom >= windowHeight)
}

/** Where an element with these styles is, in another. */
export function shiftOf(around: Shift, styles: ReadonlyMap<string, string>, size: number): Shift {
  const shift = { ...around }
  const measured = (property: string, base = whole) => measureOf(styles.get(property), base, size)
  const move = (x: number, y: number) => {
    if (!Number.isNaN(x)) shift.x += x * shift.scaleX
    if (!Number.isNaN(y)) shift.y += y * shift.scaleY
  }
  move(measured('margin-left'), measured('margin-top'))
  // a margin that is larger than any page moves what is inside too
  if (measured('margin-right') <= -before && Number.isNaN(measured('margin-left'))) move(measured('margin-right'), 0)
  shift.paddingX += (measured('padding-left') || 0) * shift.scaleX
  shift.paddingY += (measured('padding-top') || 0) * shift.scaleY
  if (/^(?:absolute|fixed|relative)$/.test(styles.get('position') ?? '')) {
    const [left, top] = [measured('left'), measured('top')]
    move(Number.isNaN(left) ? -measured('right') : left, Number.isNaN(top) ? -measured('bottom') : top)
  }
  const zoom = measured('zoom', 1)
  if (!Number.isNaN(zoom)) enlarge(shift, zoom, zoom)
  const [x, y] = wordsIn(styles.get('translate') ?? '')
  move(measureOf(x, own, size), measureOf(y, ownHeight, size))
  const [scaleX, scaleY = scaleX] = wordsIn(styles.get('scale') ?? '')
  enlarge(shift, measureOf(scaleX, 1), measureOf(scaleY, 1))
  turn(shift, wordsIn(styles.get('rotate') ?? ''))
  transform(shift, styles.get('transform') ?? '', size, move)
  if (isTurnedAway(styles)) enlarge(shift, 0, 0)
  return shift
}

/** True for an element whose back is not drawn and is in front, or that is turned or scaled around a place far away or at its edge. */
function isTurnedAway(styles: ReadonlyMap<string, string>): boolean {
  const turns = functionsIn(styles.get('transform') ?? '')
  const [axis = '', angle = axis] = wordsIn(styles.get('rotate') ?? '')
  const angles = [...turns.filter(({ name }) => name.startsWith('rotate')).map(({ given }) => given.at(-1)), angle]
  const isTurned = angles.some((one) => Math.cos((measureOf(one) * Math.PI) / 180) < -0.1)
  if (isTurned && styles.get('backface-visibility') === 'hidden') return true
  const origin = wordsIn(styles.get('transform-origin') ?? '')
  const isFar = origin.some((word) => Math.abs(measureOf(word, 200)) >= 400)
  return (
    (isFar && (turns.length > 0 || styles.has('scale') || styles.has('rotate'))) ||
    (isTurned && origin.some((word) => /^(?:0|left|top)/.test(word)))
  )
}

function enlarge(shift: Shift, x: number, y: number): void {
  if (!Number.isNaN(x)) shift.scaleX *= x
  if (!Number.isNaN(y)) shift.scaleY *= y
}

/** An element that is turned away from who looks is the narrower. */
function turn(shift: Shift, words: readonly string[]): void {
  const [axis = '', second, third, last] = words
  if (axis === 'x') enlarge(shift, 1, cosine(second))
  else if (axis === 'y') enlarge(shift, cosine(second), 1)
  else if (last !== undefined && measureOf(third) === 0) enlarge(shift, cosine(last), cosine(last))
}

function cosine(angle: string | undefined): number {
  return Math.abs(Math.cos((measureOf(angle) * Math.PI) / 180))
}

function transform(shift: Shift, value: string, size: number, move: (x: number, y: number) => void): void {
  let [turnX, turnY] = [0, 0]
  for (const { name, given } of functionsIn(value)) {
    const [first, second = '', third, fourth] = given
    const numbers = given.map((one) => measureOf(one))
    switch (name) {
      case 'scale':
      case 'scale3d':
        enlarge(shift, measureOf(first, 1), measureOf(second === '' ? first : second, 1))
        break
      case 'scalex':
        enlarge(shift, measureOf(first, 1), 1)
        break
      case 'scaley':
        enlarge(shift, 1, measureOf(first, 1))
        break
      case 'translate':
      case 'translate3d':
        move(measureOf(first, own, size), measureOf(second, ownHeight, size))
        break
      case 'translatex':
        move(measureOf(first, own, size), 0)
        break
      case 'translatey':
        move(0, measureOf(first, ownHeight, size))
        break
      case 'translatez':
      case 'perspective':
        // nearer than who looks, or far behind
        if (name === 'translatez' && Math.abs(numbers[0]!) > 1 && value.includes('perspective(')) enlarge(shift, 0, 0)
        break
      case 'rotatex':
        turnX += numbers[0]!
        break
      case 'rotatey':
        turnY += numbers[0]!
        break
      case 'skew':
      case 'skewx':
      case 'skewy':
        if (cosine(first) < 0.1 || cosine(second) < 0.1) enlarge(shift, 0, 0)
        break
      case 'rotate3d':
        if (measureOf(third) === 0) enlarge(shift, cosine(fourth), cosine(fourth))
        break
      case 'matrix':
      case 'matrix3d': {
        const at = name === 'matrix' ? [0, 1, 2, 3, 4, 5] : [0, 1, 4, 5, 12, 13]
        const [a, b, c, d, x, y] = at.map((index) => numbers[index] ?? 0) as [number, number, number, number, number, number]
        move(x, y)
        const flat = Math.sqrt(Math.abs(a * d - b * c)) / Math.abs(name === 'matrix3d' ? (numbers[15] ?? 1) : 1)
        enlarge(shift, flat, flat)
        break
      }
      default:
    }
  }
  if (turnX !== 0) enlarge(shift, 1, cosine(`${turnX}`))
  if (turnY !== 0) enlarge(shift, cosine(`${turnY}`), 1)
}

/** True if a `clip-path` leaves nothing to be seen. */
export function isClippedAway(value: string): boolean {
  return functionsIn(value).some(({ name, given }) => {
    const inner = given.slice(0, Math.max(0, given.indexOf('round')) || undefined)
    if (name === 'inset') {
      const [top, right = top, bottom = top, left = right] = inner.map((side) => measureOf(side, clipped))
      return top! + bottom! >= clipped * 0.97 || right! + left! >= clipped * 0.97
    }
    if (name === 'rect' || name === 'xywh') {
      const [top = 0, right = 0, bottom = 0, left = 0] = inner.map((side) =>
        side === 'auto' ? Number.NaN : measureOf(side, clipped),
      )
      return name === 'xywh' ? bottom <= 1 || left <= 1 : bottom - top <= 1 || right - left <= 1
    }
    if (name === 'path') return (given.join(' ').match(/[\d.]+/g)?.length ?? 0) < 5
    if (name === 'circle' || name === 'ellipse')
      return Math.abs(measureOf(given[0], clipped)) <= 3 || /-\d{3,}|(?:^|\s)\d{4,}/.test(given.slice(1).join(' '))
    if (name === 'polygon') {
      const points = given.map((point) => wordsIn(point).map((place) => measureOf(place, clipped)))
      return [0, 1].some((axis) => {
        const places = points.map((point) => point[axis] ?? 0).filter((place) => !Number.isNaN(place))
        return (
          places.length > 0 &&
          (Math.max(...places) - Math.min(...places) <= 3 || Math.min(...places) >= 3000 || Math.max(...places) <= -200)
        )
      })
    }
    return false
  })
}
