/** Tries at most, each of which runs what found the fault once, and milliseconds after which there is no other. */
const [maxTries, maxTime] = [400, 15_000]

/** Removes pieces, smaller and smaller, as long as the fault stays: of bytes, or of a list. */
export async function shrunk<Whole extends { readonly length: number; slice(from: number, to?: number): Whole }>(
  whole: Whole,
  join: (before: Whole, after: Whole) => Whole,
  hasFault: (whole: Whole) => Promise<boolean>,
): Promise<Whole> {
  let small = whole
  let tries = 0
  const end = performance.now() + maxTime
  const mayTry = (): boolean => tries < maxTries && performance.now() < end
  for (let size = Math.ceil(small.length / 2); size >= 1 && mayTry(); size = Math.floor(size / 2)) {
    for (let at = 0; at < small.length && mayTry();) {
      const without = join(small.slice(0, at), small.slice(at + size))
      tries += 1
      if (await hasFault(without)) small = without
      else at += size
    }
  }
  return small
}
