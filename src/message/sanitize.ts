import { hiddenElements, Tokenizer } from './markup.ts'

/** The URL from which an image is loaded; undefined removes it, and the alternative text is displayed. */
type ImageSource = (source: string) => string | undefined

/** Allowed elements with their attributes. Elements that are not allowed lose their tags and keep their text. */
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

const globalAttributes = new Set(['style', 'class', 'dir', 'lang', 'align', 'title'])

/** Elements that are removed with their content; style sheets are sanitized. */
const droppedElements = new Set([...hiddenElements].filter((name) => name !== 'style'))

const voidElements = new Set(['img', 'br', 'hr', 'col', 'wbr'])

/** Characters of HTML that are processed; the rest is dropped. */
const maxLength = 2_000_000

/** Characters that are processed in one iteration of the event loop. */
const sliceLength = 65_536

const nextIteration = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Sanitizes untrusted HTML: an allow-list of elements and attributes, links that open in a new window, images from the URLs that `image`
 * returns, and styles that fetch nothing unless `remote`. Works token by token: no tree is built.
 */
export async function sanitize(html: string, image: ImageSource, remote: boolean): Promise<string> {
  const text = html.slice(0, maxLength)
  const writer = new Writer(text, image, remote)
  const tokenizer = new Tokenizer({ decodeEntities: true }, writer)
  for (let at = 0; at < text.length; at += sliceLength) {
    tokenizer.write(text.slice(at, at + sliceLength))
    await nextIteration()
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
  #attributes = new Map<string, string>()
  #name = ''
  #value = ''
  /** The element being removed with its content, and how often it is nested in itself. */
  #dropping = ''
  #depth = 0
  /** The text chunks of the style sheet being read. */
  #styleSheet: string[] | undefined

  constructor(html: string, image: ImageSource, remote: boolean) {
    this.#html = html
    this.#image = image
    this.#remote = remote
  }

  onopentagname(start: number, end: number): void {
    this.#tag = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    this.#attributes = new Map()
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
    // the first of several attributes of one name counts (HTML 13.2.5.33)
    if (!this.#attributes.has(this.#name)) this.#attributes.set(this.#name, this.#value)
  }

  onopentagend(): void {
    const tag = this.#tag
    if (this.#dropping !== '') {
      if (tag === this.#dropping) this.#depth++
      return
    }
    if (droppedElements.has(tag)) {
      this.#dropping = tag
      this.#depth = 1
      return
    }
    if (!allowed.has(tag)) return
    if (tag === 'style') this.#styleSheet = []
    this.written.push(`<${tag}${this.#keptAttributes()}>`)
  }

  onselfclosingtag(): void {
    // only foreign elements can be self-closing in HTML; a self-closing style ends for the tokenizer but not for browsers, so it is dropped
    if (this.#dropping === '' && ['svg', 'math', 'style'].includes(this.#tag)) return
    if (this.#dropping === '' || this.#tag !== this.#dropping) this.onopentagend()
  }

  onclosetag(start: number, end: number): void {
    const tag = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    if (this.#dropping !== '') {
      if (tag === this.#dropping && --this.#depth === 0) this.#dropping = ''
      return
    }
    if (tag === 'style') this.#endStyleSheet()
    if (allowed.has(tag) && !voidElements.has(tag)) this.written.push(`</${tag}>`)
  }

  ontext(start: number, end: number): void {
    if (this.#dropping !== '') return
    const text = this.#html.slice(start, end)
    if (this.#styleSheet) this.#styleSheet.push(text)
    else this.written.push(escaped(text))
  }

  ontextentity(codepoint: number): void {
    if (this.#dropping === '') this.written.push(escaped(String.fromCodePoint(codepoint)))
  }

  onend(): void {
    if (!this.#styleSheet) return
    this.#endStyleSheet()
    this.written.push('</style>')
  }

  oncdata(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onprocessinginstruction(): void {}

  #endStyleSheet(): void {
    if (this.#styleSheet) this.written.push(this.#safeStyle(this.#styleSheet.join('')))
    this.#styleSheet = undefined
  }

  #keptAttributes(): string {
    const own = new Set(attributes[this.#tag]?.split(' '))
    const kept: string[] = []
    for (const [name, value] of this.#attributes) {
      if (!own.has(name) && !globalAttributes.has(name)) continue
      const safe = this.#attributeValue(name, value)
      if (safe !== undefined) kept.push(` ${name}="${escaped(safe)}"`)
    }
    if (this.#tag === 'a') kept.push(' target="_blank" rel="noopener noreferrer nofollow"')
    return kept.join('')
  }

  #attributeValue(name: string, value: string): string | undefined {
    if (name === 'style') return this.#safeStyle(value)
    if (name === 'src') return this.#image(normalizedUrl(value))
    if (name === 'href') return /^(?:https?:\/\/|mailto:|tel:)/i.test(normalizedUrl(value)) ? normalizedUrl(value) : undefined
    return value
  }

  /**
   * CSS without escapes, `@import` and, unless `remote`, `url(` and the like. Characters are removed before names are searched, so that removal
   * cannot create a forbidden name. Without `url(` the rest of a URL is invalid CSS, which browsers ignore.
   */
  #safeStyle(text: string): string {
    const unescaped = text.replace(/[\\<]/g, '').replace(/@import/gi, '@none')
    return this.#remote ? unescaped : unescaped.replace(/(?:url|image-set|image|src)\s*\(/gi, 'none(')
  }
}

/** Removes characters that browsers ignore in URLs. */
function normalizedUrl(address: string): string {
  // eslint-disable-next-line no-control-regex
  return address.replace(/[\t\r\n\u0000]/g, '').trim()
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
