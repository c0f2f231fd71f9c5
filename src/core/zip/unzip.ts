import { type FileHandle, open } from 'node:fs/promises'
import { crc32, createInflateRaw, inflateRawSync } from 'node:zlib'
import { Fault } from '../fault.ts'
import { through } from './zip.ts'
import { Turns } from '../paced-work.ts'

/** A file in a ZIP. */
export interface ZipEntry {
  /** The bytes of its name as latin1, so that each takes one byte. `nameOf` decodes it. */
  rawName: string
  utf8: boolean
  /** Bytes according to the archive; the actual bytes are counted. */
  size: number
  packed: number
  crc: number
  method: number
  /** Why it cannot be read; null for most. */
  flaw: 'encrypted' | 'unknown method' | 'no file' | null
  offset: number
}

/** The name of a file. */
export function nameOf({ rawName, utf8 }: Pick<ZipEntry, 'rawName' | 'utf8'>): string {
  return utf8 ? Buffer.from(rawName, 'latin1').toString('utf8') : rawName
}

/** Maximum files of an archive, and bytes of its directory. */
const maxEntries = 300_000
const maxDirectory = 48 * 1024 * 1024

/** Bytes of the directory that are read at once; never less than a record. */
const directoryPiece = 1024 * 1024
const longestRecord = 46 + 3 * 0xffff

/** Bytes that opening a file counts for. */
const look = 256

/** The largest single read. */
const small = 64 * 1024

const most32 = 0xffffffff

/**
 * A ZIP on disk (APPNOTE 6.3.10, with ZIP64), its files read one by one. Names are only names: nothing is written anywhere. Throws Fault
 * invalid_request, code `bad_archive`, for what is no ZIP or damaged.
 */
export class ZipFile {
  readonly entries: ZipEntry[]
  readonly #file: FileHandle
  /** Bytes unpacked so far, refused files included, and 256 for each opened file. */
  unpacked = 0

  private constructor(file: FileHandle, entries: ZipEntry[]) {
    this.#file = file
    this.entries = entries
  }

  static async open(path: string): Promise<ZipFile> {
    const file = await open(path, 'r')
    try {
      return new ZipFile(file, await directoryOf(file))
    } catch (error) {
      await file.close()
      throw error instanceof RangeError ? damaged('its directory is truncated') : error
    }
  }

  /** The bytes of a file; throws Fault, code `too_large`, above `most` bytes. */
  async *read(entry: ZipEntry, most: number): AsyncGenerator<Buffer> {
    this.unpacked += look
    if (entry.flaw !== null) throw damaged(`${entryName(entry)} cannot be read (${entry.flaw})`)
    const head = await at(this.#file, entry.offset, 30)
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

async function* pieces(file: FileHandle, start: number, length: number): AsyncGenerator<Buffer> {
  for (let done = 0; done < length;) {
    const chunk = await at(file, start + done, Math.min(small, length - done))
    if (chunk.length === 0) throw damaged('it ends in the middle of a file')
    done += chunk.length
    yield chunk
  }
}

async function directoryOf(file: FileHandle): Promise<ZipEntry[]> {
  const { count, length, start } = await endOf(file)
  if (count > maxEntries) throw damaged(`it names more than ${maxEntries} files`)
  if (length > maxDirectory) throw damaged(`its directory has more than ${maxDirectory} bytes`)
  const entries: ZipEntry[] = []
  const starts = new Float64Array(count)
  const ends = new Float64Array(count)
  const turns = new Turns()
  let list: Buffer = Buffer.alloc(0)
  let place = 0
  let before = 0
  for (let number = 0; number < count; number += 1) {
    if (list.length - place < longestRecord && before + list.length < length) {
      before += place
      place = 0
      list = await at(file, start + before, Math.min(directoryPiece, length - before))
    }
    if (list.readUInt32LE(place) !== 0x02014b50) throw damaged('its directory is not a list of files')
    const [name, extra, comment] = [28, 30, 32].map((field) => list.readUInt16LE(place + field)) as [number, number, number]
    const end = place + 46 + name + extra + comment
    if (end > list.length) throw damaged('its directory is truncated')
    const entry = entryOf(list.subarray(place, end), name, extra)
    starts[number] = entry.offset
    // the local header has the name too, which may be shorter there: it is not counted
    ends[number] = entry.offset + 30 + entry.packed
    if (!entry.rawName.endsWith('/')) entries.push(entry)
    place = end
    if (turns.due) await turns.yield()
  }
  starts.sort()
  await turns.yield()
  ends.sort()
  requireApart(starts, ends, start)
  return entries
}

/** Throws Fault `bad_archive` when files overlap: a small archive could then unpack to a huge size (zip bomb). */
function requireApart(starts: Float64Array, ends: Float64Array, directory: number): void {
  // in order, each must end before the next begins: only then do those that end by a place number those that begin before it
  if (ends.some((end, index) => end > (starts[index + 1] ?? directory))) throw damaged('files in it overlap')
}

function entryOf(record: Buffer, nameLength: number, extraLength: number): ZipEntry {
  const flags = record.readUInt16LE(8)
  const method = record.readUInt16LE(10)
  const octets = record.subarray(46, 46 + nameLength)
  const long = wideOf(record.subarray(46 + nameLength, 46 + nameLength + extraLength))
  // in this order, and only those that are too long for their place (4.5.3)
  const size = wide(record.readUInt32LE(24), long)
  const packed = wide(record.readUInt32LE(20), long)
  const offset = wide(record.readUInt32LE(42), long)
  const mode = record.readUInt16LE(4) >> 8 === 3 ? record.readUInt16LE(40) & 0o170000 : 0
  const isFile = mode === 0 || mode === 0o100000
  return {
    rawName: octets.toString('latin1'),
    utf8: (flags & 0x800) !== 0,
    size,
    packed,
    crc: record.readUInt32LE(16),
    method,
    flaw: flags & 1 ? 'encrypted' : method !== 0 && method !== 8 ? 'unknown method' : isFile ? null : 'no file',
    offset,
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
async function endOf(file: FileHandle): Promise<{ count: number; length: number; start: number }> {
  const { size } = await file.stat()
  // the comment behind the record has 65535 bytes at most
  const from = Math.max(0, size - 22 - 0xffff - 20)
  const tail = await at(file, from, size - from)
  const place = endIn(tail)
  const short = {
    count: tail.readUInt16LE(place + 10),
    length: tail.readUInt32LE(place + 12),
    start: tail.readUInt32LE(place + 16),
  }
  if (place < 20 || tail.readUInt32LE(place - 20) !== 0x07064b50) return short
  const record = await at(file, number64(tail, place - 20 + 8), 56)
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

async function at(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length)
  let done = 0
  while (done < length) {
    const { bytesRead } = await file.read(buffer, done, length - done, position + done)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return buffer.subarray(0, done)
}

function number64(buffer: Buffer, place: number): number {
  const value = buffer.readBigUInt64LE(place)
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw damaged('a size in it is wrong')
  return Number(value)
}

function entryName(entry: ZipEntry): string {
  return JSON.stringify(nameOf(entry).slice(0, 100))
}

function tooLarge(entry: ZipEntry, most: number): Fault {
  return new Fault('invalid_request', `The file ${entryName(entry)} in the archive has more than ${most} bytes.`, {
    code: 'too_large',
  })
}

function damaged(why: string): Fault {
  return new Fault('invalid_request', `The archive is not a readable ZIP file: ${why}.`, { code: 'bad_archive' })
}
