import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { parseForeign } from '../../../core/json.ts'
import { damaged, refused } from '../faults.ts'
import { type Entry, formatName, formatVersion, Manifest, sums } from './manifest.ts'
import { block, padded, readTarHeader } from './tar.ts'

/** Larger than any manifest. */
const longest = 1024 * 1024

/** Larger than any other text: keys of 16 MiB, encoded twice. */
const longestText = 32 * 1024 * 1024

/** Reads a backup: the manifest is loaded on opening, and locates the files. */
export class BackupArchive {
  readonly file: string
  readonly manifest: Manifest
  readonly size: number
  readonly #manifestText: Buffer

  /** Throws Fault when the file cannot be read, is no backup, or was made by a newer version. */
  static async open(file: string): Promise<BackupArchive> {
    const handle = await opened(file)
    try {
      const { size } = await handle.stat()
      return new BackupArchive(file, size, await manifestIn(file, handle))
    } finally {
      await handle.close()
    }
  }

  private constructor(file: string, size: number, text: Buffer) {
    this.file = file
    this.size = size
    this.#manifestText = text
    this.manifest = understood(file, text)
  }

  /**
   * Reads every byte once: headers as the writer makes them, each file with its checksum, zeros between them, and nothing after the end.
   * Throws Fault `backup_damaged` naming the first error.
   */
  async check(signal?: AbortSignal): Promise<void> {
    let position = block + this.#manifestText.length
    for (const entry of this.manifest.entries) {
      await this.#expectHeader(position, entry)
      const sha256 = await this.#hash(position + block, entry.size, signal)
      if (sha256 !== entry.sha256) throw damaged(this.file, `the checksum of ${entry.name} is not that of its manifest`)
      position += block + padded(entry.size)
      await this.#expectZeros(position - padded(entry.size) + entry.size, position)
    }
    const expected = Buffer.from(sums(createHash('sha256').update(this.#manifestText).digest('hex'), this.manifest.entries))
    const last = { name: 'SHA256SUMS', size: expected.length }
    await this.#expectHeader(position, last)
    if (!(await this.#read(position + block, last.size)).equals(expected))
      throw damaged(this.file, 'its manifest does not match SHA256SUMS')
    position += block + last.size
    const end = position - last.size + padded(last.size) + 2 * block
    await this.#expectZeros(position, end)
    if (this.size !== end) throw damaged(this.file, `${this.size - end} bytes follow its end`)
  }

  has(name: Entry['name']): boolean {
    return this.manifest.entries.some((entry) => entry.name === name)
  }

  stream(name: Entry['name']): NodeJS.ReadableStream & AsyncIterable<Buffer> {
    const { start, size } = this.#place(name)
    return createReadStream(this.file, { start, end: start + size - 1, highWaterMark: 1 << 18 })
  }

  async text(name: Entry['name']): Promise<string> {
    const { start, size } = this.#place(name)
    if (size > longestText) throw damaged(this.file, `its ${name} is too long`)
    return (await this.#read(start, size)).toString()
  }

  #place(name: Entry['name']): { start: number; size: number } {
    let position = block + this.#manifestText.length
    for (const entry of this.manifest.entries) {
      if (entry.name === name) return { start: position + block, size: entry.size }
      position += block + padded(entry.size)
    }
    throw damaged(this.file, `it contains no ${name}`)
  }

  async #expectHeader(position: number, { name, size }: { name: string; size: number }): Promise<void> {
    const header = readTarHeader(await this.#read(position, block))
    const modified = Math.floor(Date.parse(this.manifest.created_at) / 1000)
    if (header?.name !== name || header.size !== size || header.modified !== modified)
      throw damaged(this.file, `the header of ${name} (byte ${position}) is not the one that was written`)
  }

  async #expectZeros(from: number, to: number): Promise<void> {
    if ((await this.#read(from, to - from)).some((octet) => octet !== 0))
      throw damaged(this.file, `bytes ${from} to ${to} must be zero`)
  }

  async #hash(start: number, size: number, signal?: AbortSignal): Promise<string> {
    const hash = createHash('sha256')
    if (start + size > this.size) throw this.#cut(start + size)
    if (size > 0) {
      const options = { start, end: start + size - 1, highWaterMark: 1 << 18, ...(signal ? { signal } : {}) }
      try {
        for await (const chunk of createReadStream(this.file, options)) hash.update(chunk as Buffer)
      } catch (error) {
        signal?.throwIfAborted()
        throw unreadable(this.file, error)
      }
    }
    return hash.digest('hex')
  }

  async #read(position: number, size: number): Promise<Buffer> {
    const handle = await opened(this.file)
    try {
      const bytes = Buffer.alloc(size)
      if ((await readAt(this.file, handle, bytes, position)) < size) throw this.#cut(position + size)
      return bytes
    } finally {
      await handle.close()
    }
  }

  #cut(needed: number): Error {
    return damaged(this.file, `it ends after ${this.size} bytes, but must have at least ${needed}`)
  }
}

async function opened(file: string): Promise<FileHandle> {
  let handle: FileHandle
  try {
    handle = await open(file, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw unreadable(file, error)
    throw refused(`${file} does not exist.`, 'not_found', error)
  }
  if ((await handle.stat()).isFile()) return handle
  await handle.close()
  throw refused(`${file} is not a file.`, 'not_a_backup')
}

/** Fills the buffer from a position, as far as the file goes; returns the number of bytes. */
async function readAt(file: string, handle: FileHandle, bytes: Buffer, position: number): Promise<number> {
  try {
    return (await handle.read(bytes, 0, bytes.length, position)).bytesRead
  } catch (error) {
    throw unreadable(file, error)
  }
}

function unreadable(file: string, error: unknown): Error {
  return refused(`${file} cannot be read: ${(error as Error).message}.`, 'unreadable', error)
}

async function manifestIn(file: string, handle: FileHandle): Promise<Buffer> {
  const header = Buffer.alloc(block)
  const read = (await readAt(file, handle, header, 0)) === block ? readTarHeader(header) : undefined
  if (read?.name !== 'manifest.json' || read.size > longest || read.size % block !== 0) {
    if (header.toString('latin1', 0, 13) === 'manifest.json') throw damaged(file, 'the header of its manifest was changed')
    throw refused(`${file} is not a backup of Pillarbox.`, 'not_a_backup')
  }
  const text = Buffer.alloc(read.size)
  if ((await readAt(file, handle, text, block)) < read.size) throw damaged(file, 'it ends within its manifest')
  return text
}

function understood(file: string, text: Buffer): Manifest {
  let value: { format?: unknown; format_version?: unknown; program_version?: unknown } | null
  try {
    value = parseForeign(text.toString(), 'manifest.json') as typeof value
  } catch (error) {
    throw damaged(file, 'its manifest is not JSON', error)
  }
  if (value?.format === formatName && typeof value.format_version === 'number' && value.format_version > formatVersion) {
    throw refused(
      `${file} was made by a newer Pillarbox (${String(value.program_version)}, format ${value.format_version}; this one reads ${formatVersion}). ` +
        'Use the newer program; nothing was changed.',
      'backup_newer',
    )
  }
  const parsed = Manifest.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]!
  throw damaged(file, `its manifest is wrong at ${issue.path.join('.') || 'its beginning'} (${issue.message})`)
}
