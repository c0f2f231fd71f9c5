import { type Token, tokensOf } from './tokens.ts'

/** A word, a phrase or the beginning of a word, in one of the texts or in any. */
export interface Term {
  column: 'sender' | 'subject' | undefined
  text: string
  prefix: boolean
}

/** The bytes of a lexeme and the last position, of which PostgreSQL stores no more (chapter 12.11, Limitations). */
const maxLexeme = 2046
const maxPosition = 16_383

/** Positions of one lexeme: PostgreSQL drops further ones. */
const maxPositions = 255

/** Bytes of lexemes and positions, of which a tsvector has at most 2^20: further words are not found. */
const maxVector = 1_000_000

/** Marks the columns: the sender, the subject, the owner; the body has none. */
const weights = { sender: 'A', subject: 'B', owner: 'C', body: '' } as const

/** The texts of an e-mail with its owner, as the text of a tsvector with the tokens of FTS5. */
export function vectorOf(owner: string, texts: Record<'sender' | 'subject' | 'body', string>): string {
  const columns = ['sender', 'subject', 'body'] as const
  const lists = tokensOf(columns.map((column) => texts[column]))
  const positions = new Map<string, string[]>()
  let first = 1
  let size = 0
  for (const [index, column] of columns.entries()) {
    const list = lists[index]!
    for (const { term, position } of list) {
      const lexeme = lexemeOf(term)
      const at = positions.get(lexeme) ?? []
      size += 2 + (at.length === 0 ? Buffer.byteLength(lexeme) + 4 : 0)
      if (size > maxVector) break
      if (at.length < maxPositions) at.push(`${Math.min(first + position, maxPosition)}${weights[column]}`)
      positions.set(lexeme, at)
    }
    // no phrase goes from one column into the next
    first += list.length + 1
  }
  const words = [...positions].map(([lexeme, at]) => `${quoted(lexeme)}:${at.join(',')}`)
  return [`${quoted(`${ownerMark}${owner}`)}:1${weights.owner}`, ...words].join(' ')
}

/** The text of a tsquery; undefined when a wanted term has no token, which nothing matches. */
export function queryOf(owner: string, wanted: readonly Term[], unwanted: readonly Term[]): string | undefined {
  const phrases = tokensOf([...wanted, ...unwanted].map(({ text }) => text)).map((tokens, index) =>
    phraseOf(tokens, (wanted[index] ?? unwanted[index - wanted.length])!),
  )
  const all = phrases.slice(0, wanted.length)
  if (all.includes(undefined)) return undefined
  const none = phrases.slice(wanted.length).filter((phrase) => phrase !== undefined)
  return [`${quoted(`${ownerMark}${owner}`)}:${weights.owner}`, ...all, ...none.map((phrase) => `!${phrase}`)].join(' & ')
}

/** Before the owner, so that no word is one: no token has a space. */
const ownerMark = ' '

function phraseOf(tokens: readonly Token[], { column, prefix }: Term): string | undefined {
  if (tokens.length === 0) return undefined
  const within = column === undefined ? 'ABD' : weights[column]
  const lexemes = tokens.map(
    ({ term }, index) => `${quoted(lexemeOf(term))}:${prefix && index === tokens.length - 1 ? '*' : ''}${within}`,
  )
  return `(${lexemes.join(' <-> ')})`
}

function lexemeOf(term: string): string {
  if (Buffer.byteLength(term) <= maxLexeme) return term
  const { read } = new TextEncoder().encodeInto(term, new Uint8Array(maxLexeme))
  return term.slice(0, read)
}

function quoted(lexeme: string): string {
  return `'${lexeme.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
}
