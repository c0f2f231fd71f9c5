import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { ZipFile } from '../../core/zip/unzip.ts'
import { Fault } from '../../core/fault.ts'
import { isMbox, messagesOf, timeOf } from './mbox.ts'
import { type Bounds, Budget, canonical, type Incoming, type ReadProgress } from './budget.ts'
import { exportedIn } from './exported.ts'

/** Reads a file: an mbox, one message, or a ZIP of those, of a maildir, or an export of Pillarbox. */
export async function* incomingFrom(path: string, bounds: Bounds, reading: ReadProgress): AsyncGenerator<Incoming> {
  const start = await firstOf(path)
  if (start.toString('latin1', 0, 2) === 'PK') yield* fromZip(path, bounds, reading)
  else if (isMbox(start)) yield* fromMbox(createReadStream(path), bounds, reading)
  else if (reading.total > bounds.message) yield { flaw: 'too_large' }
  else if (isMessage(start)) {
    const email = await canonical(await wholeOf(createReadStream(path)), bounds.message)
    yield email ? { email, metadata: {} } : { flaw: 'too_large' }
  } else {
    throw new Fault('invalid_request', 'The file is neither an mbox nor a message (.eml) nor a ZIP of such.', {
      code: 'bad_archive',
    })
  }
}

async function* fromMbox(file: AsyncIterable<Uint8Array>, bounds: Bounds, reading: ReadProgress): AsyncGenerator<Incoming> {
  const before = reading.done
  for await (const { bytes: octets, from_line, end } of messagesOf(file, bounds.message)) {
    reading.done = before + end
    const time = timeOf(from_line)
    const told = time === undefined ? {} : { arrived_at: new Date(time).toISOString() }
    yield octets ? { email: octets, metadata: told } : { flaw: 'too_large' }
  }
}

async function* fromZip(path: string, bounds: Bounds, reading: ReadProgress): AsyncGenerator<Incoming> {
  const archive = await ZipFile.open(path)
  try {
    const budget = new Budget(archive, bounds)
    reading.total = archive.size
    yield* (await isExport(budget)) ? exportedIn(budget, reading) : loose(budget, reading)
  } finally {
    await archive.close()
  }
}

async function isExport(budget: Budget): Promise<boolean> {
  for await (const { name } of budget.entries()) if (name === 'messages.jsonl' || name === 'sms.jsonl') return true
  return false
}

/** The files of any archive, in the order of its directory. */
async function* loose(budget: Budget, reading: ReadProgress): AsyncGenerator<Incoming> {
  for await (const entry of budget.entries()) {
    const before = reading.done
    const kind = kindOf(entry.name)
    if (entry.flaw !== null || kind === undefined)
      yield { flaw: entry.flaw === null || kind === undefined ? 'ignored' : 'unreadable' }
    else if (kind === 'mbox') yield* fromMbox(budget.stream(entry), budget.bounds, reading)
    else yield await budget.message(entry, toldBy(entry.name))
    reading.done = before + entry.size
  }
}

function kindOf(path: string): 'eml' | 'mbox' | undefined {
  if (/\.eml$/i.test(path) || /(?:^|\/)(?:cur|new)\/[^/]+$/.test(path)) return 'eml'
  return /(?:\.mbox|(?:^|\/)mbox)$/i.test(path) ? 'mbox' : undefined
}

const flags: Record<string, string> = { R: 'answered', F: 'flagged', D: 'draft', T: 'deleted', P: 'forwarded' }

/** The metadata in the name of a maildir message: folder, flags, and time of delivery. */
function toldBy(path: string): unknown {
  const [, folders = '', kind, name = ''] = /^(?:(.*)\/)?(cur|new)\/([^/]+)$/.exec(path) ?? []
  if (kind === undefined) return {}
  // some file systems do not allow a colon
  const flagLetters = Array.from(/[:;!]2,([A-Za-z]*)$/.exec(name)?.[1] ?? '')
  const folder = folders
    .split('/')
    .findLast((one) => /^\.[^.]/.test(one))
    ?.slice(1)
  const seconds = Number(/^(\d{9,10})\./.exec(name)?.[1] ?? Number.NaN)
  return {
    read: kind === 'cur' && flagLetters.includes('S'),
    labels: [...flagLetters.flatMap((letter) => flags[letter] ?? []), ...(folder === undefined ? [] : [folder.slice(0, 64)])],
    ...(Number.isNaN(seconds) ? {} : { arrived_at: new Date(seconds * 1000).toISOString() }),
  }
}

/** True if it starts with a header field (RFC 5322 2.2). */
function isMessage(start: Buffer): boolean {
  return /^(?:\ufeff|\xef\xbb\xbf)?[!-9;-~]{1,100}[ \t]*:/.test(start.toString('latin1'))
}

async function firstOf(path: string): Promise<Buffer> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4096), 0, 4096, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

async function wholeOf(file: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of file) chunks.push(chunk)
  return Buffer.concat(chunks)
}
