import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Clock } from '../../core/clock.ts'
import { type Database, sql } from '../../store/database.ts'

/** The files of exports, by the ids of their jobs. */
export interface ExportFiles {
  /** Takes over a complete file. */
  add(id: string, path: string): Promise<void>
  /** Undefined when there is none. */
  find(id: string): Promise<{ size: number; bytes: Readable } | undefined>
  remove(id: string): Promise<void>
  /** Removes files that are older than `lifetime` milliseconds, or whose job was deleted or interrupted. */
  sweep(lifetime: number): Promise<void>
}

interface Deps {
  jobs: { knows(id: string): Promise<boolean>; runs(id: string): boolean }
  clock: Clock
  /** With mode 0700. */
  directory: string
}

/** Files in the data directory of the box. */
export class LocalExportFiles implements ExportFiles {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async add(id: string, path: string): Promise<void> {
    await rename(path, this.#path(id))
  }

  async find(id: string): Promise<{ size: number; bytes: Readable } | undefined> {
    const found = await stat(this.#path(id)).catch(() => undefined)
    return found && { size: found.size, bytes: createReadStream(this.#path(id)) }
  }

  async remove(id: string): Promise<void> {
    await rm(this.#path(id), { force: true })
  }

  async sweep(lifetime: number): Promise<void> {
    const { directory, clock, jobs } = this.#deps
    for (const name of await readdir(directory).catch(() => [])) {
      const path = join(directory, name)
      const found = await stat(path).catch(() => undefined)
      const id = /^(job_\w{26})\.zip$/.exec(name)?.[1]
      const left = id === undefined || !(await jobs.knows(id))
      if (found && (found.mtimeMs < clock.now() - lifetime || (left && !jobs.runs(name.slice(0, 30)))))
        await rm(path, { force: true })
    }
  }

  #path(id: string): string {
    return join(this.#deps.directory, `${id}.zip`)
  }
}

/** Bytes of a piece. */
const pieceSize = 1024 * 1024

/** Files in the database of several boxes: each answers with those of all. They are written in the data directory, and then stored. */
export class SharedExportFiles implements ExportFiles {
  readonly #database: Database
  readonly #clock: Clock
  readonly #local: LocalExportFiles

  constructor(deps: Deps & { database: Database }) {
    this.#database = deps.database
    this.#clock = deps.clock
    this.#local = new LocalExportFiles(deps)
  }

  async add(id: string, path: string): Promise<void> {
    const file = await open(path)
    try {
      for (let number = 0; ; number += 1) {
        const { bytesRead, buffer } = await file.read(Buffer.alloc(pieceSize), 0, pieceSize, number * pieceSize)
        if (bytesRead === 0) return
        const bytes = buffer.subarray(0, bytesRead)
        await this.#database.transaction((tx) =>
          tx.run(
            sql`INSERT INTO export_pieces (job_id, number, bytes, stored_at) VALUES (${id}, ${number}, ${bytes}, ${this.#clock.now()})`,
          ),
        )
      }
    } catch (error) {
      await this.remove(id).catch(() => undefined)
      throw error
    } finally {
      await file.close()
    }
  }

  async find(id: string): Promise<{ size: number; bytes: Readable } | undefined> {
    const stored = await this.#database.get<{ size: number; pieces: number }>(
      sql`SELECT coalesce(sum(octet_length(bytes)), 0) AS size, count(*) AS pieces FROM export_pieces WHERE job_id = ${id}`,
    )
    // from when this box was alone
    if (!stored || stored.pieces === 0) return this.#local.find(id)
    return { size: stored.size, bytes: Readable.from(this.#pieces(id, stored.pieces), { objectMode: false }) }
  }

  /** Makes all of them files of this box, which has the database alone from now on. */
  async takeOver(directory: string): Promise<void> {
    const left = await this.#database.all<{ job_id: string }>(sql`SELECT DISTINCT job_id FROM export_pieces`)
    if (left.length > 0) await mkdir(directory, { recursive: true, mode: 0o700 })
    for (const { job_id } of left) {
      const path = join(directory, `${job_id}.pieces`)
      const stored = await this.find(job_id)
      if (stored) await pipeline(stored.bytes, createWriteStream(path, { mode: 0o600 }))
      await this.#local.add(job_id, path)
      await this.#removePieces(job_id)
    }
  }

  async remove(id: string): Promise<void> {
    await this.#local.remove(id)
    await this.#removePieces(id)
  }

  async #removePieces(id: string): Promise<void> {
    await this.#database.transaction((tx) => tx.run(sql`DELETE FROM export_pieces WHERE job_id = ${id}`))
  }

  async sweep(lifetime: number): Promise<void> {
    await this.#local.sweep(lifetime)
    const old = sql`SELECT DISTINCT job_id FROM export_pieces WHERE stored_at < ${this.#clock.now() - lifetime}
      OR job_id NOT IN (SELECT id FROM jobs)`
    for (const { job_id } of await this.#database.all<{ job_id: string }>(old)) await this.remove(job_id)
  }

  async *#pieces(id: string, count: number): AsyncGenerator<Uint8Array> {
    for (let number = 0; number < count; number += 1) {
      const piece = await this.#database.get<{ bytes: Uint8Array }>(
        sql`SELECT bytes FROM export_pieces WHERE job_id = ${id} AND number = ${number}`,
      )
      if (!piece) throw new Error('The export was deleted while it was read.')
      yield piece.bytes
    }
  }
}
