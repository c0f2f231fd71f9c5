import { Tokenizer } from './markup.ts'

/** What an image of a message may be shown from: undefined leaves it out, and shows what it is called. */
export type ImageSource = (source: string) => string | undefined

/** Elements that only shape text, with what may be said of them. Whatever is not here loses its tags and keeps its text. */
const attributes: Record<string, string> = {
  a: 'href',
  img: 'src alt width height',
  font: 'color face size',
  blockquote: 'type',
  ol: 'type start',
  ul: 'type',
  li: 'value',
  table: 'width height border cellpadding cellspacing bgcolor align',
  td: 'width height colspan rowspan bgcolor align valign nowrap',
  th: 'width height colspan rowspan bgcolor align valign nowrap scope',
  tr: 'height bgcolor align valign',
  col: 'width span',
  colgroup: 'width span',
  hr: 'width size align',
  br: 'clear',
}

const plain =
  'abbr acronym address article aside b bdi bdo big caption center cite code dd del dfn div dl dt em figcaption figure footer h1 h2 h3 h4 h5 h6 ' +
  'header i ins kbd main mark p pre q s samp section small span strike strong style sub summary sup tbody tfoot thead time tt u var wbr'

const allowed = new Set([...Object.keys(attributes), ...plain.split(' ')])

const everywhere = new Set(['style', 'class', 'dir', 'lang', 'align', 'title'])

/** What goes with all that is inside. */
const gone = new Set(
  'script title textarea iframe noframes noembed xmp plaintext svg math template select audio video canvas object applet noscript'.split(
    ' ',
  ),
)

const voids = new Set(['img', 'br', 'hr', 'col', 'wbr'])

/** Characters of HTML that are read; of more, nobody reads the end. */
const longest = 2_000_000

/** Characters that are read in one go, before others have their turn. */
const stretch = 65_536

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * HTML of a stranger without what could run, ask, or take the reader elsewhere: an allow-list of elements and attributes, links that open
 * apart, images from where `image` says, and style that fetches nothing unless `remote`. Written token by token: no tree is built.
 */
export async function sanitize(html: string, image: ImageSource, remote: boolean): Promise<string> {
  const text = html.slice(0, longest)
  const writer = new Writer(text, image, remote)
  const tokenizer = new Tokenizer({ decodeEntities: true }, writer)
  for (let at = 0; at < text.length; at += stretch) {
    tokenizer.write(text.slice(at, at + stretch))
    await turn()
  }
  tokenizer.end()
  return writer.written.join('')
}

class Writer {
  readonly written: string[] = []
  readonly #html: string
  readonly #image: ImageSource
  readonly #remote: boolean
  #tag = ''
  #given = new Map<string, string>()
  #name = ''
  #value = ''
  /** The element that goes with all that is inside, and how often it was opened in itself. */
  #inside = ''
  #depth = 0
  /** The style sheet that is being read: its text comes in pieces. */
  #sheet: string[] | undefined

  constructor(html: string, image: ImageSource, remote: boolean) {
    this.#html = html
    this.#image = image
    this.#remote = remote
  }

  onopentagname(start: number, end: number): void {
    this.#tag = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    this.#given = new Map()
  }

  onattribname(start: number, end: number): void {
    this.#name = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    this.#value = ''
  }

  onattribdata(start: number, end: number): void {
    this.#value += this.#html.slice(start, end)
  }

  onattribentity(codepoint: number): void {
    this.#value += String.fromCodePoint(codepoint)
  }

  onattribend(): void {
    // the first of several of one name is the one that counts (HTML 13.2.5.33)
    if (!this.#given.has(this.#name)) this.#given.set(this.#name, this.#value)
  }

  onopentagend(): void {
    const tag = this.#tag
    if (this.#inside !== '') {
      if (tag === this.#inside) this.#depth++
      return
    }
    if (gone.has(tag)) {
      this.#inside = tag
      this.#depth = 1
      return
    }
    if (!allowed.has(tag)) return
    if (tag === 'style') this.#sheet = []
    this.written.push(`<${tag}${this.#kept()}>`)
  }

  onselfclosingtag(): void {
    // only foreign elements close themselves in HTML; a sheet that does has ended for the tokenizer and not for browsers: there is none
    if (this.#inside === '' && ['svg', 'math', 'style'].includes(this.#tag)) return
    if (this.#inside === '' || this.#tag !== this.#inside) this.onopentagend()
  }

  onclosetag(start: number, end: number): void {
    const tag = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    if (this.#inside !== '') {
      if (tag === this.#inside && --this.#depth === 0) this.#inside = ''
      return
    }
    if (tag === 'style') this.#endSheet()
    if (allowed.has(tag) && !voids.has(tag)) this.written.push(`</${tag}>`)
  }

  ontext(start: number, end: number): void {
    if (this.#inside !== '') return
    const text = this.#html.slice(start, end)
    if (this.#sheet) this.#sheet.push(text)
    else this.written.push(escaped(text))
  }

  ontextentity(codepoint: number): void {
    if (this.#inside === '') this.written.push(escaped(String.fromCodePoint(codepoint)))
  }

  onend(): void {
    if (!this.#sheet) return
    this.#endSheet()
    this.written.push('</style>')
  }

  oncdata(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onprocessinginstruction(): void {}

  #endSheet(): void {
    if (this.#sheet) this.written.push(this.#style(this.#sheet.join('')))
    this.#sheet = undefined
  }

  #kept(): string {
    const own = new Set(attributes[this.#tag]?.split(' '))
    const kept: string[] = []
    for (const [name, value] of this.#given) {
      if (!own.has(name) && !everywhere.has(name)) continue
      const shown = this.#shown(name, value)
      if (shown !== undefined) kept.push(` ${name}="${escaped(shown)}"`)
    }
    if (this.#tag === 'a') kept.push(' target="_blank" rel="noopener noreferrer nofollow"')
    return kept.join('')
  }

  #shown(name: string, value: string): string | undefined {
    if (name === 'style') return this.#style(value)
    if (name === 'src') return this.#image(bare(value))
    if (name === 'href') return /^(?:https?:\/\/|mailto:|tel:)/i.test(bare(value)) ? bare(value) : undefined
    return value
  }

  /**
   * Escapes could spell any name; what remains of an address without `url(` is no style, and is passed over. What is taken away goes first:
   * nothing may come together after it was looked for.
   */
  #style(text: string): string {
    const spelt = text.replace(/[\\<]/g, '').replace(/@import/gi, '@none')
    return this.#remote ? spelt : spelt.replace(/(?:url|image-set|image|src)\s*\(/gi, 'none(')
  }
}

/** Browsers pass over these in addresses. */
function bare(address: string): string {
  // eslint-disable-next-line no-control-regex
  return address.replace(/[\t\r\n\u0000]/g, '').trim()
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
