/** Tries at most, each of which runs what found the fault once, and milliseconds after which there is no other. */
const [maxTries, maxTime] = [400, 15_000]

/** Removes pieces of some bytes, smaller and smaller, as long as the fault stays. */
export async function shrunk(bytes: Buffer, hasFault: (bytes: Buffer) => Promise<boolean>): Promise<Buffer> {
  let small = bytes
  let tries = 0
  const end = performance.now() + maxTime
  const mayTry = (): boolean => tries < maxTries && performance.now() < end
  for (let size = Math.ceil(small.length / 2); size >= 1 && mayTry(); size = Math.floor(size / 2)) {
    for (let at = 0; at < small.length && mayTry();) {
      const without = Buffer.concat([small.subarray(0, at), small.subarray(at + size)])
      tries += 1
      if (await hasFault(without)) small = without
      else at += size
    }
  }
  return small
}
