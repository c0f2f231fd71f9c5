import { createHash } from 'node:crypto'
import { type IndexedEmail, type Row, searchTable, type Source, type Table, type Target, type Words } from './side.ts'

export interface CopyProgress {
  signal?: AbortSignal | undefined
  /** Called after each batch with the number of rows that are copied. */
  onProgress?: ((rows: number) => void) | undefined
}

interface CopyOptions extends CopyProgress {
  /** Reads the words of an e-mail: from the source, or from what was copied of it. */
  words: (seq: number) => Words | undefined
}

/** The rows of a table, with their checksum. */
export interface CopiedTable {
  rows: number
  checksum: string
}

/** A copy has other rows than its source. */
export class Different extends Error {}

/**
 * Copies all rows, from where a former copy stopped, with the search index and what numbers the next rows; then reads all of both and compares them.
 * Returns the tables by their name. Throws Different when a table is not the same.
 */
export async function copyDatabase(
  tables: readonly Table[],
  source: Source,
  target: Target,
  options: CopyOptions,
): Promise<Record<string, CopiedTable>> {
  let rows = 0
  const tell = (count: number): void => {
    options.signal?.throwIfAborted()
    options.onProgress?.((rows += count))
  }
  const sums = new Map<string, RowSum>()
  // what is referred to comes first
  for (const table of tables.toSorted((one, other) => Number(one.refers) - Number(other.refers))) {
    let done = target.done(table.name)
    // of a table that was begun before, all is read again for its checksum
    const sum = done === 0 ? new RowSum() : undefined
    tell(done)
    for await (const batch of source.rows(table, done)) {
      for (const row of sum ? batch : []) sum!.add(row)
      done += batch.length
      await target.insert(table, batch, done)
      tell(batch.length)
    }
    if (sum) sums.set(table.name, sum)
  }
  await copyWords(source, target, options)
  await target.setSequences(tables, await source.sequences(tables))
  return compared(tables, sums, source, target, options.signal)
}

async function copyWords(source: Source, target: Target, { words, signal }: CopyOptions): Promise<void> {
  let done = target.done(searchTable)
  for await (const seqs of source.indexed(done)) {
    signal?.throwIfAborted()
    const emails = seqs.map((seq): IndexedEmail => ({ seq, words: words(seq) ?? none }))
    await target.insertWords(emails, (done += seqs.length))
  }
}

const none: Words = { owner: '', sender: '', subject: '', body: '' }

async function compared(
  tables: readonly Table[],
  sums: ReadonlyMap<string, RowSum>,
  source: Source,
  target: Target,
  signal: AbortSignal | undefined,
): Promise<Record<string, CopiedTable>> {
  const all: [string, CopiedTable][] = []
  const wrong: string[] = []
  const compare = (name: string, one: RowSum, other: RowSum): void => {
    all.push([name, { rows: one.rows, checksum: one.checksum }])
    if (one.rows !== other.rows) wrong.push(`${name} (${other.rows} of ${one.rows} rows)`)
    else if (one.checksum !== other.checksum) wrong.push(`${name} (another checksum)`)
  }
  for (const table of tables) {
    const sum = sums.get(table.name) ?? (await sumOf(source.rows(table, 0), signal))
    compare(table.name, sum, await sumOf(target.rows(table, 0), signal))
  }
  compare(searchTable, await sumOf(asRows(source.indexed(0)), signal), await sumOf(asRows(target.indexed(0)), signal))
  if (wrong.length > 0) throw new Different(`The copy is not the same as its source: ${wrong.join(', ')}.`)
  return Object.fromEntries(all)
}

async function sumOf(batches: AsyncIterable<Row[]>, signal: AbortSignal | undefined): Promise<RowSum> {
  const sum = new RowSum()
  for await (const batch of batches) {
    signal?.throwIfAborted()
    for (const row of batch) sum.add(row)
  }
  return sum
}

async function* asRows(batches: AsyncIterable<number[]>): AsyncIterable<Row[]> {
  for await (const batch of batches) yield batch.map((seq) => [seq])
}

/** The number of rows and a checksum of them that does not depend on their order: the sum of their SHA-256. */
export class RowSum {
  #count = 0
  readonly #sum = new Uint32Array(8)

  add(row: Row): void {
    const hash = createHash('sha256')
    for (const value of row) {
      if (value === null) hash.update('-')
      else if (value instanceof Uint8Array) hash.update(`b${value.length}:`).update(value)
      else if (typeof value === 'string') hash.update(`t${Buffer.byteLength(value)}:${value}`)
      else hash.update(`n${value}:`)
    }
    const digest = hash.digest()
    for (let index = 0; index < 8; index += 1) this.#sum[index]! += digest.readUInt32BE(4 * index)
    this.#count += 1
  }

  get rows(): number {
    return this.#count
  }

  /** In hex. */
  get checksum(): string {
    return [...this.#sum].map((part) => part.toString(16).padStart(8, '0')).join('')
  }
}

/** What a copy is a copy of: a box at one moment. A box that was started since is at another. */
interface Origin {
  box_id: string
  moment: unknown
}

/** Says at which moment a database is; a start of the box changes it. */
export const momentQuery = `SELECT (SELECT head_seq FROM audit_chain) AS audit, (SELECT coalesce(max(seq), 0) FROM events) AS events,
  (SELECT probed FROM box) AS probed, (SELECT master_key_name FROM box) AS master_key`

/** The origin as it is noted in an unfinished copy. */
export function originOf(box_id: string, moment: unknown): string {
  const origin: Origin = { box_id, moment }
  return JSON.stringify(origin)
}

/** True if an unfinished copy is one of this box, of any moment. */
export function isOfBox(origin: string, box_id: string): boolean {
  return (JSON.parse(origin) as Origin).box_id === box_id
}
