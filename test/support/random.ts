/** A number from 0 to below another. */
export type Random = (below: number) => number

export function pick<Item>(items: readonly Item[], random: Random): Item {
  const item = items[random(items.length)]
  if (item === undefined) throw new Error('nothing to pick from')
  return item
}

// Mulberry32: small, and the same on every machine.
export function randomFrom(start: number): Random {
  let state = start >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}
