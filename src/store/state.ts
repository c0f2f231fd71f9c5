import { existsSync, linkSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type Adapter, Low } from 'lowdb'
import writeFileAtomic from 'write-file-atomic'
import * as z from 'zod'
import { planned } from '../core/planned.ts'
import { Newer, syncPath } from './files.ts'

/** Limits of one account that override the settings; null is no limit. */
const limits = z.partialRecord(z.enum(planned), z.int().min(0).nullable())

/** The operator's file `state.json`: small, readable, and editable while the box is stopped. */
export const State = z.strictObject({
  version: z.literal(1),
  box_id: z.string().min(1),
  created_at: z.iso.datetime(),
  /** True once there was a database: a missing one is then an error, and no empty one is created. */
  database_created: z.boolean(),
  /** False while the first key may not have been seen by anyone: the next start replaces it. */
  first_key_shown: z.boolean().default(true),
  accounts: z
    .array(z.strictObject({ id: z.string(), name: z.string(), created_at: z.iso.datetime(), limits: limits.optional() }))
    .min(1),
})
export type State = z.output<typeof State>

/** The operator's document, wherever it is kept. */
export interface OperatorState {
  readonly data: Readonly<State>
  /** Reads the file again after an edit. When it is invalid, throws an Error with a readable message and keeps the current state. */
  reread(): Promise<void>
  /** Applies a change and resolves when it is on disk. Concurrent changes are applied one after the other. Nothing changes when `change` throws. */
  update(change: (state: State) => void): Promise<void>
}

/** `state.json` by lowdb: every write creates a new file, syncs it and renames it into place; the previous one stays as `state.json.previous`. */
export class StateFile implements OperatorState {
  readonly #low: Low<State>
  #data: State
  #last: Promise<void> = Promise.resolve()

  private constructor(low: Low<State>) {
    this.#low = low
    this.#data = low.data
  }

  /** Throws an Error that names the file when it is damaged, invalid or of a newer version; the file is then not overwritten. */
  static async open(file: string, fresh: () => State): Promise<StateFile> {
    removeDrafts(file)
    const adapter = new DurableFile(file)
    const kept = await adapter.read()
    const low = new Low<State>(adapter, kept ?? fresh())
    if (!kept) await low.write()
    return new StateFile(low)
  }

  /** The state on disk. */
  get data(): Readonly<State> {
    return this.#data
  }

  reread(): Promise<void> {
    return this.#inTurn(() => this.#reread())
  }

  update(change: (state: State) => void): Promise<void> {
    return this.#write(() => {
      const next = structuredClone(this.#data)
      change(next)
      return State.parse(next)
    })
  }

  /** Writes another state in its place. */
  replace(state: State): Promise<void> {
    return this.#write(() => state)
  }

  async #reread(): Promise<void> {
    const written = await this.#low.adapter.read()
    if (!written) return
    this.#low.data = written
    this.#data = written
  }

  #write(make: () => State): Promise<void> {
    return this.#inTurn(async () => {
      this.#low.data = make()
      await this.#low.write()
      this.#data = this.#low.data
    })
  }

  /** One after the other. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => {})
    return turn
  }
}

class DurableFile implements Adapter<State> {
  readonly #file: string

  constructor(file: string) {
    this.#file = file
  }

  async read(): Promise<State | null> {
    let text: string
    try {
      text = readFileSync(this.#file, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      if (!existsSync(`${this.#file}.previous`)) return null
      throw new Error(`${this.#file} is missing, although ${this.#file}.previous exists. Restore that file, or a backup.`, {
        cause: error,
      })
    }
    return check(this.#file, text)
  }

  async write(data: State): Promise<void> {
    savePrevious(this.#file)
    await writeFileAtomic(this.#file, `${JSON.stringify(data, null, 2)}\n`, { mode: 0o600, fsync: true })
    // the rename is durable only once the directory is
    syncPath(dirname(this.#file))
  }
}

/** Removes temporary files that a killed process left. */
function removeDrafts(file: string): void {
  const name = `${basename(file)}.`
  for (const entry of readdirSync(dirname(file)))
    if (entry.startsWith(name) && /^\d+$/.test(entry.slice(name.length))) rmSync(join(dirname(file), entry))
}

function savePrevious(file: string): void {
  rmSync(`${file}.previous`, { force: true })
  try {
    linkSync(file, `${file}.previous`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function check(file: string, text: string): State {
  const hint = `Restore ${file}.previous or a backup; the file was not changed.`
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Error(`${file} is damaged: it is not JSON (${(error as Error).message}). ${hint}`, { cause: error })
  }
  const version = (value as { version?: unknown } | null)?.version
  if (typeof version === 'number' && version > 1) {
    throw new Newer(
      `${file} was written by a newer Pillarbox (version ${version}, this one knows 1). Run the newer program, or restore a backup.`,
    )
  }
  const parsed = State.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]!
  throw new Error(`${file} is damaged: ${issue.path.join('.') || 'the document'}: ${issue.message}. ${hint}`)
}
