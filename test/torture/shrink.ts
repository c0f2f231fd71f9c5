/** Tries at most, each of which runs what found the fault once, and milliseconds after which there is no other. */
const [maxTries, maxTime] = [400, 15_000]

/** Removes pieces of some bytes, smaller and smaller, as long as the fault stays. */
export async function shrunk(bytes: Buffer, hasFault: (bytes: Buffer) => Promise<boolean>): Promise<Buffer> {
  return smaller(bytes, (whole, from, to) => Buffer.concat([whole.subarray(0, from), whole.subarray(to)]), hasFault)
}

/** Does so with what is in a list, such as the lines of a dialogue. */
export async function shrunkList<Item>(
  items: readonly Item[],
  hasFault: (items: readonly Item[]) => Promise<boolean>,
): Promise<readonly Item[]> {
  return smaller(items, (whole, from, to) => whole.toSpliced(from, to - from), hasFault)
}

async function smaller<Whole extends { length: number }>(
  whole: Whole,
  without: (whole: Whole, from: number, to: number) => Whole,
  hasFault: (whole: Whole) => Promise<boolean>,
): Promise<Whole> {
  let small = whole
  let tries = 0
  const end = performance.now() + maxTime
  const mayTry = (): boolean => tries < maxTries && performance.now() < end
  for (let size = Math.ceil(small.length / 2); size >= 1 && mayTry(); size = Math.floor(size / 2)) {
    for (let at = 0; at < small.length && mayTry();) {
      const less = without(small, at, at + size)
      tries += 1
      if (await hasFault(less)) small = less
      else at += size
    }
  }
  return small
}
