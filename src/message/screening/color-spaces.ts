type Triple = readonly [number, number, number]

/** Linear red, green and blue (CSS Color 4, 18). */
type Linear = Triple

function encoded(linear: Linear): [number, number, number] {
  return linear.map((part) => {
    const size = Math.abs(part)
    const one = size <= 0.0031308 ? 12.92 * size : 1.055 * size ** (1 / 2.4) - 0.055
    return Math.min(255, Math.max(0, Math.sign(part) * one * 255))
  }) as [number, number, number]
}

function decoded(parts: Triple): Linear {
  return parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)) as unknown as Linear
}

function ofMatrix(matrix: readonly Triple[], [a, b, c]: Triple): Triple {
  return matrix.map(([x, y, z]) => x * a + y * b + z * c) as unknown as Triple
}

const linearOfXyz: readonly Triple[] = [
  [3.2405, -1.5371, -0.4985],
  [-0.9693, 1.876, 0.0416],
  [0.0556, -0.204, 1.0572],
]
const linearOfP3: readonly Triple[] = [
  [1.2249, -0.2247, 0],
  [-0.042, 1.0419, 0],
  [-0.0197, -0.0786, 1.0979],
]
const whiteD65: Triple = [0.9505, 1, 1.089]

/** Red, green and blue, 0 to 255, of a colour of OKLab: the lightness from 0 to 1. */
export function ofOklab([lightness, a, b]: Triple): Triple {
  const [l, m, s] = [
    lightness + 0.3963 * a + 0.2158 * b,
    lightness - 0.1056 * a - 0.0639 * b,
    lightness - 0.0895 * a - 1.2915 * b,
  ].map((part) => part ** 3) as [number, number, number]
  return encoded([
    4.0767 * l - 3.3077 * m + 0.231 * s,
    -1.2684 * l + 2.6098 * m - 0.3413 * s,
    -0.0042 * l - 0.7034 * m + 1.7076 * s,
  ])
}

/** The same of a colour of Lab: the lightness from 0 to 100. */
export function ofLab([lightness, a, b]: Triple): Triple {
  const middle = (lightness + 16) / 116
  const xyz = [middle + a / 500, middle, middle - b / 200].map(
    (part, index) => (part > 6 / 29 ? part ** 3 : (part - 16 / 116) / 7.787) * whiteD65[index]!,
  )
  return encoded(ofMatrix(linearOfXyz, xyz as unknown as Triple))
}

/** The same of a colour of `color()`; null for a space that is not worked out, undefined for none. */
export function ofSpace(space: string, parts: Triple): Triple | null | undefined {
  switch (space) {
    case 'srgb':
      return parts.map((part) => Math.min(255, Math.max(0, part * 255))) as unknown as Triple
    case 'srgb-linear':
      return encoded(parts)
    case 'display-p3':
      return encoded(ofMatrix(linearOfP3, decoded(parts)))
    case 'xyz':
    case 'xyz-d65':
    case 'xyz-d50':
      return encoded(ofMatrix(linearOfXyz, parts))
    case 'a98-rgb':
    case 'prophoto-rgb':
    case 'rec2020':
      return encoded(decoded(parts))
    default:
      return undefined
  }
}
