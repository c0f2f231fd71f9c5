import { Fault } from '../../core/fault.ts'
import { release } from '../../core/memory.ts'
import { Turns } from '../../core/paced-work.ts'
import type { ZipEntry, ZipFile } from '../../core/zip/unzip.ts'

/** One thing that a file brings: an e-mail, a text message, or why there is none. */
export type Incoming =
  | { email: Buffer; told: unknown }
  | { sms: unknown; media: (Buffer | undefined)[] }
  | { flaw: 'too_large' | 'unreadable' | 'ignored' }

/** How far the reading is, in octets: of the file, or of what is packed in it. */
export interface ReadProgress {
  done: number
  total: number
}

/** Bounds of what is read. */
export interface Bounds {
  /** Octets of one message. */
  message: number
  /** Octets that an archive may hold unpacked. */
  unpacked: number
}

/** Reads from an archive, and no more than it may hold in all. */
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

  /** A message that is a file; `exact` when its line ends are not ours to mend. */
  async message(entry: ZipEntry, told: unknown, exact = false): Promise<Incoming> {
    try {
      const octets = await this.octets(entry, this.bounds.message)
      const email = exact ? octets : await canonical(octets, this.bounds.message)
      return email ? { email, told } : { flaw: 'too_large' }
    } catch (error) {
      return { flaw: flawOf(error) }
    }
  }

  /** Of a file that is not large. */
  async octets(entry: ZipEntry, most: number): Promise<Buffer> {
    // as many as the archive says: when there are more or fewer, reading throws in the end
    const octets = Buffer.allocUnsafeSlow(Math.min(entry.size, most))
    let length = 0
    for await (const chunk of this.#read(entry, most)) {
      length += chunk.copy(octets, Math.min(length, octets.length))
      release(chunk)
    }
    return octets
  }

  /** What is refused for its own sake counts too: the next that is read finds less. */
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

/** Which flaw of one file a Fault means; what concerns the whole archive is thrown on. */
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

/** Octets that are looked at before others have their turn. */
const slice = 1024 * 1024

const lf = 0x0a

/** Line ends as mail has them, where the file has only those of Unix; the octets as they were are given back then. Null when there are more than `most`. */
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
