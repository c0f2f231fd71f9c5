import { gunzipSync, inflateRawSync } from 'node:zlib'
import { Unzip, type UnzipDecoder } from 'fflate'

/** The largest compressed report in bytes. */
const maxCompressed = 4 * 1024 * 1024

/**
 * The text in a file: in the first entry of a ZIP that is not a directory, in a gzip, or as it is. Undefined when there is none, when it is
 * damaged, or above 4 MiB compressed or `longest` bytes decompressed. More than that is never in memory.
 */
export function unpacked(octets: Buffer, longest: number): string | undefined {
  if (octets.length > maxCompressed) return undefined
  try {
    const plain = isGzip(octets)
      ? gunzipSync(octets, { maxOutputLength: longest })
      : octets.subarray(0, 4).toString('latin1') === 'PK\x03\x04'
        ? firstEntry(octets, longest)
        : octets
    if (plain && plain.length > longest) return undefined
    return plain?.toString('utf8').replace(/^[\uFEFF\s]+/, '')
  } catch {
    // zlib's: damaged, or too large
    return undefined
  }
}

function isGzip(octets: Buffer): boolean {
  return octets[0] === 0x1f && octets[1] === 0x8b
}

// The library locates the entry; zlib inflates it, with a limit.
function firstEntry(octets: Buffer, longest: number): Buffer | undefined {
  let entry: { deflated: boolean; chunks: Uint8Array[]; complete: boolean } | undefined
  const unzip = new Unzip((file) => {
    if (entry || file.name.endsWith('/')) return
    entry = { deflated: file.compression === 8, chunks: [], complete: false }
    file.ondata = (error, chunk, final) => {
      if (error || !entry || entry.complete) return
      entry.chunks.push(chunk)
      entry.complete = final
    }
    file.start()
  })
  unzip.register(Deflated)
  unzip.push(octets, true)
  if (!entry?.complete) return undefined
  const compressed = Buffer.concat(entry.chunks)
  return entry.deflated ? inflateRawSync(compressed, { maxOutputLength: longest }) : compressed
}

/** Passes deflated data through unchanged. */
class Deflated implements UnzipDecoder {
  static readonly compression = 8
  ondata: UnzipDecoder['ondata'] = () => undefined

  push(chunk: Uint8Array<ArrayBuffer>, final: boolean): void {
    this.ondata(null, chunk, final)
  }
}
