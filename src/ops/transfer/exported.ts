import { Fault } from '../../core/fault.ts'
import { type JsonBounds, parseForeign } from '../../core/json.ts'
import { ByteBuffer } from '../../core/byte-buffer.ts'
import type { ZipEntry } from '../../core/zip/unzip.ts'
import { type Budget, flawOf, type Incoming, type ReadProgress } from './budget.ts'
import { type Found, messagesOf } from './mbox.ts'

/** The longest line about a message in bytes, and its parse limits: up to 1,000 people in each field, and 1,000 parts. */
const longestLine = 4 * 1024 * 1024
const lineBounds: JsonBounds = { depth: 32, tokens: 100_000, key: 65_536 }

/** The most media files of one text message, and the bytes of each. */
const maxMedia = 100
const largestMedia = 16 * 1024 * 1024

/** The names of the files in an export: others are not kept in memory, where they could take much. */
const names = /^[ -~]{1,64}$/

/** The places of files in the directory of an archive, by their names: 300,000 entries would take 85 MB. */
class Files {
  readonly #budget: Budget
  readonly #places = new Map<unknown, number>()

  constructor(budget: Budget) {
    this.#budget = budget
  }

  add({ name, place }: ZipEntry): void {
    this.#places.set(name, place)
  }

  async get(name: unknown): Promise<ZipEntry | undefined> {
    const place = this.#places.get(name)
    return place === undefined ? undefined : this.#budget.entryAt(place)
  }
}

/** Reads an export of Pillarbox: its lists name the items in order. */
export async function* exportedIn(budget: Budget, reading: ReadProgress): AsyncGenerator<Incoming> {
  const files = new Files(budget)
  for await (const entry of budget.entries()) if (names.test(entry.name)) files.add(entry)
  yield* emails(budget, files, reading)
  yield* texts(budget, files, reading)
}

async function* emails(budget: Budget, files: Files, reading: ReadProgress): AsyncGenerator<Incoming> {
  const list = await files.get('messages.jsonl')
  if (!list) return
  const packed = await files.get('messages.mbox')
  const mbox = packed && new Mbox(messagesOf(budget.stream(packed), budget.bounds.message))
  try {
    for await (const { told, size } of linesOf(list.name, budget.stream(list))) {
      reading.done += size
      const { file, mbox_index } = (told ?? {}) as { file?: unknown; mbox_index?: unknown }
      const entry = await files.get(file)
      const found = typeof mbox_index === 'number' ? await mbox?.at(mbox_index) : undefined
      reading.done += entry?.size ?? found?.bytes?.length ?? 0
      if (entry) yield await budget.message(entry, told, true)
      else if (found?.bytes) yield { email: found.bytes, metadata: told }
      // data that retention had removed before the export is listed without content
      else yield { flaw: found ? 'too_large' : file === null && mbox_index === null ? 'ignored' : 'unreadable' }
    }
  } finally {
    await mbox?.close()
  }
}

async function* texts(budget: Budget, files: Files, reading: ReadProgress): AsyncGenerator<Incoming> {
  const list = await files.get('sms.jsonl')
  if (!list) return
  for await (const { told, size } of linesOf(list.name, budget.stream(list))) {
    reading.done += size
    const named = (told as { media_files?: unknown } | null | undefined)?.media_files
    const media: (Buffer | undefined)[] = []
    let remaining = budget.bounds.message
    for (const file of Array.isArray(named) ? named.slice(0, maxMedia) : []) {
      const entry = await files.get(file)
      const octets = entry && (await budget.bytes(entry, Math.min(remaining, largestMedia)).catch(missing))
      remaining -= octets?.length ?? 0
      media.push(octets)
    }
    yield { sms: told, media }
  }
}

function missing(error: unknown): undefined {
  flawOf(error)
  return undefined
}

/** The messages of an mbox by position, in ascending order. */
class Mbox {
  readonly #messages: AsyncGenerator<Found>
  #next = 0

  constructor(messages: AsyncGenerator<Found>) {
    this.#messages = messages
  }

  async at(index: number): Promise<Found | undefined> {
    while (this.#next <= index) {
      const { value, done } = await this.#messages.next()
      if (done) return undefined
      this.#next += 1
      if (this.#next === index + 1) return value
    }
    return undefined
  }

  async close(): Promise<void> {
    await this.#messages.return(undefined)
  }
}

/** The lines of a list, each parsed separately; invalid JSON is undefined. Throws Fault `line_too_long`, or as JsonScan does. */
async function* linesOf(name: string, file: AsyncIterable<Buffer>): AsyncGenerator<{ told: unknown; size: number }> {
  const line = new ByteBuffer(longestLine)
  let number = 1
  for await (const chunk of file) {
    let start = 0
    for (let stop = chunk.indexOf(lf); stop !== -1; stop = chunk.indexOf(lf, start)) {
      line.add(chunk, start, stop)
      const { size } = line
      yield { told: read(line, name, number), size: size + 1 }
      number += 1
      start = stop + 1
    }
    line.add(chunk, start)
    if (line.over) throw tooLong(name, number)
  }
  const { size } = line
  if (size > 0) yield { told: read(line, name, number), size }
}

const lf = 0x0a

function read(line: ByteBuffer, name: string, number: number): unknown {
  const octets = line.take()
  if (octets === null) throw tooLong(name, number)
  try {
    return parseForeign(octets.toString('utf8'), `Line ${number} of ${name}`, lineBounds)
  } catch (error) {
    if (error instanceof Fault) throw error
    return undefined
  }
}

function tooLong(name: string, number: number): Fault {
  return new Fault(
    'invalid_request',
    `Line ${number} of ${name} is longer than ${longestLine} bytes, the limit for a record of a message. Remove the line, and import its message as a separate file.`,
    { code: 'line_too_long' },
  )
}
