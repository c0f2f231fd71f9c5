import { createHash } from 'node:crypto'
import { closeSync, fstatSync, fsyncSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { type Entry, type Manifest, sums } from './manifest.ts'
import { block, padded, tarHeader } from './tar.ts'

/** The manifest without the fields that are known last; space for it is reserved at the beginning. */
type Unfinished = Omit<Manifest, 'entries'>

/** Writes an archive in one pass, and its first file last, when sizes and checksums are known. */
export class ArchiveWriter {
  readonly #handle: number
  readonly #modified: number
  readonly #manifest: Unfinished
  readonly #reserved: number
  readonly #entries: Entry[] = []
  #position: number

  /** Creates the file, readable by its owner only; an existing file is overwritten. */
  constructor(file: string, manifest: Unfinished) {
    rmSync(file, { force: true })
    this.#handle = openSync(file, 'wx', 0o600)
    this.#manifest = manifest
    this.#modified = Math.floor(Date.parse(manifest.created_at) / 1000)
    this.#reserved = padded(JSON.stringify(manifest, null, 2).length + 1024)
    this.#position = block + this.#reserved
  }

  get size(): number {
    return this.#position
  }

  /** Writes one file, whose size need not be known before. */
  async add(name: Entry['name'], chunks: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void> {
    const start = this.#position
    const hash = createHash('sha256')
    this.#position += block
    for await (const chunk of chunks) {
      hash.update(chunk)
      this.#write(chunk)
    }
    const size = this.#position - start - block
    this.#fill(size)
    this.#writeAt(tarHeader(name, size, this.#modified), start)
    this.#entries.push({ name, size, sha256: hash.digest('hex') })
  }

  /** Completes the archive and forces it to disk. */
  finish(): Manifest {
    const manifest: Manifest = { ...this.#manifest, entries: this.#entries }
    // JSON ignores the padding spaces
    const text = Buffer.from(
      JSON.stringify(manifest, null, 2)
        .padEnd(this.#reserved - 1)
        .concat('\n'),
    )
    if (text.length !== this.#reserved) throw new Error('The manifest exceeds its reserved space.')
    this.#writeAt(tarHeader('manifest.json', text.length, this.#modified), 0)
    this.#writeAt(text, block)
    const last = Buffer.from(sums(createHash('sha256').update(text).digest('hex'), this.#entries))
    this.#write(tarHeader('SHA256SUMS', last.length, this.#modified))
    this.#write(last)
    this.#fill(last.length)
    this.#write(Buffer.alloc(2 * block))
    fsyncSync(this.#handle)
    return manifest
  }

  /** True if this archive is the file at the path, and not another that was started since. */
  isAt(file: string): boolean {
    return statSync(file, { throwIfNoEntry: false })?.ino === fstatSync(this.#handle).ino
  }

  close(): void {
    closeSync(this.#handle)
  }

  #fill(size: number): void {
    this.#write(Buffer.alloc(padded(size) - size))
  }

  #write(bytes: Buffer): void {
    this.#writeAt(bytes, this.#position)
    this.#position += bytes.length
  }

  #writeAt(bytes: Buffer, position: number): void {
    for (let done = 0; done < bytes.length;) done += writeSync(this.#handle, bytes, done, bytes.length - done, position + done)
  }
}
