import { type Database, raw, sql, tablesOfSeveral, type Transaction } from '../database.ts'
import { type OperatorState, State, type StateFile } from '../state.ts'
import type { Connection } from './connections.ts'

/**
 * The operator's document of several boxes: a row of their database. Each box has a copy in its `state.json`, which is what it reads, and where the
 * operator edits it.
 */
export class SharedState implements OperatorState {
  readonly #database: Database
  readonly #file: StateFile
  /** The row as this box knows it. */
  #document = ''
  #loading: Promise<void> = Promise.resolve()

  /** Stores the document of the file where the database has none. */
  static async open(database: Database, file: StateFile): Promise<SharedState> {
    await database.transaction(async (tx) => {
      if ((await documentIn(tx)) === undefined)
        await tx.run(sql`INSERT INTO operator_state (id, document) VALUES (1, ${textOf(file.data)})`)
    })
    const state = new SharedState(database, file)
    await state.#load()
    database.caches.onInvalid('state', () => state.#load())
    return state
  }

  private constructor(database: Database, file: StateFile) {
    this.#database = database
    this.#file = file
  }

  get data(): Readonly<State> {
    return this.#file.data
  }

  async update(change: (state: State) => void): Promise<void> {
    await this.#database.transaction(async (tx) => {
      const state = stateOf((await documentIn(tx))!)
      change(state)
      await this.#write(tx, State.parse(state))
    })
    await this.#load()
  }

  /** Takes over an edit of the file. Throws an Error when the document was changed by another box meanwhile. */
  async reread(): Promise<void> {
    const known = this.#document
    try {
      await this.#file.reread()
      const edited = this.#file.data
      if (textOf(edited) === known) return
      await this.#database.transaction(async (tx) => {
        if ((await documentIn(tx)) !== known)
          throw new Error(
            'state.json was changed at another box meanwhile: it was read anew. Edit it again; state.json.previous has your edit.',
          )
        await this.#write(tx, edited)
      })
    } finally {
      await this.#load()
    }
  }

  async #write(tx: Transaction, state: State): Promise<void> {
    await tx.run(sql`UPDATE operator_state SET document = ${textOf(state)} WHERE id = 1`)
    await this.#database.caches.invalidate(tx, 'state')
  }

  /** One after the other, so that the last one is the newest. */
  #load(): Promise<void> {
    const turn = this.#loading.then(() => this.#loadNow())
    this.#loading = turn.catch(() => {})
    return turn
  }

  async #loadNow(): Promise<void> {
    const document = (await documentIn(this.#database))!
    const state = stateOf(document)
    if (textOf(this.#file.data) !== document) await this.#file.replace(state)
    this.#document = document
  }
}

/** Makes the document of several boxes that of this one, which has the database alone; what they shared for the time being ends. */
export async function leaveSeveral(database: Database, file: StateFile): Promise<void> {
  const document = await documentIn(database)
  if (document === undefined) return
  const shared = stateOf(document)
  requireSameBox(file, shared)
  // first the file: what ends in between is repeated
  await file.replace(shared)
  await database.transaction(async (tx) => {
    // the pieces of exports are made files first (`SharedExportFiles.takeOver`)
    for (const table of tablesOfSeveral) if (table !== 'export_pieces') await tx.run(sql`DELETE FROM ${raw(table)}`)
  })
}

/** Throws an Error when the data directory is of another box than the document. */
export function requireSameBox(file: StateFile, shared: State): void {
  if (file.data.database_created && file.data.box_id !== shared.box_id)
    throw new Error(
      'state.json is of another box than the database of database.url. Set the database of this box, or an empty data_dir.',
    )
}

async function documentIn(reader: Pick<Database, 'get'>): Promise<string | undefined> {
  return (await reader.get<{ document: string }>(sql`SELECT document FROM operator_state WHERE id = 1`))?.document
}

/** The document that several boxes share; undefined where there is none. */
export async function documentOn(connection: Connection): Promise<string | undefined> {
  const { rows } = await connection.query('SELECT document FROM operator_state WHERE id = 1')
  return (rows[0] as { document: string } | undefined)?.document
}

/** Throws when it is of another version. */
export function stateOf(document: string): State {
  return State.parse(JSON.parse(document))
}

/** The document as the row has it. */
export function textOf(state: State): string {
  return JSON.stringify(state)
}
