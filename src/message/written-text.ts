import { asInBrowsers } from './browser-html.ts'
import { Tokenizer } from './markup.ts'

/** Tags within words: what is before and behind them is one word. */
const inWords = new Set(
  'a abbr acronym b bdi bdo big cite code del dfn em font i ins kbd mark q s samp small span strike strong sub sup tt u var wbr'.split(
    ' ',
  ),
)

const ignored = (): void => undefined

/** All that is written in HTML, seen or not: its text, without the tags that divide words, and the values of attributes. Linear in the text. */
export function writtenText(markup: string): string {
  const html = asInBrowsers(markup)
  const text: string[] = []
  const values: string[] = []
  const separate = (start: number, end: number): void => {
    if (!inWords.has(html.slice(start, Math.min(end, start + 20)).toLowerCase())) text.push('\n')
  }
  const tokenizer = new Tokenizer(
    { decodeEntities: true },
    {
      onopentagname: separate,
      onclosetag: separate,
      ontext: (start, end) => void text.push(html.slice(start, end)),
      ontextentity: (code) => void text.push(String.fromCodePoint(code)),
      onattribdata: (start, end) => void values.push(html.slice(start, end)),
      onattribentity: (code) => void values.push(String.fromCodePoint(code)),
      onattribend: () => void values.push('\n'),
      onattribname: ignored,
      onopentagend: ignored,
      onselfclosingtag: ignored,
      oncdata: ignored,
      oncomment: ignored,
      ondeclaration: ignored,
      onprocessinginstruction: ignored,
      onend: ignored,
    },
  )
  tokenizer.write(html)
  tokenizer.end()
  return `${text.join('')}\n${values.join('')}`
}
