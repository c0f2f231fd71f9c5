import { functionsIn, measureOf, wordsIn } from './lengths.ts'

/** Pixels before the start of a page where nobody can scroll, and after it where nobody does. */
const before = 600
const after = 5000

/** What a percentage is taken to be of, in pixels: a box, the element itself, and the window. */
const whole = 400
const own = 200
const windowWidth = 1000
const windowHeight = 800

/** Where an element is for what is around it, in pixels, and how much larger it is drawn. */
export interface Shift {
  x: number
  y: number
  scaleX: number
  scaleY: number
}

/** True for a place that nobody sees. */
export function isFarAway(place: number): boolean {
  return place <= -before || place >= after
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
  if (/^(?:absolute|fixed|relative)$/.test(styles.get('position') ?? '')) {
    const [left, top] = [measured('left'), measured('top')]
    move(Number.isNaN(left) ? -measured('right') : left, Number.isNaN(top) ? -measured('bottom') : top)
  }
  const zoom = measured('zoom', 1)
  if (!Number.isNaN(zoom)) enlarge(shift, zoom, zoom)
  const [x, y] = wordsIn(styles.get('translate') ?? '')
  move(measureOf(x, own, size), measureOf(y, own, size))
  const [scaleX, scaleY = scaleX] = wordsIn(styles.get('scale') ?? '')
  enlarge(shift, measureOf(scaleX, 1), measureOf(scaleY, 1))
  turn(shift, wordsIn(styles.get('rotate') ?? ''))
  transform(shift, styles.get('transform') ?? '', size, move)
  return shift
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
        move(measureOf(first, own, size), measureOf(second, own, size))
        break
      case 'translatex':
        move(measureOf(first, own, size), 0)
        break
      case 'translatey':
        move(0, measureOf(first, own, size))
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
        const flat = Math.sqrt(Math.abs(a * d - b * c))
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
      const [top, right = top, bottom = top, left = right] = inner.map((side) => measureOf(side, whole))
      return top! + bottom! >= whole * 0.99 || right! + left! >= whole * 0.99
    }
    if (name === 'rect' || name === 'xywh') {
      const [top = 0, right = 0, bottom = 0, left = 0] = inner.map((side) =>
        side === 'auto' ? Number.NaN : measureOf(side, whole),
      )
      return name === 'xywh' ? bottom <= 1 || left <= 1 : bottom - top <= 1 || right - left <= 1
    }
    if (name === 'path') return (given.join(' ').match(/[\d.]+/g)?.length ?? 0) < 5
    if (name === 'circle' || name === 'ellipse') return Math.abs(measureOf(given[0], whole)) < 1
    if (name === 'polygon') {
      const points = given.map((point) => wordsIn(point).map((place) => measureOf(place, whole)))
      return [0, 1].some((axis) => {
        const places = points.map((point) => point[axis] ?? 0).filter((place) => !Number.isNaN(place))
        return places.length > 0 && Math.max(...places) - Math.min(...places) <= 1
      })
    }
    return false
  })
}
