import { randomUUID } from 'node:crypto'
import { release } from './memory.ts'
import { Turns } from './work/paced-work.ts'

/** Characters, or bytes, of a string that are written or read at once: a few milliseconds when all are escapes. */
const piece = 256 * 1024

/** Bytes of all strings of a value in UTF-8, without escapes, from which it is written in pieces. */
const long = 512 * 1024

/** Characters of a text that need not be counted, as they are 3 bytes at most. */
const short = 256

const quote = 0x22
const backslash = 0x5c

/**
 * True if the strings of a JSON value are so long that JSON.stringify would block the main thread. Of lists, only those of one item are looked
 * into: several on one page have at most 1 MiB together.
 */
export function isLong(value: unknown): boolean {
  return remaining(value, long) < 0
}

function remaining(value: unknown, most: number): number {
  if (typeof value === 'string') return most - (value.length < short ? 3 * value.length : Buffer.byteLength(value))
  if (typeof value !== 'object' || value === null) return most
  if (Array.isArray(value)) return value.length === 1 ? remaining(value[0], most) : most
  let left = most
  for (const one of Object.values(value)) left = remaining(one, left)
  return left
}

/** As JSON.stringify, in UTF-8. Long strings are written in pieces with other work in between. */
export async function writeLongJson(value: unknown): Promise<Buffer> {
  const turns = new Turns()
  // a placeholder that cannot occur in the value
  const name = randomUUID()
  const texts: string[] = []
  const place = (text: string): number => {
    const known = texts.indexOf(text)
    return known === -1 ? texts.push(text) - 1 : known
  }
  const frame = JSON.stringify(value, (_, one: unknown) =>
    typeof one === 'string' && one.length > piece ? `${name} ${place(one)}` : one,
  )
  const [head = '', ...others] = frame.split(`"${name} `)
  const written: Buffer[] = [Buffer.from(head)]
  const known = new Map<number, Buffer[]>()
  for (const other of others) {
    const end = other.indexOf('"')
    const index = Number(other.slice(0, end))
    const bytes = known.get(index) ?? (await writtenText(texts[index]!, turns))
    known.set(index, bytes)
    written.push(Buffer.from('"'), ...bytes, Buffer.from(other.slice(end)))
  }
  const whole = Buffer.concat(written)
  for (const bytes of new Set(written)) release(bytes)
  return whole
}

/** What is between the quotes of a string. */
async function writtenText(text: string, turns: Turns): Promise<Buffer[]> {
  const written: Buffer[] = []
  for (let at = 0; at < text.length;) {
    if (turns.due) await turns.yield()
    let end = Math.min(text.length, at + piece)
    // not between the halves of a surrogate pair
    if (end < text.length && (text.charCodeAt(end) & 0xfc00) === 0xdc00) end -= 1
    written.push(Buffer.from(JSON.stringify(text.slice(at, end)).slice(1, -1)))
    at = end
  }
  return written
}

/** As JSON.parse of what the box itself has written. Long strings are read in pieces with other work in between. */
export async function readLongJson(bytes: Buffer): Promise<unknown> {
  const turns = new Turns()
  const name = randomUUID()
  const texts: string[] = []
  const rest: string[] = []
  let from = 0
  for (let at = bytes.indexOf(quote); at !== -1; at = bytes.indexOf(quote, at)) {
    const start = at + 1
    let text = ''
    let read = start
    for (at = endOfPiece(bytes, start); at < bytes.length && bytes[at] !== quote; at = endOfPiece(bytes, at)) {
      text += readText(bytes, read, at)
      read = at
      if (turns.due) await turns.yield()
    }
    if (read > start) {
      rest.push(bytes.toString('utf8', from, start), `${name} ${texts.length}`)
      texts.push(text + readText(bytes, read, at))
      from = at
    }
    at += 1
  }
  rest.push(bytes.toString('utf8', from))
  return JSON.parse(rest.join(''), (_, one: unknown) =>
    typeof one === 'string' && one.startsWith(name) ? texts[Number(one.slice(name.length))] : one,
  )
}

/** Where a string ends, or else between two of its characters. */
function endOfPiece(bytes: Buffer, start: number): number {
  const wanted = Math.min(bytes.length, start + piece)
  let end = start
  while (end < wanted && bytes[end] !== quote) end += bytes[end] === backslash ? (bytes[end + 1] === 0x75 ? 6 : 2) : 1
  // the further bytes of a character in UTF-8
  while ((bytes[end]! & 0xc0) === 0x80) end += 1
  return end
}

function readText(bytes: Buffer, start: number, end: number): string {
  return JSON.parse(`"${bytes.toString('utf8', start, end)}"`) as string
}
