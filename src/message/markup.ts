import { Parser, Tokenizer } from 'htmlparser2'

/** Reads HTML token by token; the caller holds the text. */
export { Tokenizer }

/** What is found while XML is read; names come without their namespace's prefix, in lower case. */
export interface XmlHandler {
  open(name: string): void
  text(text: string): void
  close(name: string): void
}

const deepest = 12
const maxElements = 400_000

/**
 * Reads XML from its start to its end. Documents cannot declare entities: the five of XML and numbers are known, nothing is fetched.
 * Throws an Error when elements nest deeper than 12, or there are more than 400,000.
 */
export function readXml(xml: string, handler: XmlHandler): void {
  let depth = 0
  let elements = 0
  const parser = new Parser(
    {
      onopentagname(name) {
        if (++depth > deepest || ++elements > maxElements) throw new Error('The XML has too many elements.')
        handler.open(localName(name))
      },
      ontext: (text) => handler.text(text),
      onclosetag(name) {
        depth--
        handler.close(localName(name))
      },
    },
    { xmlMode: true, decodeEntities: true },
  )
  parser.write(xml)
  parser.end()
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1).toLowerCase()
}

/** Elements whose words no reader of mail sees. */
export const hiddenElements: ReadonlySet<string> = new Set(
  'style script title svg select object template noscript textarea'.split(' '),
)

/**
 * What hides the element of a style, as selectors. Colours, sizes, places and classes are not looked at: builders of mail set a size of 0 on columns whose
 * words are shown. Of visibility the property itself counts, not backface-visibility.
 */
export const hiddenStyles: readonly string[] = [
  ...['display:none', 'display: none', 'display :none', 'display : none'].map((style) => `[style*="${style}" i]`),
  ...['visibility:hidden', 'visibility: hidden'].flatMap((style) => [
    `[style^="${style}" i]`,
    `[style*=" ${style}" i]`,
    `[style*=";${style}" i]`,
  ]),
]

/** Whether a style hides its element; by the same rule. */
export function isHiddenStyle(style: string): boolean {
  return /display ?: ?none|(?:^|[ ;])visibility: ?hidden/i.test(style)
}
