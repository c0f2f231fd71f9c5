import { Fault } from '../../core/fault.ts'
import { release } from '../../core/memory.ts'
import { Turns } from '../../core/paced-work.ts'
import type { ZipEntry, ZipFile } from '../../core/zip/unzip.ts'

/** One item of an imported file: an e-mail, a text message, or the reason for its absence. */
export type Incoming =
  | { email: Buffer; told: unknown }
  | { sms: unknown; media: (Buffer | undefined)[] }
  | { flaw: 'too_large' | 'unreadable' | 'ignored' }

/** The progress of reading in bytes: of the file, or of its unpacked contents. */
export interface ReadProgress {
  done: number
  total: number
}

/** The limits of an import. */
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

  get entries(): ZipEntry[] {
    return this.#archive.entries
  }

  async *stream(entry: ZipEntry): AsyncGenerator<Buffer> {
    yield* this.#read(entry, Infinity)
  }

  /** A message in a file of its own; `exact` when its line ends must not be converted. */
  async message(entry: ZipEntry, told: unknown, exact = false): Promise<Incoming> {
    try {
      const octets = await this.octets(entry, this.bounds.message)
      const email = exact ? octets : await canonical(octets, this.bounds.message)
      return email ? { email, told } : { flaw: 'too_large' }
    } catch (error) {
      return { flaw: flawOf(error) }
    }
  }

  /** The bytes of a small file. */
  async octets(entry: ZipEntry, most: number): Promise<Buffer> {
    // the size that the archive declares: reading throws at the end when it differs
    const octets = Buffer.allocUnsafeSlow(Math.min(entry.size, most))
    let length = 0
    for await (const chunk of this.#read(entry, most)) {
      length += chunk.copy(octets, Math.min(length, octets.length))
      release(chunk)
    }
    return octets
  }

  /** Refused files count too, and reduce the remaining limit. */
  async *#read(entry: ZipEntry, most: number): AsyncGenerator<Buffer> {
    this.#require()
    for await (const chunk of this.#archive.read(entry, most)) {
      this.#require()
      yield chunk
    }
  }

  #require(): void {
    if (this.#archive.unpacked > this.bounds.unpacked) throw tooMuch(this.bounds.unpacked)
  }
}

/** The flaw that a Fault means for one file; faults of the whole archive are thrown on. */
export function flawOf(error: unknown): 'too_large' | 'unreadable' {
  const code = error instanceof Fault ? error.code : undefined
  if (code === 'too_large') return code
  if (code === 'bad_archive') return 'unreadable'
  throw error
}

function tooMuch(most: number): Fault {
  return new Fault(
    'invalid_request',
    `The archive holds more than ${most} octets unpacked (8 times transfer.upload_limit). Split it into several.`,
    { code: 'import_too_large' },
  )
}

/** Bytes processed in one turn of the event loop. */
const slice = 1024 * 1024

const lf = 0x0a

/** Converts Unix line ends to CRLF; bytes with other line ends are returned unchanged. Null above `most` bytes. */
export async function canonical(octets: Buffer, most: number): Promise<Buffer | null> {
  if (octets.includes('\r\n')) return octets
  const turns = new Turns()
  let lines = 0
  for (let at = octets.indexOf(lf), seen = 0; at !== -1; at = octets.indexOf(lf, at + 1)) {
    lines += 1
    if (at - seen < slice) continue
    seen = at
    if (turns.due) await turns.yield()
  }
  if (lines === 0) return octets
  if (octets.length + lines > most) return null
  const mail = Buffer.allocUnsafeSlow(octets.length + lines)
  let length = 0
  for (let start = 0; start < octets.length; start += slice) {
    const end = Math.min(octets.length, start + slice)
    for (let at = start; at < end; at += 1) {
      if (octets[at] === lf) mail[length++] = 0x0d
      mail[length++] = octets[at]!
    }
    if (turns.due) await turns.yield()
  }
  release(octets)
  return mail
}
