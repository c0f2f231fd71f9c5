import type { Seal, SealedColumn } from '../core/seal/seal.ts'
import { type Database, sql, type Transaction } from '../store/database.ts'

export const sealedFiles: SealedColumn = {
  table: 'acme_files',
  column: 'sealed',
  key: ['directory', 'name'],
  context: ({ directory, name }) => contextOf(String(directory), String(name)),
}

/** The encryption context that binds a file to its place. */
function contextOf(directory: string, name: string): string {
  return `acme file ${directory}/${name}`
}

/** The files of one CA that several boxes share, in their database: account key, certificates with their keys, and states. */
export class SharedFiles {
  readonly #database: Database
  readonly #seal: Seal
  readonly #directory: string

  constructor({ database, seal }: { database: Database; seal: Seal }, directory: string) {
    this.#database = database
    this.#seal = seal
    this.#directory = directory
  }

  /** All of them, by name. */
  async all(): Promise<Map<string, string>> {
    const rows = await this.#database.all<{ name: string; sealed: Uint8Array }>(
      sql`SELECT name, sealed FROM acme_files WHERE directory = ${this.#directory}`,
    )
    return new Map(rows.map(({ name, sealed }) => [name, this.#seal.open(sealed, contextOf(this.#directory, name)).toString()]))
  }

  /** Adds or replaces files; the other boxes take them over. */
  async write(files: ReadonlyMap<string, string>): Promise<void> {
    await this.#change(async (tx) => {
      for (const [name, text] of files) {
        const sealed = this.#seal.seal(Buffer.from(text), contextOf(this.#directory, name))
        await tx.run(
          sql`INSERT INTO acme_files (directory, name, sealed) VALUES (${this.#directory}, ${name}, ${sealed})
            ON CONFLICT (directory, name) DO UPDATE SET sealed = excluded.sealed`,
        )
      }
    })
  }

  async remove(name: string): Promise<void> {
    await this.#change((tx) => tx.run(sql`DELETE FROM acme_files WHERE directory = ${this.#directory} AND name = ${name}`))
  }

  async #change(work: (tx: Transaction) => Promise<unknown>): Promise<void> {
    await this.#database.transaction(async (tx) => {
      await work(tx)
      await this.#database.caches.invalidate(tx, 'certificates')
    })
  }
}
