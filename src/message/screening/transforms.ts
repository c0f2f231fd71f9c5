import { functionsIn, measureOf, wordsIn } from './lengths.ts'

/** Pixels before the start of a page where nobody can scroll, and after it where nobody does. */
const before = 600
const after = 5000

/** What a percentage is taken to be of, in pixels: a box, and the element itself. */
const whole = 400
const own = 200

/** True for a place that nobody sees. */
export function isFar(value: string | undefined, base = whole): boolean {
  const place = measureOf(value, base)
  return place <= -before || place >= after
}

/** The same for a shift by the size of the element itself. */
function isShiftedFar(value: string | undefined): boolean {
  return isFar(value, own)
}

/** True if a transformation makes what is inside too small to be seen, or moves it far away. */
export function isTransformedAway({ transform = '', scale = '', translate = '', rotate = '' }: Record<string, string>): boolean {
  if (wordsIn(scale).slice(0, 2).some(isTiny) || wordsIn(translate).slice(0, 2).some(isShiftedFar)) return true
  const [axis = '', angle, , last] = wordsIn(rotate)
  if (/^[xy]$/.test(axis) ? isOnEdge(angle) : last !== undefined && isOnEdge(last)) return true
  return functionsIn(transform).some(({ name, given }) => {
    const [first, second, third, fourth] = given
    switch (name) {
      case 'scale':
      case 'scale3d':
        return isTiny(first) || isTiny(second)
      case 'scalex':
      case 'scaley':
        return isTiny(first)
      case 'translate':
      case 'translate3d':
        return isShiftedFar(first) || isShiftedFar(second)
      case 'translatex':
      case 'translatey':
        return isShiftedFar(first)
      case 'rotatex':
      case 'rotatey':
      case 'skewx':
      case 'skewy':
      case 'skew':
        return isOnEdge(first) || isOnEdge(second)
      case 'rotate3d':
        return measureOf(third) === 0 && isOnEdge(fourth)
      case 'matrix':
        return isFlat([first, second, third, fourth]) || isFar(given[4]) || isFar(given[5])
      case 'matrix3d':
        return isFlat([first, second, given[4], given[5]]) || isFar(given[12]) || isFar(given[13])
      default:
        return false
    }
  })
}

function isTiny(value: string | undefined): boolean {
  return Math.abs(measureOf(value, 1)) < 0.1
}

/** True if it is seen from the side. */
function isOnEdge(angle: string | undefined): boolean {
  return Math.abs(Math.cos((measureOf(angle) * Math.PI) / 180)) < 0.1
}

function isFlat(matrix: (string | undefined)[]): boolean {
  const [a = 0, b = 0, c = 0, d = 0] = matrix.map((part) => measureOf(part))
  return Math.abs(a * d - b * c) < 0.01
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
