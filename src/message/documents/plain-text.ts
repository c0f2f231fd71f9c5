import { TextDecoder } from 'node:util'
import { htmlLimit, htmlText } from '../markdown.ts'
import { linksOf } from '../links.ts'
import { isUtf8Text } from '../mime/body-text.ts'
import { withoutInvisible } from '../screening/invisible.ts'
import { longestText } from './collected-text.ts'

/** Bytes that are looked at to tell text from other data. */
const looked = 64 * 1024

/** Control characters that texts have: white space, form feed, and the escape of terminals. */
const usual = new Set([0x09, 0x0a, 0x0c, 0x0d, 0x1b])

/** The text of a file in its charset: that of its byte order mark, the declared one, UTF-8 if it is that, or Windows-1252. Null for other data. */
export function decodedText(bytes: Buffer, declared: string | null): { text: string; isCut: boolean } | null {
  // no charset takes more bytes for a character than its UTF-8 and the escapes of ISO-2022
  const start = bytes.subarray(0, 4 * longestText)
  const isCut = start.length < bytes.length
  const decoder = decoderOf(start, declared, isCut)
  if (!decoder.encoding.startsWith('utf-16') && !looksLikeText(start)) return null
  return { text: decoder.decode(start, { stream: isCut }), isCut }
}

/** What a person sees of an HTML file, as Markdown. */
export function textOfHtml(html: string): { text: string; isCut: boolean } {
  const read = html.slice(0, htmlLimit)
  const { seen, depth, tags } = linksOf(read, null, undefined)
  return { text: withoutInvisible(htmlText(seen?.html ?? read, { depth, tags })), isCut: read.length < html.length }
}

/** The charset that an HTML file declares itself; null for none. */
export function charsetInHtml(bytes: Buffer): string | null {
  const start = bytes.toString('latin1', 0, 1024)
  return /<meta\s[^<>]{0,200}?charset\s{0,5}=\s{0,5}["']?([\w.:-]{1,40})/i.exec(start)?.[1] ?? null
}

function decoderOf(bytes: Buffer, declared: string | null, isCut: boolean): TextDecoder {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le')
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder('utf-16be')
  const utf8 = isUtf8Text(bytes, isCut)
  try {
    const decoder = new TextDecoder(declared ?? 'utf-8')
    if (decoder.encoding !== 'utf-8' || utf8) return decoder
  } catch {
    // no charset by this name
  }
  return new TextDecoder(utf8 ? 'utf-8' : 'windows-1252')
}

function looksLikeText(bytes: Buffer): boolean {
  const start = bytes.subarray(0, looked)
  let controls = 0
  for (const octet of start) {
    if (octet === 0) return false
    if (octet < 0x20 && !usual.has(octet)) controls += 1
  }
  return controls * 100 <= start.length
}
