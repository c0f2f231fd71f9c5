import { attachedText } from '../../message/attached-text.ts'
import { type Found, findingsIn, type ScannedText } from '../../message/findings.ts'
import { type HeaderField, headersOf } from '../../message/headers.ts'
import { hasUrl, linksOf, mayHaveLink } from '../../message/links.ts'
import { htmlLimit } from '../../message/markdown.ts'
import { decodeWords } from '../../message/mime/mailparser.ts'
import {
  hasOutsideFile,
  hasWrittenFile,
  type OutsideBodies,
  outsideBodies,
  repeatsFields,
} from '../../message/mime/outside-bodies.ts'
import type { DecodedAttachment, Parsed } from '../../message/parsed.ts'
import { writtenText } from '../../message/written-text.ts'
import type { LookedAt } from '../types.ts'

type AttachmentsOf = (indexes: readonly number[]) => Promise<DecodedAttachment[]>

/** The attachments of an outgoing message that are scanned: how many, and the bytes of each. */
const maxScanned = { files: 20, bytes: 4 * 1024 * 1024 }

/** Attachments that programs show with the message, whatever their disposition. */
const shownTypes = /^(?:text\/(?:html|x-amp-html|calendar|enriched)|message\/)/i

/** Fields of ids, of random boundaries, and of servers before. */
const idFields = /^(?:message-id|in-reply-to|references|content-type|received|date|mime-version)$/

/** What policies look at in an outgoing message. `attachmentsOf` decodes those with these indexes. */
export async function lookedAt(parsed: Parsed, raw: Buffer, attachmentsOf: AttachmentsOf): Promise<LookedAt> {
  // of two fields of one name some software takes the first, some the last
  if (parsed.parse_error !== null || repeatsFields(raw)) return { found: null, may_have_link: null, may_have_file: null }
  const { subject, body_text, body_html } = parsed
  const fields = headersOf(raw)
  const outside = outsideBodies(raw, fields)
  const hasFile = hasWrittenFile(body_text ?? '') || (outside !== null && hasOutsideFile(outside))
  const files = await filesOf(parsed, attachmentsOf).catch(() => null)
  const texts = outsideOf(raw, fields, outside)
  const mayHave = mayHaveLink(`${subject}\n${body_text ?? ''}\n${outside?.text ?? ''}`, body_html)
  return {
    found: texts === null || files === null ? null : scanned(parsed, files, { texts, hasFile }),
    may_have_link: mayHave || (files?.some(({ isShown, text }) => isShown && hasUrl(text)) ?? null),
    may_have_file: hasFile || (outside === null ? null : false),
  }
}

/** An attachment of text that was read. */
interface ReadFile extends ScannedText {
  index: number
  isWhole: boolean
  /** True for one that programs show with the message. */
  isShown: boolean
}

async function filesOf({ attachments }: Parsed, attachmentsOf: AttachmentsOf): Promise<ReadFile[]> {
  const files = attachments
    .slice(0, maxScanned.files)
    .filter(({ content_type, size }) => isText(content_type) && size <= maxScanned.bytes)
  const read = await attachmentsOf(files.map(({ index }) => index))
  return read.map(({ attachment: { index, filename, content_type, disposition }, charset, content }) => {
    const isShown = disposition === 'inline' || shownTypes.test(content_type)
    return { index, place: filename, isShown, ...attachedText(content, charset, content_type) }
  })
}

/** What is found in an outgoing message that was read whole. */
function scanned(
  { subject, body_text, body_html, text, attachments }: Parsed,
  files: readonly ReadFile[],
  { texts, hasFile }: { texts: readonly ScannedText[]; hasFile: boolean },
): Found[] {
  const names = attachments.map(({ filename }) => filename)
  const whole = new Set(files.filter(({ isWhole }) => isWhole).map(({ index }) => index))
  const unreadFiles = attachments.filter(({ index }) => !whole.has(index)).map(({ filename }) => filename)
  const unread = hasFile ? ['parts', ...unreadFiles] : unreadFiles
  return [
    ...findingsIn([
      { place: 'subject', text: subject },
      { place: 'body_text', text: body_text ?? '' },
      { place: 'body_html', text: body_html ?? '' },
      ...writtenIn(body_html),
      { place: 'text', text },
      ...texts,
      ...files,
      { place: 'attachments', text: names.join('\n') },
    ]),
    ...unread.slice(0, 5).map((place): Found => ({ kind: 'unread', place, sample: '' })),
  ]
}

/** What programs may show of HTML: all of it, and what a person sees of its start where hidden text stands between. */
function writtenIn(html: string | null): ScannedText[] {
  if (html === null) return []
  const { seen } = linksOf(html.slice(0, htmlLimit), null, undefined)
  return [html, seen?.html ?? ''].map((one) => ({ place: 'body_html', text: writtenText(one) }))
}

/** What is in a message beside its subject, bodies and attachments; null for what is too long to be scanned. */
function outsideOf(raw: Buffer, fields: readonly HeaderField[], outside: OutsideBodies | null): ScannedText[] | null {
  // whatever its parts are
  if (outside === null && raw.length > maxScanned.bytes) return null
  const textOf = (isOfIds: boolean): string =>
    fields.flatMap(({ name, value }) => (idFields.test(name) === isOfIds ? [value, decodeWords(value)] : [])).join('\n')
  return [
    { place: 'header', text: textOf(false) },
    { place: 'header', text: textOf(true), isOfIds: true },
    { place: 'parts', text: outside?.text ?? '' },
    { place: 'parts', text: outside === null ? raw.toString('latin1') : outside.headers, isOfIds: true },
  ]
}

function isText(contentType: string): boolean {
  return /^(?:text\/|application\/(?:json|xml|x-sh|javascript|yaml)\b|message\/)/i.test(contentType)
}
