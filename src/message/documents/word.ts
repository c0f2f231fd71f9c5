import type { XmlHandler } from '../markup.ts'
import type { CollectedText } from './collected-text.ts'
import type { OfficeFile } from './office-file.ts'

/** The type of the main file of a text document or template. */
export const wordType = /wordprocessingml\.(?:document|template)\.main\+xml$|ms-word\.(?:document|template)\.macroenabled/i

/** Elements that are not the text: properties, what was deleted or moved away, and what older programs display in place of the same again. */
const left = new Set('ppr rpr sectpr tblpr trpr tcpr sdtpr del movefrom instrtext deltext fallback'.split(' '))

/** Text beside the main one, which follows it. */
const others = /\/(?:footnotes|endnotes|comments|header\d*|footer\d*)\.xml$/

/** The text of a DOCX: a line for each paragraph, and for each row of a table with ` | ` between its cells. */
export async function readWord(file: OfficeFile, main: string, text: CollectedText): Promise<void> {
  await file.read(main, text, new WordReader(text))
  const folder = main.slice(0, main.lastIndexOf('/'))
  for (const name of file.names(others)) {
    if (!name.startsWith(folder)) continue
    text.add('\n')
    await file.read(name, text, new WordReader(text))
  }
}

class WordReader implements XmlHandler {
  readonly #text: CollectedText
  /** Open elements that are left out. */
  #left = 0
  #isText = false
  /** The cells begun in each of the open rows, the innermost last. */
  readonly #rows: number[] = []
  /** What separates the next text in a cell from the last. */
  #space = ''

  constructor(text: CollectedText) {
    this.#text = text
  }

  open(name: string): void {
    if (this.#left > 0 || left.has(name)) this.#left += 1
    else if (name === 't') this.#isText = true
    else if (name === 'tab') this.#add('\t')
    else if (name === 'br' || name === 'cr') this.#endLine()
    else if (name === 'nobreakhyphen') this.#add('-')
    else if (name === 'tr') this.#rows.push(0)
    else if (name === 'tc' && this.#rows.length > 0) this.#space = this.#rows[this.#rows.length - 1]!++ > 0 ? ' | ' : this.#space
  }

  text(text: string): void {
    if (this.#isText && this.#left === 0) this.#add(text)
  }

  close(name: string): void {
    if (this.#left > 0) this.#left -= 1
    else if (name === 't') this.#isText = false
    else if (name === 'p') this.#endLine()
    else if (name === 'tc') this.#space = ''
    else if (name === 'tr') {
      this.#rows.pop()
      this.#endLine()
    }
  }

  #add(text: string): void {
    this.#text.add(this.#space + text)
    this.#space = ''
  }

  #endLine(): void {
    if (this.#rows.length === 0) this.#add('\n')
    else if (this.#space === '') this.#space = ' '
  }
}
