import { TextDecoder } from 'node:util'
import { headersOf } from './headers.ts'
import { htmlLimit } from './markdown.ts'
import { decodeWords } from './mime/mailparser.ts'
import { writtenText } from './written-text.ts'

/** An attachment of text as a scan reads it. */
interface AttachedText {
  /** All that programs may read in it. */
  text: string
  /** False where there is more in it than that text says: bytes of a program or an archive, an unknown character set, long HTML, or an encoded part of a message. */
  isWhole: boolean
}

/** Reads an attachment that is declared to be text, by its byte order mark and by its character set, as programs differ in which of them counts. */
export function attachedText(content: Buffer, charset: string | null, contentType: string): AttachedText {
  const declared = decoderOf(charset ?? 'utf-8')
  const marked = markOf(content)
  const read = (marked ?? declared ?? new TextDecoder()).decode(content)
  const isMessage = /^message\//i.test(contentType)
  const mayBeMarkup = isMarkup.test(contentType)
  const isLong = mayBeMarkup && read.length > htmlLimit
  const texts = [read, content.toString('latin1'), ...(mayBeMarkup && !isLong ? [writtenText(read)] : [])]
  if (declared && marked) texts.push(declared.decode(content))
  if (isMessage) texts.push(...headersOf(content).map(({ value }) => decodeWords(value)))
  const isKnown = marked !== null || (declared !== null && !isOfUnknownOrder(charset))
  return { text: texts.join('\n'), isWhole: isKnown && !isLong && !(isMessage && encoded.test(read)) && !noText.test(read) }
}

const isMarkup = /^(?:text\/(?:html|x-amp-html|xml)|application\/xml|message\/)/i

/** A part of a forwarded message that is not written as it is read. */
const encoded = /^content-transfer-encoding\s*:(?!\s*(?:7bit|8bit|binary)\s*$)/im

/** Characters that no text has, nor one that was read with a wrong character set. */
// eslint-disable-next-line no-control-regex -- these are what is looked for
const noText = /[\0-\x08\x0e-\x1a\x1c-\x1f]/

/** True for UTF-16 that does not say which byte of a character is the first: programs take it for either. */
function isOfUnknownOrder(charset: string | null): boolean {
  return /^utf-?16$/i.test(charset ?? '')
}

function markOf([first, second]: Buffer): TextDecoder | null {
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le')
  return first === 0xfe && second === 0xff ? new TextDecoder('utf-16be') : null
}

/** Null for a character set that is not known. */
function decoderOf(charset: string): TextDecoder | null {
  try {
    return new TextDecoder(charset)
  } catch {
    return null
  }
}
