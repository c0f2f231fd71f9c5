import type { Packed } from '../core/unzip.ts'
import { flawOf } from './budget.ts'
import type { Budget, Incoming, Reading } from './budget.ts'
import { messagesOf } from './mbox.ts'
import type { Found } from './mbox.ts'

/** Octets of one line about a message. */
const longestLine = 16 * 1024 * 1024

/** What an export of ours holds: its lists say what there is, in the order in which it came. */
export async function* exportedIn(budget: Budget, reading: Reading): AsyncGenerator<Incoming> {
  const files = new Map(budget.entries.map((entry) => [entry.name, entry]))
  yield* emails(budget, files, reading)
  yield* texts(budget, files, reading)
}

async function* emails(budget: Budget, files: Map<string, Packed>, reading: Reading): AsyncGenerator<Incoming> {
  const list = files.get('messages.jsonl')
  if (!list) return
  const packed = files.get('messages.mbox')
  const mbox = packed && new Mbox(messagesOf(budget.stream(packed), budget.bounds.message))
  try {
    for await (const { told, size } of linesOf(budget.stream(list))) {
      reading.done += size
      const { file, mbox_index } = (told ?? {}) as { file?: unknown; mbox_index?: unknown }
      const entry = typeof file === 'string' ? files.get(file) : undefined
      const found = typeof mbox_index === 'number' ? await mbox?.at(mbox_index) : undefined
      reading.done += entry?.size ?? found?.octets?.length ?? 0
      if (entry) yield await budget.message(entry, told, true)
      else if (found?.octets) yield { email: found.octets, told }
      // what retention had removed when the export was made is listed, and is nowhere
      else yield { flaw: found ? 'too_large' : file === null && mbox_index === null ? 'ignored' : 'unreadable' }
    }
  } finally {
    await mbox?.close()
  }
}

async function* texts(budget: Budget, files: Map<string, Packed>, reading: Reading): AsyncGenerator<Incoming> {
  const list = files.get('sms.jsonl')
  if (!list) return
  for await (const { told, size } of linesOf(budget.stream(list))) {
    reading.done += size
    const named = (told as { media_files?: unknown } | undefined)?.media_files
    const media: (Buffer | undefined)[] = []
    for (const file of Array.isArray(named) ? named.slice(0, 100) : []) {
      const entry = typeof file === 'string' ? files.get(file) : undefined
      media.push(entry && (await budget.octets(entry, budget.bounds.message).catch(missing)))
    }
    yield { sms: told, media }
  }
}

function missing(error: unknown): undefined {
  flawOf(error)
  return undefined
}

/** The messages of an mbox by their place, each asked for after the one before. */
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

/** The lines of a list; what is no JSON is undefined. */
async function* linesOf(file: AsyncIterable<Buffer>): AsyncGenerator<{ told: unknown; size: number }> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of file) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (let stop = rest.indexOf(10); stop !== -1; stop = rest.indexOf(10)) {
      yield { told: read(rest.subarray(0, stop)), size: stop + 1 }
      rest = rest.subarray(stop + 1)
    }
    if (rest.length > longestLine) rest = rest.subarray(rest.length - 1)
  }
  if (rest.length > 0) yield { told: read(rest), size: rest.length }
}

function read(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8')) as unknown
  } catch {
    return undefined
  }
}
