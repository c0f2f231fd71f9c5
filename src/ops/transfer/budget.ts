import { Fault } from '../../core/fault.ts'
import { release } from '../../core/memory.ts'
import { Turns } from '../../core/work/paced-work.ts'
import type { ZipEntry, ZipFile } from '../../core/zip/unzip.ts'

/** One item of an imported file: an e-mail, a text message, or the reason for its absence. */
export type Incoming =
  | { email: Buffer; metadata: unknown }
  | { sms: unknown; media: (Buffer | undefined)[] }
  | { flaw: 'too_large' | 'unreadable' | 'ignored' }

/** The progress of reading in bytes: of the file, or of its unpacked contents. */
export interface ReadProgress {
  done: number
  total: number
}

export interface Bounds {
  /** Bytes of one message. */
  message: number
  /** Bytes that an archive may have unpacked. */
  unpacked: number
}

/** Reads from an archive, within a total limit. */
export class Budget {
  readonly bounds: Bounds
  readonly #archive: ZipFile

  constructor(archive: ZipFile, bounds: Bounds) {
    this.#archive = archive
    this.bounds = bounds
  }

  entries(): AsyncGenerator<ZipEntry> {
    return this.#archive.entries()
  }

  entryAt(place: number): Promise<ZipEntry> {
    return this.#archive.entryAt(place)
  }

  async *stream(entry: ZipEntry): AsyncGenerator<Buffer> {
    yield* this.#read(entry, Infinity)
  }

  /** A message in a file of its own; `exact` when its line ends must not be converted. */
  async message(entry: ZipEntry, metadata: unknown, exact = false): Promise<Incoming> {
    try {
      const bytes = await this.bytes(entry, this.bounds.message)
      const email = exact ? bytes : await canonical(bytes, this.bounds.message)
      return email ? { email, metadata: metadata } : { flaw: 'too_large' }
    } catch (error) {
      return { flaw: flawOf(error) }
    }
  }

  async bytes(entry: ZipEntry, max: number): Promise<Buffer> {
    // the size that the archive declares: reading throws at the end when it differs
    const bytes = Buffer.allocUnsafeSlow(Math.min(entry.size, max))
    let length = 0
    for await (const chunk of this.#read(entry, max)) {
      length += chunk.copy(bytes, Math.min(length, bytes.length))
      release(chunk)
    }
    return bytes
  }

  /** Refused files count too, and reduce the remaining limit. */
  async *#read(entry: ZipEntry, max: number): AsyncGenerator<Buffer> {
    this.#require()
    for await (const chunk of this.#archive.read(entry, max)) {
      this.#require()
      yield chunk
    }
  }

  #require(): void {
    if (this.#archive.unpacked <= this.bounds.unpacked) return
    throw new Fault(
      'invalid_request',
      `The contents of the archive exceed ${this.bounds.unpacked} bytes (8 times transfer.upload_limit). Split it into several.`,
      { code: 'import_too_large' },
    )
  }
}

/** The flaw that a Fault means for one file; faults of the whole archive are thrown on. */
export function flawOf(error: unknown): 'too_large' | 'unreadable' {
  const code = error instanceof Fault ? error.code : undefined
  if (code === 'too_large') return code
  if (code === 'bad_archive') return 'unreadable'
  throw error
}

/** Bytes processed in one turn of the event loop. */
const slice = 1024 * 1024

const lf = 0x0a

/** Converts Unix line ends to CRLF; bytes with other line ends are returned unchanged. Null above `max` bytes. */
export async function canonical(bytes: Buffer, max: number): Promise<Buffer | null> {
  if (bytes.includes('\r\n')) return bytes
  const turns = new Turns()
  let lines = 0
  for (let at = bytes.indexOf(lf), seen = 0; at !== -1; at = bytes.indexOf(lf, at + 1)) {
    lines += 1
    if (at - seen < slice) continue
    seen = at
    if (turns.due) await turns.yield()
  }
  if (lines === 0) return bytes
  if (bytes.length + lines > max) return null
  const mail = Buffer.allocUnsafeSlow(bytes.length + lines)
  let length = 0
  for (let start = 0; start < bytes.length; start += slice) {
    const end = Math.min(bytes.length, start + slice)
    for (let at = start; at < end; at += 1) {
      if (bytes[at] === lf) mail[length++] = 0x0d
      mail[length++] = bytes[at]!
    }
    if (turns.due) await turns.yield()
  }
  release(bytes)
  return mail
}
