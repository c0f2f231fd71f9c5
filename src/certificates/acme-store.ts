import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import * as z from 'zod'
import { attempt } from '../core/fault.ts'
import { flaw, type Pair, write } from './pair.ts'
import type { SharedFiles } from './shared-files.ts'

/** The state of one certificate; times in milliseconds. */
export const AcmeState = z.strictObject({
  names: z.array(z.string()),
  /** The attempts within the last hour. */
  tries: z.array(z.number()),
  /** The consecutive failures. */
  failures: z.int(),
  tried_at: z.number().nullable(),
  /** The earliest next attempt; null after a success. */
  next_try_at: z.number().nullable(),
  problem: z.string().nullable(),
})
export type AcmeState = z.output<typeof AcmeState>

const States = z.record(z.string(), AcmeState)

/**
 * The stored data of one CA in its own directory: our account key, its certificates, and their states. Readable by the owner only. Of several boxes each
 * has a copy of what they share.
 */
export class AcmeStore {
  readonly #directory: string
  readonly #shared: SharedFiles | undefined
  #states: Record<string, AcmeState> = {}
  #last: Promise<unknown> = Promise.resolve()

  private constructor(directory: string, shared: SharedFiles | undefined) {
    this.#directory = directory
    this.#shared = shared
  }

  /** Opens the directory below `parent`, named after the CA. Throws a sentence when it cannot be created or read. */
  static async open(
    parent: string,
    directoryUrl: string,
    sharedIn: (directory: string) => SharedFiles | undefined,
  ): Promise<AcmeStore> {
    const mark = createHash('sha256').update(directoryUrl).digest('hex').slice(0, 8)
    const directory = join(parent, `${new URL(directoryUrl).hostname.replace(/[^\w.-]/g, '')}-${mark}`)
    const acmeStore = new AcmeStore(directory, sharedIn(basename(directory)))
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await acmeStore.refresh()
    return acmeStore
  }

  /** Reads the files, after taking over what other boxes have changed. */
  refresh(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#shared) await this.#takeOver(this.#shared)
      const kept = await textAt(this.#path('state.json'))
      const read = States.safeParse(kept === undefined ? {} : attempt((): unknown => JSON.parse(kept)))
      // it only holds the next attempt: a damaged one is treated as missing
      this.#states = read.success ? read.data : {}
    })
  }

  /** The key of our account, created by `make` when there is none. */
  async accountKey(make: () => Promise<string>): Promise<string> {
    const kept = await textAt(this.#path('account.pem'))
    if (kept !== undefined) return kept
    const made = await make()
    await this.#write('account.pem', made)
    return made
  }

  /** Undefined when there is none, or it is damaged. */
  async pair(name: string): Promise<Pair | undefined> {
    const text = await textAt(this.#path(`${name}.pem`))
    if (text === undefined) return undefined
    const at = text.indexOf('-----BEGIN CERTIFICATE-----')
    const pair = { key: text.slice(0, Math.max(at, 0)), cert: text.slice(Math.max(at, 0)) }
    return flaw(pair) === null ? pair : undefined
  }

  /** Both in one file, so that they are replaced together. */
  async save(name: string, { cert, key }: Pair): Promise<void> {
    await this.#write(`${name}.pem`, `${key.trim()}\n${cert.trim()}\n`)
  }

  file(name: string): string {
    return this.#path(`${name}.pem`)
  }

  /** The stored states, by name. */
  get states(): Readonly<Record<string, Readonly<AcmeState>>> {
    return this.#states
  }

  /** Stored when it resolves. */
  async note(name: string, state: AcmeState): Promise<void> {
    await this.#store({ ...this.#states, [name]: state })
  }

  /** Removes a certificate that is no longer wanted. */
  async drop(name: string): Promise<void> {
    const { [name]: _, ...next } = this.#states
    await this.#store(next)
    await this.#inTurn(async () => {
      await this.#shared?.remove(`${name}.pem`)
      await rm(this.#path(`${name}.pem`), { force: true })
    })
  }

  async #store(states: Record<string, AcmeState>): Promise<void> {
    await this.#write('state.json', `${JSON.stringify(states, null, 2)}\n`)
    this.#states = states
  }

  #write(name: string, text: string): Promise<void> {
    return this.#inTurn(async () => {
      await this.#shared?.write(new Map([[name, text]]))
      await write(this.#path(name), text, 0o600)
    })
  }

  /** Makes the files those of all boxes; what a box had alone becomes theirs. */
  async #takeOver(shared: SharedFiles): Promise<void> {
    const all = await shared.all()
    const own = new Map<string, string>()
    for (const name of await readdir(this.#directory)) {
      const text = /^[^.].*\.(?:pem|json)$/.test(name) ? await textAt(this.#path(name)) : undefined
      if (text !== undefined) own.set(name, text)
    }
    if (all.size === 0) return own.size === 0 ? undefined : shared.write(own)
    for (const [name, text] of all) if (own.get(name) !== text) await write(this.#path(name), text, 0o600)
    for (const name of own.keys()) if (!all.has(name)) await rm(this.#path(name), { force: true })
  }

  /** One after the other: what was read before must not replace what was written after. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => {})
    return turn
  }

  #path(name: string): string {
    return join(this.#directory, name)
  }
}

async function textAt(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
