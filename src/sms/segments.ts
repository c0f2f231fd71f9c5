/** The characters of GSM 03.38's basic table. */
const basic = new Set(
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà',
)

/** The characters of its extension table, each of which takes two septets. */
const extended = new Set('^{}\\[~]|€\f')

/**
 * The number of segments of a text: GSM-7 (160 septets, or 153 each) where every character has a code, else UCS-2 (70 units, or 67 each).
 */
export function segmentsOf(text: string): number {
  const characters = Array.from(text)
  const costs = characters.map((character) => (basic.has(character) ? 1 : extended.has(character) ? 2 : 0))
  if (!costs.includes(0)) return parts(costs, 160, 153)
  return parts(
    characters.map((character) => character.length),
    70,
    67,
  )
}

/** A character of two units is never split. */
function parts(costs: readonly number[], alone: number, each: number): number {
  if (costs.reduce((sum, cost) => sum + cost, 0) <= alone) return 1
  let count = 1
  let left = each
  for (const cost of costs) {
    if (cost > left) {
      count += 1
      left = each
    }
    left -= cost
  }
  return count
}
