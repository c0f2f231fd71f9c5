import { createHash } from 'node:crypto'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { flaw, type Pair, write } from './pair.ts'

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

/** The stored data of one CA in its own directory: our account key, its certificates, and their states. Readable by the owner only. */
export class AcmeStore {
  readonly #directory: string
  #states: Record<string, AcmeState> = {}

  private constructor(directory: string) {
    this.#directory = directory
  }

  /** Opens the directory below `parent`, named after the CA. Throws a sentence when it cannot be created or read. */
  static async open(parent: string, directoryUrl: string): Promise<AcmeStore> {
    const mark = createHash('sha256').update(directoryUrl).digest('hex').slice(0, 8)
    const acmeStore = new AcmeStore(join(parent, `${new URL(directoryUrl).hostname.replace(/[^\w.-]/g, '')}-${mark}`))
    await mkdir(acmeStore.#directory, { recursive: true, mode: 0o700 })
    const kept = await textAt(acmeStore.#path('state.json'))
    const read = States.safeParse(kept === undefined ? {} : attempt(() => JSON.parse(kept)))
    // it only holds the next attempt: a damaged one is treated as missing
    acmeStore.#states = read.success ? read.data : {}
    return acmeStore
  }

  /** The key of our account, created by `make` when there is none. */
  async accountKey(make: () => Promise<string>): Promise<string> {
    const kept = await textAt(this.#path('account.pem'))
    if (kept !== undefined) return kept
    const made = await make()
    await write(this.#path('account.pem'), made, 0o600)
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
    await write(this.#path(`${name}.pem`), `${key.trim()}\n${cert.trim()}\n`, 0o600)
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
    const next = { ...this.#states, [name]: state }
    await write(this.#path('state.json'), `${JSON.stringify(next, null, 2)}\n`, 0o600)
    this.#states = next
  }

  /** Removes a certificate that is no longer wanted. */
  async drop(name: string): Promise<void> {
    const { [name]: _, ...next } = this.#states
    await write(this.#path('state.json'), `${JSON.stringify(next, null, 2)}\n`, 0o600)
    this.#states = next
    await rm(this.#path(`${name}.pem`), { force: true })
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

function attempt(work: () => unknown): unknown {
  try {
    return work()
  } catch {
    return undefined
  }
}
