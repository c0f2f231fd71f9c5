import { Parser, Tokenizer } from 'htmlparser2'
import { remembered } from '../core/memory.ts'

/** Tokenizes HTML; the caller keeps the text. */
export { Tokenizer }

/** Callbacks of `readXml`. Names of elements are in lower case without a namespace prefix, those of attributes as written. */
export interface XmlHandler {
  open(name: string, attributes: Readonly<Record<string, string>>): void
  text(text: string): void
  close(name: string): void
}

/** How deep elements may nest, and how many there may be. */
interface XmlLimits {
  depth: number
  elements: number
}

const reportLimits: XmlLimits = { depth: 12, elements: 400_000 }
const longestName = 64

/** Characters of a tag, a comment or another piece that must be read whole, where the XML comes in pieces. */
const longestToken = 1024 * 1024

/** Parses XML as `xmlReader` does, in one piece, with elements that nest at most 12 deep and are at most 400,000. */
export function readXml(xml: string, handler: XmlHandler): void {
  const reader = xmlReader(handler, reportLimits)
  reader.write(xml)
  reader.end()
}

/**
 * Parses XML in pieces. Only the five predefined entities and character references are expanded; documents cannot declare entities, and nothing is
 * fetched. Throws an Error when there are more elements than the limits allow, when a name with its prefix is longer than 64 characters, or when a tag takes
 * more than 1 Mi characters.
 */
export function xmlReader(handler: XmlHandler, limits: XmlLimits): { write(xml: string): void; end(): void } {
  let depth = 0
  let elements = 0
  /** Characters since something was read. */
  let unread = 0
  const parser = new Parser(
    {
      onopentagname(name) {
        if (++depth > limits.depth || ++elements > limits.elements) throw new Error('The XML has too many elements.')
        if (name.length > longestName) throw new Error(`The XML has a name of more than ${longestName} characters.`)
      },
      onopentag(name, attributes) {
        unread = 0
        handler.open(localName(name), attributes)
      },
      ontext(text) {
        unread = 0
        handler.text(text)
      },
      onclosetag(name) {
        unread = 0
        depth--
        handler.close(localName(name))
      },
    },
    { xmlMode: true, decodeEntities: true },
  )
  return {
    write(xml) {
      if (unread > longestToken) throw new Error('The XML has a tag that is too long.')
      unread += xml.length
      parser.write(xml)
    },
    end: () => parser.end(),
  }
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1).toLowerCase()
}

/** Elements whose text mail clients do not display: the page's view of a message leaves them out too. */
export const hiddenElements: ReadonlySet<string> = new Set(
  (
    'style script title svg math select datalist progress meter object applet template noscript textarea iframe noframes noembed xmp plaintext audio ' +
    'video canvas dialog rp'
  ).split(' '),
)

/** Declarations that hide an element. */
const hiding = new Map([
  ['display', new Set(['none'])],
  ['visibility', new Set(['hidden', 'collapse'])],
  ['content-visibility', new Set(['hidden'])],
])

/**
 * True if an inline style has a declaration that hides its element. Colours, sizes and positions are ignored: what they hide depends on the
 * elements around (`screening/appearance.ts`).
 */
export const isHiddenStyle = remembered(
  (style) => [...declarationsOf(style)].some(([property, { value }]) => hiding.get(property)?.has(value) === true),
  () => 0,
)

/** The value of a declaration in lower case, without `!important`. */
export interface Declared {
  value: string
  important: boolean
}

/**
 * The declarations of a style (CSS Syntax 3: comments, strings, escapes, any white space), the last of each property of those that `isTaken`, if it is
 * given: a value that is not valid leaves the one before it.
 */
export function declarationsOf(style: string, isTaken?: (property: string, value: string) => boolean): Map<string, Declared> {
  const found = new Map<string, Declared>()
  for (const declaration of splitDeclarations(withVariableCase(withoutStrings(style)).toLowerCase().replace(/\s+/g, ' '))) {
    const colon = /^(?:[^:\\]|\\[^])*:/.exec(declaration)?.[0].length
    if (colon === undefined) continue
    const property = withoutEscapes(declaration.slice(0, colon - 1)).trim()
    const [value = '', mark] = withoutEscapes(declaration.slice(colon)).split('!', 2)
    const important = mark?.trim() === 'important'
    // `!ie` and the like are not valid
    if (isTaken && mark !== undefined && !important) continue
    if (isTaken && !isTaken(property, value.trim())) continue
    if (!important && found.get(property)?.important === true) continue
    // in the order in which they hold
    found.delete(property)
    found.set(property, { value: value.trim(), important })
  }
  return found
}

const closers = new Map([
  ['(', ')'],
  ['[', ']'],
  ['{', '}'],
])

/** The declarations between semicolons, but those in brackets and after a backslash. */
function splitDeclarations(css: string): string[] {
  const parts: string[] = []
  const open: string[] = []
  const marks = /\\[^]|[;()[\]{}]/g
  let start = 0
  for (let found = marks.exec(css); found; found = marks.exec(css)) {
    const mark = found[0]
    const closer = closers.get(mark)
    if (closer !== undefined) open.push(closer)
    else if (mark === open.at(-1)) open.pop()
    else if (mark === ';' && open.length === 0) {
      parts.push(css.slice(start, found.index))
      start = marks.lastIndex
    }
  }
  return [...parts, css.slice(start)]
}

/** CSS whose names of variables are still different in lower case. */
export function withVariableCase(css: string): string {
  return css.replace(/--[\w-]+/g, (name) => name.replace(/[A-Z]/g, '$&\u00b7'))
}

/** CSS with its escapes as the characters they stand for. */
export function withoutEscapes(css: string): string {
  return css.replace(/\\(?:([\da-f]{1,6})[ \t\n\r\f]?|([^\n\r\f]))/gi, (_, hex?: string, character?: string) =>
    hex === undefined ? character! : unescaped(Number.parseInt(hex, 16)),
  )
}

function unescaped(code: number): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : ''
}

/** CSS with a space in place of each comment, and with empty strings and URLs, in which other rules hold than in the rest. */
export function withoutStrings(css: string): string {
  const kept: string[] = []
  const starts =
    /["']|\/\*|(?<![\w-])(?:u|\\u|\\0{0,4}[57]5\s?)(?:r|\\r|\\0{0,4}[57]2\s?)(?:l|\\l|\\0{0,4}[46]c\s?)\(\s*(?!["'\s])/gi
  let at = 0
  for (let found = starts.exec(css); found; found = starts.exec(css)) {
    const [mark] = found
    kept.push(css.slice(at, found.index), mark === '/*' ? ' ' : mark.length > 1 ? 'url()' : '""')
    if (mark === '/*') {
      const end = css.indexOf('*/', starts.lastIndex)
      at = end === -1 ? css.length : end + 2
    } else if (mark.length > 1) at = urlEnd(css, starts.lastIndex)
    else at = stringEnd(css, starts.lastIndex, mark)
    starts.lastIndex = at
  }
  return kept.join('') + css.slice(at)
}

/** Where a URL without quotes ends: after its parenthesis. */
function urlEnd(css: string, start: number): number {
  for (let at = start; at < css.length; at += 1) {
    if (css[at] === '\\') at += 1
    else if (css[at] === ')') return at + 1
  }
  return css.length
}

/** Where a string ends: after its quote, or at the end of the line. */
function stringEnd(css: string, start: number, quote: string): number {
  for (let at = start; at < css.length; at += 1) {
    const character = css[at]
    if (character === '\\') at += 1
    else if (character === quote) return at + 1
    else if (character === '\n') return at
  }
  return css.length
}
