import { DatabaseSync } from 'node:sqlite'
import { unchanged } from '../migrate.ts'
import type { PostgresTarget } from '../postgres/target.ts'
import { type CopyTarget, openCopyTarget } from '../postgres/prepare.ts'
import { type CopiedTable, copyDatabase, type CopyProgress, Different, isOfBox, momentQuery, originOf } from './copy.ts'
import { PostgresCopyTarget } from './postgres-side.ts'
import type { WordIndex } from './side.ts'
import { SqliteSource, tablesOf } from './sqlite-side.ts'

interface PostgresCopyOptions extends CopyProgress {
  box_id: string
  words: WordIndex
  /** The operator's document, where several boxes are to share it. */
  shared: string | undefined
  /** Called when the copy is the same as the file, before it becomes the database of a box. */
  whenSame?: () => void
}

/** A database of PostgreSQL that becomes the copy of a database file: empty before, or with an unfinished copy of the same box. */
export class PostgresCopy {
  readonly #at: CopyTarget

  /** Throws an Error that says what is wrong with the database; it is left unchanged. */
  static async open(target: PostgresTarget, box_id: string): Promise<PostgresCopy> {
    const copy = new PostgresCopy(await openCopyTarget(target))
    if (copy.#at.unfinished === undefined || isOfBox(copy.#at.unfinished, box_id)) return copy
    await copy.close()
    throw new Error('The database has an unfinished copy of another box. Name an empty one, or drop it and create it anew.')
  }

  private constructor(at: CopyTarget) {
    this.#at = at
  }

  /** True if it has a part of the box, from a copy that was interrupted. */
  get begun(): boolean {
    return this.#at.unfinished !== undefined
  }

  /**
   * Copies a database file, which is of this version, from where a copy of the same moment was interrupted. Throws Different when it is not the same
   * then: the next call begins anew.
   */
  async fill(
    file: string,
    { box_id, words, shared, whenSame, ...options }: PostgresCopyOptions,
  ): Promise<Record<string, CopiedTable>> {
    const { connection, unfinished, prepare } = this.#at
    using database = new DatabaseSync(unchanged(file), { readOnly: true, timeout: 5000 })
    // all rows of one moment
    database.exec('BEGIN')
    const tables = tablesOf(database)
    const origin = originOf(box_id, database.prepare(momentQuery).get())
    await prepare()
    if (unfinished !== origin) await PostgresCopyTarget.begin(connection, tables, origin)
    const target = await PostgresCopyTarget.open(connection, words)
    try {
      const read = words.reader(database)
      const copied = await copyDatabase(tables, new SqliteSource(database), target, { ...options, words: read })
      whenSame?.()
      await target.finish(shared)
      return copied
    } catch (error) {
      if (error instanceof Different) await PostgresCopyTarget.begin(connection, tables, origin)
      throw error
    }
  }

  async close(): Promise<void> {
    await this.#at.connection.end().catch(() => {})
  }
}
