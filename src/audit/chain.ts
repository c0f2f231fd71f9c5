import { hash } from 'node:crypto'

/** A place in the chain: a row and its hash. */
export interface ChainPlace {
  seq: number
  hash: Buffer
}

/** The columns that a hash covers, in this order. */
export const hashedColumns = [
  'seq',
  'account_id',
  'at',
  'actor',
  'client',
  'address',
  'action',
  'target',
  'identity_id',
  'count',
  'detail',
] as const

/** A row as its hash covers it: the bytes of each column, numbers in decimal. */
export type HashedRow = Record<(typeof hashedColumns)[number], Uint8Array | null>

/** The SHA-256 of the hash before it and of the row: each column with its length, so that no two rows are written alike. */
export function hashOf(previous: Uint8Array, row: HashedRow): Buffer {
  const parts: Uint8Array[] = [beginning, previous]
  for (const column of hashedColumns) {
    const bytes = row[column]
    if (bytes === null) parts.push(absent)
    else parts.push(Buffer.from(`${bytes.length}:`), bytes)
  }
  return hash('sha256', Buffer.concat(parts), 'buffer')
}

const beginning = Buffer.from('pillarbox audit 1\n')
const absent = Buffer.from('-')

/** What does not fit. */
interface ChainFault {
  /** The row, or the first that is missing. */
  seq: number
  what: string
}

export interface ChainReport {
  valid: boolean
  rows: number
  first_seq: number | null
  last_seq: number
  /** In hex. */
  head: string
  /** The first faults. */
  faults: ChainFault[]
}

/** The most faults that are listed. */
const most = 10

/** Checks rows one after the other against the chain. */
export class ChainCheck {
  readonly #faults: ChainFault[] = []
  /** What the next row may follow: after a wrong row, what is stored as its hash and what is computed. */
  #before: Buffer[] | undefined
  #seq: number
  #first: number | null = null
  #rows = 0

  constructor(anchor: ChainPlace) {
    this.#seq = anchor.seq
    this.#before = [anchor.hash]
  }

  /** The next row, with its hash as it is stored. */
  add(seq: number, row: HashedRow, stored: Uint8Array): void {
    this.#rows += 1
    this.#first ??= seq
    if (seq !== this.#seq + 1) this.#missing(this.#seq + 1, seq - 1)
    this.#seq = seq
    const own = Buffer.from(stored)
    // after missing rows nothing is known that it must follow
    const computed = this.#before?.map((before) => hashOf(before, row))
    const fits = computed?.some((one) => one.equals(own)) ?? true
    if (!fits) this.fault(seq, 'was changed: its hash does not match')
    this.#before = fits ? [own] : [own, ...computed!]
  }

  fault(seq: number, what: string): void {
    if (this.#faults.length < most) this.#faults.push({ seq, what })
  }

  /** The result, once all rows were added; the head is the row that must be the last. */
  finish(head: ChainPlace): ChainReport {
    if (head.seq > this.#seq) this.#missing(this.#seq + 1, head.seq)
    else if (head.seq < this.#seq) this.fault(head.seq + 1, 'follows the row that must be the last')
    else if (!this.#before!.some((one) => one.equals(head.hash))) this.fault(head.seq, 'is not the row that must be the last')
    return {
      valid: this.#faults.length === 0,
      rows: this.#rows,
      first_seq: this.#first,
      last_seq: head.seq,
      head: head.hash.toString('hex'),
      faults: this.#faults,
    }
  }

  #missing(from: number, to: number): void {
    this.fault(from, from >= to ? 'is missing' : `to ${to} are missing`)
    this.#before = undefined
  }
}
