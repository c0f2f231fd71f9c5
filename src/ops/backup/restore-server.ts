import { wordIndex } from '../../mail/search/stored-words.ts'
import { Different } from '../../store/copy/copy.ts'
import { PostgresCopy } from '../../store/copy/into-postgres.ts'
import { WrongValue } from '../../store/copy/postgres-side.ts'
import { removeDatabase } from '../../store/files.ts'
import type { PostgresTarget } from '../../store/postgres/target.ts'
import { withoutValues } from '../../store/postgres/connections.ts'
import { notePostgres } from '../../store/postgres/note.ts'
import { textOf } from '../../store/postgres/shared-state.ts'
import type { State } from '../../store/state.ts'
import { refused } from './faults.ts'

/** The database of PostgreSQL that a box is restored into. */
export class RestoreServer {
  readonly #target: PostgresTarget
  readonly #box: string
  readonly #copy: PostgresCopy

  /** Throws Fault when it is not empty, or cannot be used. */
  static async open(target: PostgresTarget, box: string): Promise<RestoreServer> {
    try {
      return new RestoreServer(target, box, await PostgresCopy.open(target, box))
    } catch (error) {
      throw refused((error as Error).message, 'database_unavailable', error)
    }
  }

  private constructor(target: PostgresTarget, box: string, copy: PostgresCopy) {
    this.#target = target
    this.#box = box
    this.#copy = copy
  }

  /** Moves a database file into it, and notes in the directory where the data is. `shared` is the operator's document of several boxes. */
  async fill(file: string, directory: string, shared: State | undefined, signal?: AbortSignal): Promise<void> {
    try {
      await this.#copy.fill(file, { box_id: this.#box, words: wordIndex, shared: shared && textOf(shared), signal })
    } catch (error) {
      signal?.throwIfAborted()
      withoutValues(error)
      const { message } = error as Error
      if (error instanceof Different || error instanceof WrongValue) throw refused(message, 'backup_failed', error)
      throw refused(`The database could not be written: ${message}. Run the same command again.`, 'database_unavailable', error)
    }
    removeDatabase(file)
    notePostgres(directory, this.#target)
  }

  async close(): Promise<void> {
    await this.#copy.close()
  }
}
