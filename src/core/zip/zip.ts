import { crc32, createDeflateRaw, deflateRawSync } from 'node:zlib'
import { Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** A file to be put into a ZIP. */
export interface Packable {
  /** Its path in the archive, with `/`. */
  name: string
  /** Milliseconds since the epoch. */
  modified: number
  content: AsyncIterable<Uint8Array> | Uint8Array
}

interface Kept {
  name: Buffer
  modified: Buffer
  crc: number
  size: number
  packed: number
  offset: number
}

const small = 64 * 1024

/** Bytes that are deflated at a time: of a large chunk no more is in the stream's memory. */
const piece = 256 * 1024
const most32 = 0xffffffff
const most16 = 0xffff

/**
 * A ZIP, streamed as its files come (APPNOTE 6.3.10): each deflated, sizes and checksum behind it, with ZIP64 records so that neither files nor their
 * number have a bound. Of what has been written only the names are in memory.
 */
export async function* zip(files: AsyncIterable<Packable>): AsyncGenerator<Buffer> {
  const kept: Kept[] = []
  let at = 0
  for await (const { name, modified, content } of files) {
    const entry: Kept = { name: Buffer.from(name), modified: dosTime(modified), crc: 0, size: 0, packed: 0, offset: at }
    const head = localHeader(entry)
    at += head.length
    yield head
    for await (const chunk of deflated(content, entry)) {
      entry.packed += chunk.length
      at += chunk.length
      yield chunk
    }
    const descriptor = Buffer.alloc(24)
    descriptor.writeUInt32LE(0x08074b50, 0)
    descriptor.writeUInt32LE(entry.crc, 4)
    writeLong(descriptor, entry.packed, 8)
    writeLong(descriptor, entry.size, 16)
    at += descriptor.length
    yield descriptor
    kept.push(entry)
  }
  const start = at
  for (const entry of kept) {
    const record = directoryRecord(entry)
    at += record.length
    yield record
  }
  yield ending(kept.length, start, at - start)
}

/** Small data is deflated in one step: creating a stream takes longer than using it. */
async function* deflated(content: Packable['content'], entry: Kept): AsyncGenerator<Buffer> {
  if (content instanceof Uint8Array && content.length <= small) {
    entry.crc = crc32(content)
    entry.size = content.length
    // no more memory than it may need: otherwise each file of a few bytes takes 16 KiB until it is collected
    yield deflateRawSync(content, { chunkSize: Math.max(64, content.length) })
  } else yield* through(measured(content, entry), createDeflateRaw())
}

/** The content as it is, its checksum and size noted. */
async function* measured(content: Packable['content'], entry: Kept): AsyncGenerator<Uint8Array> {
  for await (const chunk of content instanceof Uint8Array ? [content] : content) {
    for (let start = 0; start < chunk.length; start += piece) {
      const part = chunk.subarray(start, start + piece)
      entry.crc = crc32(part, entry.crc)
      entry.size += part.length
      yield part
    }
  }
}

// Sizes follow the content (bit 3) in 8 bytes, as the ZIP64 field announces; names are UTF-8 (bit 11).
function localHeader({ name, modified }: Kept): Buffer {
  const head = Buffer.alloc(30)
  head.writeUInt32LE(0x04034b50, 0)
  head.writeUInt16LE(45, 4)
  head.writeUInt16LE(0x0808, 6)
  head.writeUInt16LE(8, 8)
  modified.copy(head, 10)
  head.writeUInt32LE(most32, 18)
  head.writeUInt32LE(most32, 22)
  head.writeUInt16LE(name.length, 26)
  head.writeUInt16LE(20, 28)
  return Buffer.concat([head, name, longs(0, 0)])
}

function directoryRecord({ name, modified, crc, size, packed, offset }: Kept): Buffer {
  const head = Buffer.alloc(46)
  head.writeUInt32LE(0x02014b50, 0)
  // made on a Unix, where a file's mode is 0600
  head.writeUInt16LE((3 << 8) | 45, 4)
  head.writeUInt16LE(45, 6)
  head.writeUInt16LE(0x0808, 8)
  head.writeUInt16LE(8, 10)
  modified.copy(head, 12)
  head.writeUInt32LE(crc, 16)
  head.writeUInt32LE(most32, 20)
  head.writeUInt32LE(most32, 24)
  head.writeUInt16LE(name.length, 28)
  head.writeUInt16LE(28, 30)
  head.writeUInt32LE(0o100600 * 0x10000, 38)
  head.writeUInt32LE(most32, 42)
  return Buffer.concat([head, name, longs(size, packed, offset)])
}

function ending(count: number, start: number, length: number): Buffer {
  const record = Buffer.alloc(56)
  record.writeUInt32LE(0x06064b50, 0)
  writeLong(record, 44, 4)
  record.writeUInt16LE((3 << 8) | 45, 12)
  record.writeUInt16LE(45, 14)
  writeLong(record, count, 24)
  writeLong(record, count, 32)
  writeLong(record, length, 40)
  writeLong(record, start, 48)
  const locator = Buffer.alloc(20)
  locator.writeUInt32LE(0x07064b50, 0)
  writeLong(locator, start + length, 8)
  locator.writeUInt32LE(1, 16)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(Math.min(count, most16), 8)
  end.writeUInt16LE(Math.min(count, most16), 10)
  end.writeUInt32LE(Math.min(length, most32), 12)
  end.writeUInt32LE(Math.min(start, most32), 16)
  return Buffer.concat([record, locator, end])
}

/** The ZIP64 field: numbers that may need 8 bytes. */
function longs(...values: number[]): Buffer {
  const field = Buffer.alloc(4 + 8 * values.length)
  field.writeUInt16LE(1, 0)
  field.writeUInt16LE(8 * values.length, 2)
  for (const [index, value] of values.entries()) writeLong(field, value, 4 + 8 * index)
  return field
}

function writeLong(buffer: Buffer, value: number, at: number): void {
  buffer.writeBigUInt64LE(BigInt(value), at)
}

/** Time and date as MS-DOS had them, which begin in 1980. */
function dosTime(milliseconds: number): Buffer {
  const date = new Date(Math.max(milliseconds, Date.UTC(1980, 0, 1)))
  const field = Buffer.alloc(4)
  field.writeUInt16LE((date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1), 0)
  const year = Math.min(date.getUTCFullYear() - 1980, 127)
  field.writeUInt16LE((year << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate(), 2)
  return field
}

/** The output of a transform stream over the source: stopping the iteration stops the source, and errors of the source are thrown here. */
export async function* through(octets: AsyncIterable<Uint8Array>, stream: Transform): AsyncGenerator<Buffer> {
  // its failure is the stream's, and thrown by the loop
  pipeline(Readable.from(octets), stream).catch(() => undefined)
  yield* stream as AsyncIterable<Buffer>
}
