import { type FileHandle, open } from 'node:fs/promises'
import { crc32, createInflateRaw, inflateRawSync } from 'node:zlib'
import { Fault } from '../fault.ts'
import { release } from '../memory.ts'
import { through } from './zip.ts'
import { Turns } from '../work/paced-work.ts'

/** A file in a ZIP. */
export interface ZipEntry {
  name: string
  /** Bytes according to the archive; the actual bytes are counted. */
  size: number
  packed: number
  crc: number
  method: number
  /** Why it cannot be read; null for most. */
  flaw: 'encrypted' | 'unknown method' | 'no file' | 'name too long' | null
  offset: number
  /** The place of its record in the directory, in bytes. */
  place: number
}

interface Directory {
  count: number
  length: number
  start: number
}

/** Maximum files of an archive, and bytes of its directory. */
const maxEntries = 300_000
const maxDirectory = 64 * 1024 * 1024

/** Bytes of the directory that are read at once, and of its usual and its largest records. */
const window = 512 * 1024
const usualRecord = 256
const maxRecord = 46 + 3 * 0xffff

/** The longest name of a file that is read, in bytes. */
const longestName = 4096

/** Bytes that opening a file counts for. */
const look = 256

/** The largest single read. */
const small = 64 * 1024

const most32 = 0xffffffff

/** The bytes of a ZIP. `at` gives fewer than `length` at their end. */
interface Source {
  size(): Promise<number>
  at(position: number, length: number): Promise<Buffer>
  close(): Promise<void>
}

/**
 * A ZIP on disk or in memory (APPNOTE 6.3.10, with ZIP64), its directory read in pieces and its files one by one: nothing of it stays in memory. Names are only
 * names: nothing is written anywhere. Throws Fault invalid_request, code `bad_archive`, for what is no ZIP or damaged.
 */
export class ZipFile {
  /** Bytes of all files according to the archive. */
  readonly size: number
  readonly #file: Source
  readonly #directory: Directory
  /** Bytes unpacked so far, refused files included, and 256 for each opened file. */
  unpacked = 0

  private constructor(file: Source, directory: Directory, size: number) {
    this.#file = file
    this.#directory = directory
    this.size = size
  }

  static async open(path: string): Promise<ZipFile> {
    return ZipFile.#of(sourceOf(await open(path, 'r')))
  }

  /** A ZIP in memory. */
  static within(bytes: Buffer): Promise<ZipFile> {
    const at = async (position: number, length: number): Promise<Buffer> => bytes.subarray(position, position + length)
    return ZipFile.#of({ size: async () => bytes.length, at, close: async () => undefined })
  }

  static async #of(file: Source): Promise<ZipFile> {
    try {
      const directory = await endOf(file)
      return new ZipFile(file, directory, await checkedSize(file, directory))
    } catch (error) {
      await file.close()
      throw error instanceof RangeError ? damaged('its directory is truncated') : error
    }
  }

  /** The files in the order of the directory. */
  async *entries(): AsyncGenerator<ZipEntry> {
    for await (const entry of records(this.#file, this.#directory)) if (!isFolder(entry)) yield entry
  }

  /** The file whose record is at this place of the directory, which `entries` gave. */
  async entryAt(place: number): Promise<ZipEntry> {
    const { start } = this.#directory
    const record = await this.#file.at(start + place, usualRecord)
    const size = sizeOf(record)
    return entryOf(size <= record.length ? record : await this.#file.at(start + place, size), place)
  }

  /** The bytes of a file; throws Fault, code `too_large`, above `most` bytes. */
  async *read(entry: ZipEntry, most: number): AsyncGenerator<Buffer> {
    this.unpacked += look
    if (entry.flaw !== null) throw damaged(`${entryName(entry)} cannot be read (${entry.flaw})`)
    const head = await this.#file.at(entry.offset, 30)
    if (head.length < 30 || head.readUInt32LE(0) !== 0x04034b50) throw damaged(`${entryName(entry)} is not where it should be`)
    const start = entry.offset + 30 + head.readUInt16LE(26) + head.readUInt16LE(28)
    let size = 0
    let crc = 0
    try {
      for await (const chunk of this.#unpacked(entry, start)) {
        size += chunk.length
        if (size > most) throw tooLarge(entry, most)
        crc = crc32(chunk, crc)
        yield chunk
      }
    } catch (error) {
      throw (error as NodeJS.ErrnoException).code?.match(/^Z_|^ERR_BUFFER_TOO_LARGE$/)
        ? damaged(`${entryName(entry)} cannot be unpacked`)
        : error
    }
    if (crc !== entry.crc || size !== entry.size) throw damaged(`${entryName(entry)} does not match its checksum`)
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  async *#unpacked({ method, packed, size }: ZipEntry, start: number): AsyncGenerator<Buffer> {
    const octets = pieces(this.#file, start, packed)
    if (method !== 0 && size <= small && packed <= small) {
      // in one step, to no more than its declared size, which counts even if it fails
      const most = Math.max(size, 1)
      for await (const chunk of octets) {
        this.unpacked += most
        yield inflateRawSync(chunk, { maxOutputLength: most })
      }
      return
    }
    for await (const chunk of method === 0 ? octets : through(octets, createInflateRaw())) {
      this.unpacked += chunk.length
      yield chunk
    }
  }
}

async function* pieces(file: Source, start: number, length: number): AsyncGenerator<Buffer> {
  for (let done = 0; done < length;) {
    const chunk = await file.at(start + done, Math.min(small, length - done))
    if (chunk.length === 0) throw damaged('it ends in the middle of a file')
    done += chunk.length
    yield chunk
  }
}

/** Every record of the directory. */
async function* records(file: Source, { count, length, start }: Directory): AsyncGenerator<ZipEntry> {
  const turns = new Turns()
  let piece: Buffer = Buffer.alloc(0)
  let from = 0
  let place = 0
  for (let number = 0; number < count; number += 1) {
    if (place + Math.min(maxRecord, length - place) > from + piece.length) {
      release(piece)
      from = place
      piece = await file.at(start + from, Math.min(window, length - from))
    }
    const record = piece.subarray(place - from)
    if (record.length < 46) throw damaged('its directory is truncated')
    if (record.readUInt32LE(0) !== 0x02014b50) throw damaged('its directory is not a list of files')
    const size = sizeOf(record)
    if (size > record.length) throw damaged('its directory is truncated')
    yield entryOf(record, place)
    place += size
    if (turns.due) await turns.yield()
  }
}

/**
 * Bytes of all files according to the archive. Throws Fault `bad_archive` when they take more of it than there is, as overlapping files do: a small
 * archive could then unpack to a huge size (zip bomb).
 */
async function checkedSize(file: Source, directory: Directory): Promise<number> {
  const { count, length, start } = directory
  if (count > maxEntries) throw damaged(`it names more than ${maxEntries} files`)
  if (length > maxDirectory) throw damaged(`its directory has more than ${maxDirectory} bytes`)
  let size = 0
  let taken = 0
  for await (const entry of records(file, directory)) {
    // the local header has the name too, which may be shorter there: it is not counted
    taken += 30 + entry.packed
    if (taken > start || entry.offset + 30 + entry.packed > start) throw damaged('files in it overlap')
    if (!isFolder(entry)) size += entry.size
  }
  return size
}

function isFolder({ name }: ZipEntry): boolean {
  return name.endsWith('/')
}

function sizeOf(record: Buffer): number {
  return 46 + record.readUInt16LE(28) + record.readUInt16LE(30) + record.readUInt16LE(32)
}

function entryOf(record: Buffer, place: number): ZipEntry {
  const flags = record.readUInt16LE(8)
  const method = record.readUInt16LE(10)
  const nameEnd = 46 + record.readUInt16LE(28)
  const octets = record.subarray(46, nameEnd)
  const long = wideOf(record.subarray(nameEnd, nameEnd + record.readUInt16LE(30)))
  // in this order, and only those that are too long for their place (4.5.3)
  const size = wide(record.readUInt32LE(24), long)
  const packed = wide(record.readUInt32LE(20), long)
  const offset = wide(record.readUInt32LE(42), long)
  const mode = record.readUInt16LE(4) >> 8 === 3 ? record.readUInt16LE(40) & 0o170000 : 0
  const isFile = mode === 0 || mode === 0o100000
  return {
    // of a longer name its end, which says the kind of the file
    name: octets.subarray(-longestName).toString(flags & 0x800 ? 'utf8' : 'latin1'),
    size,
    packed,
    crc: record.readUInt32LE(16),
    method,
    flaw:
      octets.length > longestName
        ? 'name too long'
        : flags & 1
          ? 'encrypted'
          : method !== 0 && method !== 8
            ? 'unknown method'
            : isFile
              ? null
              : 'no file',
    offset,
    place,
  }
}

/** The numbers of the ZIP64 field, if there is one. */
function wideOf(extra: Buffer): number[] {
  for (let place = 0; place + 4 <= extra.length;) {
    const length = extra.readUInt16LE(place + 2)
    if (extra.readUInt16LE(place) === 1) {
      const field = extra.subarray(place + 4, place + 4 + length)
      // no more than three are ever long (4.5.3)
      return Array.from({ length: Math.min(3, field.length >> 3) }, (_, index) => number64(field, 8 * index))
    }
    place += 4 + length
  }
  return []
}

function wide(value: number, long: number[]): number {
  if (value !== most32) return value
  const whole = long.shift()
  if (whole === undefined) throw damaged('a size is missing')
  return whole
}

/** The position of the directory, from the record at the end of the file. */
async function endOf(file: Source): Promise<Directory> {
  const size = await file.size()
  // the comment behind the record has 65535 bytes at most
  const from = Math.max(0, size - 22 - 0xffff - 20)
  const tail = await file.at(from, size - from)
  const place = endIn(tail)
  const short = {
    count: tail.readUInt16LE(place + 10),
    length: tail.readUInt32LE(place + 12),
    start: tail.readUInt32LE(place + 16),
  }
  if (place < 20 || tail.readUInt32LE(place - 20) !== 0x07064b50) return short
  const record = await file.at(number64(tail, place - 20 + 8), 56)
  if (record.length < 56 || record.readUInt32LE(0) !== 0x06064b50) throw damaged('its end is damaged')
  return { count: number64(record, 32), length: number64(record, 40), start: number64(record, 48) }
}

/** The position of the end record whose comment ends where the file does, as a comment may contain the signature of such a record. */
function endIn(tail: Buffer): number {
  const mark = Buffer.from('PK\x05\x06', 'latin1')
  for (let place = tail.lastIndexOf(mark); place !== -1; place = place === 0 ? -1 : tail.lastIndexOf(mark, place - 1)) {
    if (place + 22 <= tail.length && place + 22 + tail.readUInt16LE(place + 20) === tail.length) return place
  }
  throw damaged('its end is missing')
}

function sourceOf(file: FileHandle): Source {
  const at = async (position: number, length: number): Promise<Buffer> => {
    const buffer = Buffer.alloc(length)
    let done = 0
    while (done < length) {
      const { bytesRead } = await file.read(buffer, done, length - done, position + done)
      if (bytesRead === 0) break
      done += bytesRead
    }
    return buffer.subarray(0, done)
  }
  return { size: async () => (await file.stat()).size, at, close: () => file.close() }
}

function number64(buffer: Buffer, place: number): number {
  const value = buffer.readBigUInt64LE(place)
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw damaged('a size in it is wrong')
  return Number(value)
}

function entryName({ name }: ZipEntry): string {
  return JSON.stringify(name.slice(0, 100))
}

function tooLarge(entry: ZipEntry, most: number): Fault {
  return new Fault('invalid_request', `The file ${entryName(entry)} in the archive has more than ${most} bytes.`, {
    code: 'too_large',
  })
}

function damaged(why: string): Fault {
  return new Fault('invalid_request', `The archive is not a readable ZIP file: ${why}.`, { code: 'bad_archive' })
}
