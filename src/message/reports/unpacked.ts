import { gunzipSync, inflateRawSync } from 'node:zlib'
import { Unzip, type UnzipDecoder } from 'fflate'

/** Octets of a report as it came, and as it is read. */
const maxPacked = 4 * 1024 * 1024
const maxUnpacked = 10 * 1024 * 1024

/**
 * The text in a file: in the first entry of a ZIP that is no folder, in a gzip, or as it stands. Undefined when there is none, it is damaged,
 * or has more than 4 MiB packed or 10 MiB unpacked, which are never in memory.
 */
export function unpacked(octets: Buffer): string | undefined {
  if (octets.length > maxPacked) return undefined
  try {
    const plain = isGzip(octets)
      ? gunzipSync(octets, { maxOutputLength: maxUnpacked })
      : octets.subarray(0, 4).toString('latin1') === 'PK\x03\x04'
        ? firstEntry(octets)
        : octets
    return plain?.toString('utf8').replace(/^[\uFEFF\s]+/, '')
  } catch {
    // zlib's: damaged, or too large
    return undefined
  }
}

function isGzip(octets: Buffer): boolean {
  return octets[0] === 0x1f && octets[1] === 0x8b
}

// The library finds where the entry is; the inflating is left to zlib, which stops at a limit.
function firstEntry(octets: Buffer): Buffer | undefined {
  let entry: Entry | undefined
  const unzip = new Unzip((file) => {
    if (entry || file.name.endsWith('/')) return
    entry = { deflated: file.compression === 8, chunks: [], whole: false }
    file.ondata = (error, chunk, final) => {
      if (error || !entry || entry.whole) return
      entry.chunks.push(chunk)
      entry.whole = final
    }
    file.start()
  })
  unzip.register(Deflated)
  unzip.push(octets, true)
  if (!entry?.whole) return undefined
  const packed = Buffer.concat(entry.chunks)
  return entry.deflated ? inflateRawSync(packed, { maxOutputLength: maxUnpacked }) : packed
}

interface Entry {
  deflated: boolean
  chunks: Uint8Array[]
  whole: boolean
}

/** Hands on what is deflated as it is. */
class Deflated implements UnzipDecoder {
  static readonly compression = 8
  ondata: UnzipDecoder['ondata'] = () => undefined

  push(chunk: Uint8Array<ArrayBuffer>, final: boolean): void {
    this.ondata(null, chunk, final)
  }
}
