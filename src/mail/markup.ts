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
const mostElements = 400_000

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
        if (++depth > deepest || ++elements > mostElements) throw new Error('The XML has too many elements.')
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
