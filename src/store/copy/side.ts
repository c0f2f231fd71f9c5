import type { DatabaseSync } from 'node:sqlite'
import type { Value } from '../database.ts'

/** A table, the same on both engines. */
export interface Table {
  name: string
  columns: readonly Column[]
  /** The columns of the primary key; none of a table with one row. */
  key: readonly string[]
  /** True if its rows refer to those of others, which are copied before. */
  refers: boolean
}

interface Column {
  name: string
  type: 'INTEGER' | 'TEXT' | 'BLOB'
}

/** The values of a row, in the order of the columns. */
export type Row = readonly Value[]

/** The words of an e-mail, as they are indexed. */
export interface Words {
  owner: string
  sender: string
  subject: string
  body: string
}

/** How the search index is made anew from e-mails: it is the only table that the engines do not share. */
export interface WordIndex {
  /** Returns what reads the words of one e-mail in a database file; it returns undefined where there is no such e-mail. */
  reader(database: DatabaseSync): (seq: number) => Words | undefined
  /** The words as the text of a tsvector. */
  vector(words: Words): string
}

/** The words of an e-mail, by its `seq`. */
export interface IndexedEmail {
  seq: number
  words: Words
}

/** The last value of the sequences that number rows, by their table. */
export type Sequences = ReadonlyMap<string, number>

/** A database that is read as of one moment. */
export interface Source {
  /** All rows from one on, in the order of the key, in batches. */
  rows(table: Table, from: number): AsyncIterable<Row[]>
  /** The `seq` of the e-mails in the search index from one on, in their order, in batches. */
  indexed(from: number): AsyncIterable<number[]>
  sequences(tables: readonly Table[]): Promise<Sequences>
}

/** A database that is written; each call is a transaction of its own, which also notes how many rows of the table are there then. */
export interface Target extends Source {
  /** How many rows of a table, or of `searchTable`, are there. */
  done(name: string): number
  insert(table: Table, rows: readonly Row[], done: number): Promise<void>
  insertWords(emails: readonly IndexedEmail[], done: number): Promise<void>
  setSequences(tables: readonly Table[], sequences: Sequences): Promise<void>
}

export const searchTable = 'emails_search'

/** The table of an unfinished copy: what it is a copy of, and how many rows are there. A database with it is no box. */
export const progressTable = 'unfinished_copy'

/** Bytes of a batch, about. */
export const batchBytes = 4 * 1024 * 1024

export const batchRows = 1000

/** E-mails of a batch of words. */
export const batchEmails = 100

/** About the bytes of a row in memory. */
export function sizeOf(row: Row): number {
  let size = 16
  for (const value of row) size += typeof value === 'string' || value instanceof Uint8Array ? value.length : 8
  return size
}

/** The order of the rows of a table with this key. */
export function orderOf(key: Table['key']): string {
  return key.length === 0 ? '' : `ORDER BY ${key.map(quoted).join(', ')}`
}

/** A name as an identifier in SQL. */
export function quoted(name: string): string {
  return `"${name}"`
}
