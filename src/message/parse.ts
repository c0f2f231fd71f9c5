import { mailboxes } from './addresses.ts'
import { mediaType, servedName } from './attachment-names.ts'
import { isAutomated } from './automated.ts'
import { codesIn } from './codes.ts'
import { firstValue, headEnd, type HeaderField, headerLimit, headersOf } from './headers.ts'
import { linksOf } from './links.ts'
import { htmlText } from './markdown.ts'
import { decodeWords } from './mime/mailparser.ts'
import { parseMime, upToLineLimit } from './mime/mime.ts'
import type { File, Mime } from './mime/model.ts'
import type { Attachment } from '../mail/model.ts'
import type { DecodedAttachment, Parsed } from './parsed.ts'
import { stripReply, snippetOf, stripMarkdown } from './reply-text.ts'
import { reportOf } from './reports/report.ts'
import { withoutInvisible, withSeenName } from './screening/invisible.ts'
import { screen } from './screening/screen.ts'
import { displayLine, withoutControls } from '../core/text.ts'
import { guessedUtf8, maxLines, textLimit, unixText } from './mime/body-text.ts'

/**
 * Parses a message. Never throws: if only the header can be read, the result has that, and `parse_error` starts with a stable
 * code: `header_too_large`, `too_many_lines`, `too_many_parts`, `part_header_too_large`, `no_parts`, `text_too_long`,
 * `unreadable`.
 */
export async function parse(raw: Buffer): Promise<Parsed> {
  const fields = headersOf(raw)
  if (headEnd(raw) === Infinity)
    return headersOnly(fields, raw, `header_too_large: The header has more than ${headerLimit} bytes.`)
  const start = upToLineLimit(raw)
  let mail: Mime
  try {
    mail = await parseMime(start, fields)
  } catch (error) {
    return headersOnly(fields, raw, reasonOf(error))
  }
  if (isLost(mail, fields, raw)) {
    const body = raw.subarray(headEnd(raw))
    mail.text = unixText(guessedUtf8(body.subarray(0, textLimit), body.length > textLimit))
    return buildParsed(fields, mail, 'no_parts: None of the parts announced in the header exists.')
  }
  const cut = mail.isCut ? `text_too_long: The texts were read up to ${maxLines} lines, or 20 MiB.` : null
  return buildParsed(
    fields,
    mail,
    start.length < raw.length ? `too_many_lines: The message was parsed up to line ${maxLines}.` : cut,
  )
}

/** Attachments with their decoded bytes, by their indexes in `parse()`; those that do not exist are left out. */
export async function attachmentsOf(raw: Buffer, indexes: readonly number[]): Promise<DecodedAttachment[]> {
  if (headEnd(raw) === Infinity) return []
  const mail = await parseMime(upToLineLimit(raw)).catch(() => undefined)
  return indexes.flatMap((index) => {
    const part = mail?.files[index]
    return part === undefined ? [] : { attachment: describe(part, index), charset: part.charset ?? null, content: part.content }
  })
}

// Only the subject is passed to the library again, to be decoded; without a body it cannot fail.
async function headersOnly(fields: readonly HeaderField[], raw: Buffer, reason: string): Promise<Parsed> {
  const subject = fields.find(({ name }) => name === 'subject')
  const lines = subject === undefined ? [] : [raw.subarray(subject.start, Math.min(subject.end, subject.start + 32_768))]
  const mail = await parseMime(Buffer.concat([...lines, Buffer.from('\r\n\r\n')])).catch(() => undefined)
  return buildParsed(fields, mail, reason)
}

function buildParsed(fields: readonly HeaderField[], mail: Mime | undefined, reason: string | null): Parsed {
  const writtenSubject = subjectOf(fields, mail)
  const subject = withoutInvisible(writtenSubject)
  const [bodyText, bodyHtml] = [bodyOf(mail?.text), bodyOf(mail?.html)]
  const { links, depth, tags, seen } = linksOf(bodyHtml, bodyText, firstValue(fields, 'list-unsubscribe'))
  const from = mailboxes(first(fields, 'from'), decodeWords)[0] ?? null
  const isAlternative = mail?.areSeparateBodies !== true
  const { screening, isOtherText } = screen({ subject: writtenSubject, from, text: bodyText, seen, isAlternative })
  let markdown: string | undefined
  const toMarkdown = (markup: string) =>
    // a character reference of HTML may be a control character
    (markdown ??= withoutControls(htmlText(markup, { depth, tags })))
  const html = seen?.html ?? null
  const seenText = isOtherText ? null : bodyText
  const whole = withoutInvisible(wholeText(seenText, html, toMarkdown, !isAlternative))
  const inReplyTo = messageIds(first(fields, 'in-reply-to'))[0] ?? null
  const references = messageIds(every(fields, 'references'))
  const refers = inReplyTo !== null || references.length > 0
  const text = stripReply(whole, subject, { refers, isHtml: seenText === null })
  // Codes in the quoted part of a reply belong to another message.
  let codes = codesIn(subject, inReplyTo === null ? whole : text)
  // Some text parts lack a code that the HTML has.
  if (codes.length === 0 && inReplyTo === null && seenText !== null && html !== null) codes = codesIn(subject, toMarkdown(html))
  return {
    subject,
    from: from && withSeenName(from),
    reply_to: mailboxes(first(fields, 'reply-to'))[0]?.address ?? null,
    to: mailboxes(every(fields, 'to'), decodeWords).map(withSeenName),
    cc: mailboxes(every(fields, 'cc'), decodeWords).map(withSeenName),
    message_id: messageIds(first(fields, 'message-id'))[0] ?? null,
    in_reply_to: inReplyTo,
    references,
    body_text: bodyText,
    body_html: bodyHtml,
    text,
    snippet: snippetOf(seenText === null ? stripMarkdown(text) : text),
    automated: isAutomated(fields, from?.address),
    codes,
    links,
    attachments: (mail?.files ?? []).map(describe),
    screening,
    report: mail === undefined ? null : reportOf(fields, mail),
    parse_error:
      reason ??
      (isTooLong(mail?.text) || isTooLong(mail?.html) ? `text_too_long: A body has more than ${textLimit} characters.` : null),
  }
}

function wholeText(
  text: string | null,
  html: string | null,
  toMarkdown: (markup: string) => string,
  isBesideHtml: boolean,
): string {
  if (html === null) return text ?? ''
  if (text === null) return toMarkdown(html)
  if (!isBesideHtml) return text
  // The library leaves an empty line in place of the HTML.
  return text.startsWith('\n') ? `${toMarkdown(html)}\n\n${text.trimStart()}` : `${text}\n\n${toMarkdown(html)}`
}

// the declared boundary never occurs: there is text, but in no part
function isLost(mail: Mime, fields: readonly HeaderField[], raw: Buffer): boolean {
  if (mail.files.length > 0 || !/^multipart\//i.test(firstValue(fields, 'content-type') ?? '')) return false
  return bodyOf(mail.text) === null && bodyOf(mail.html) === null && raw.length > headEnd(raw)
}

function bodyOf(text: string | undefined): string | null {
  if (text === undefined || text.trim() === '') return null
  const kept = withoutControls(text.slice(0, textLimit))
  return kept.trim() === '' ? null : kept
}

function isTooLong(text: string | undefined): boolean {
  return text !== undefined && text.length > textLimit
}

function subjectOf(fields: readonly HeaderField[], mail: Mime | undefined): string {
  const decoded = mail?.subject ?? ''
  const asWritten = firstValue(fields, 'subject') ?? ''
  // The library loses raw bytes that are not valid UTF-8.
  const subject = decoded.includes('\uFFFD') && !asWritten.includes('=?') ? asWritten : decoded
  return displayLine(subject.slice(0, 4096).toWellFormed())
}

function first(fields: readonly HeaderField[], name: string): string[] {
  const value = firstValue(fields, name)
  return value === undefined ? [] : [value]
}

function every(fields: readonly HeaderField[], name: string): string[] {
  return fields.flatMap((field) => (field.name === name ? [field.value] : []))
}

// At most the first (the root of the thread) and the last hundred.
function messageIds(values: readonly string[]): string[] {
  const ids = values.flatMap(
    (value) => value.match(/<[^<>\s]{1,990}>/g) ?? (/^[^<>\s]{1,990}$/.test(value) ? [`<${value}>`] : []),
  )
  return (ids.length > 101 ? [...ids.slice(0, 1), ...ids.slice(-100)] : ids).map(withoutControls)
}

function describe(part: File, index: number): Attachment {
  return {
    index,
    filename: servedName(part.filename ?? embeddedName(part), index),
    content_type: mediaType(part.contentType),
    size: part.size,
    content_id: part.cid === undefined || part.cid === '' ? null : withoutControls(part.cid.slice(0, 998)),
    disposition:
      part.contentDisposition === 'inline' || (part.contentDisposition === undefined && part.related) ? 'inline' : 'attachment',
    sha256: part.checksum,
  }
}

// A forwarded message is named after its subject.
function embeddedName(part: File): string | undefined {
  if (part.contentType !== 'message/rfc822') return undefined
  const subject = decodeWords(firstValue(headersOf(part.content), 'subject') ?? '').trim()
  return subject === '' ? undefined : `${subject.replaceAll('/', '_').slice(0, 190)}.eml`
}

function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  if (/child nodes/i.test(message)) return 'too_many_parts: The message has more than 1000 parts.'
  if (/header/i.test(message)) return `part_header_too_large: The header of a part has more than ${headerLimit} bytes.`
  return `unreadable: ${message.slice(0, 200)}`
}
