import { DatabaseSync, type StatementSync } from 'node:sqlite'

/** A token of a text, and its position among the tokens of that text. */
export interface Token {
  term: string
  position: number
}

/** The tokens of texts, as FTS5 splits and folds them: by FTS5 itself, in memory. */
class Tokenizer {
  readonly #insert: StatementSync
  readonly #read: StatementSync
  readonly #clear: StatementSync

  constructor() {
    const database = new DatabaseSync(':memory:')
    database.exec(`CREATE VIRTUAL TABLE texts USING fts5 (text, content = '', tokenize = 'unicode61 remove_diacritics 2');
      CREATE VIRTUAL TABLE tokens USING fts5vocab (texts, 'instance')`)
    this.#insert = database.prepare('INSERT INTO texts (rowid, text) VALUES (?, ?)')
    this.#read = database.prepare('SELECT term, doc, offset FROM tokens')
    this.#clear = database.prepare(`INSERT INTO texts (texts) VALUES ('delete-all')`)
  }

  split(texts: readonly string[]): Token[][] {
    for (const [index, text] of texts.entries()) this.#insert.run(index, text)
    const tokens: Token[][] = texts.map(() => [])
    for (const row of this.#read.iterate()) {
      const { term, doc, offset } = row as { term: string; doc: number; offset: number }
      tokens[doc]!.push({ term, position: offset })
    }
    this.#clear.run()
    return tokens.map((list) => list.toSorted((one, other) => one.position - other.position))
  }
}

let tokenizer: Tokenizer | undefined

/** The tokens of each text, in their order. */
export function tokensOf(texts: readonly string[]): Token[][] {
  return (tokenizer ??= new Tokenizer()).split(texts)
}
