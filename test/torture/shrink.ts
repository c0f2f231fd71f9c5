/** Tries at most; each runs what found the fault once. */
const maxTries = 400

/** Removes pieces of some bytes, smaller and smaller, as long as the fault stays. */
export async function shrunk(bytes: Buffer, hasFault: (bytes: Buffer) => Promise<boolean>): Promise<Buffer> {
  let small = bytes
  let tries = 0
  for (let size = Math.ceil(small.length / 2); size >= 1 && tries < maxTries; size = Math.floor(size / 2)) {
    for (let at = 0; at < small.length && tries < maxTries;) {
      const without = Buffer.concat([small.subarray(0, at), small.subarray(at + size)])
      tries += 1
      if (await hasFault(without)) small = without
      else at += size
    }
  }
  return small
}
