import { createRequire } from 'node:module'
import { Readable } from 'node:stream'
import type MailComposer from 'nodemailer/lib/mail-composer'
import { release } from '../../core/memory.ts'
import { Turns } from '../../core/work/paced-work.ts'
import type { Address } from '../../mail/model.ts'
import { freshMessageId, hasLongLine, headerDate, withLineEnds } from './prepare-raw.ts'
import { type Addressee, domainOf, type Field } from './recipients.ts'

const require = createRequire(import.meta.url)

// loaded with the first message
const mailComposer = (): typeof MailComposer => require('nodemailer/lib/mail-composer') as typeof MailComposer

/** An attachment with its content. */
export interface OutgoingAttachment {
  filename: string
  /** Derived from the name when null. */
  content_type: string | null
  content: Buffer
  /** Without angle brackets; the HTML shows it by `cid:`. */
  content_id: string | null
}

/** A message before it is composed; all fields are validated. */
export interface Draft {
  from: string
  addressees: Addressee[]
  subject: string
  text: string | null
  html: string | null
  reply_to: Address[]
  /** Further header fields. */
  headers: { name: string; value: string }[]
  attachments: OutgoingAttachment[]
  labels: string[]
  send_at: string | null
  auto_submitted: 'no' | 'auto-generated' | 'auto-replied' | null
  require_tls: boolean
  /** Message-IDs with angle brackets. */
  in_reply_to: string | null
  references: string[]
  thread_id: string | null
}

/** A message without its envelope. */
export type MessageContent = Omit<Draft, 'from' | 'addressees' | 'send_at'>

/** The display name of the sender, and the Date in milliseconds. */
export interface Origin {
  name: string
  at: number
}

/** `whole` begins with `head`, its Date field, which changes with the time of sending; `raw` is the rest. */
export interface Composed {
  raw: Buffer
  /** Header fields before `raw` that may still change: the Date of a message composed here. */
  head: string
  /** Both together. */
  whole: Buffer
}

/**
 * Composes a message with CRLF line ends and no line over 998 octets. Releases the buffers of the attachments. Each text and enclosed message is
 * encoded in one step, which blocks the thread: `Composer` does large ones in a worker.
 */
export async function compose(draft: Draft, { name, at }: Origin): Promise<Composed> {
  const of = (field: Field): Address[] => draft.addressees.filter((one) => one.field === field).map(({ address }) => address)
  const head = `Date: ${headerDate(at)}\r\n`
  const built = await new (mailComposer())({
    from: { name, address: draft.from },
    to: copies(of('to')),
    cc: copies(of('cc')),
    replyTo: copies(draft.reply_to),
    messageId: freshMessageId(domainOf(draft.from)),
    date: head.slice('Date: '.length, -2),
    ...(draft.in_reply_to === null ? {} : { inReplyTo: draft.in_reply_to }),
    references: draft.references,
    headers: fieldsOf(draft),
    ...(await bodies(draft)),
    attachments: await Promise.all(draft.attachments.map(attachment)),
    newline: 'win',
    disableFileAccess: true,
    disableUrlAccess: true,
  })
    .compile()
    .build()
  for (const { content } of draft.attachments) release(content)
  moveDate(built, head)
  return { raw: built.subarray(head.length), head, whole: built }
}

/** True if an enclosed message may travel as it is: it cannot be encoded (RFC 2046 5.2.1), so its lines must fit. */
function fitsUnencoded(octets: Buffer): boolean {
  return !octets.includes(0) && !hasLongLine(octets)
}

// the composer writes into what it is given
function copies(addresses: Address[]): Address[] {
  return addresses.map(({ name, address }) => ({ name, address }))
}

type Fields = { key: string; value: string | { prepared: true; foldLines: true; value: string } }[]

function fieldsOf({ subject, headers, auto_submitted }: Draft): Fields {
  const fields: Fields = headers.map(({ name, value }) => ({ key: name, value }))
  if (subject !== '') fields.push({ key: 'Subject', value: subjectField(subject) })
  if (auto_submitted !== null) fields.push({ key: 'Auto-Submitted', value: auto_submitted })
  return fields
}

/** A subject that is ambiguous or cannot be folded is written as encoded words (RFC 2047). */
function subjectField(subject: string): Fields[number]['value'] {
  const isPlain = !/=\?|^\s|\s$|[ \t]{2}|\t|[^ ]{500}/.test(subject)
  return isPlain ? subject : { prepared: true, foldLines: true, value: encodedWords(subject) }
}

/** Words of at most 75 characters, cut between characters. */
function encodedWords(text: string): string {
  const words: string[] = []
  let piece = ''
  for (const character of text) {
    if (Buffer.byteLength(piece + character) > 45) {
      words.push(piece)
      piece = ''
    }
    piece += character
  }
  return [...words, piece].map((word) => `=?UTF-8?B?${Buffer.from(word).toString('base64')}?=`).join(' ')
}

async function bodies({ text, html, attachments }: Draft): Promise<object> {
  const plain = text === null ? {} : { text: await lines(text) }
  const rich = html === null ? {} : { html: await lines(html) }
  // without a body the only attachment would become the message itself
  const empty =
    !text && !html && attachments.length > 0 ? { alternatives: [{ content: '', contentType: 'text/plain; charset=utf-8' }] } : {}
  return { ...plain, ...rich, ...empty }
}

async function lines(text: string): Promise<string> {
  return /[\r\n]/.test(text) ? (await withLineEnds(Buffer.from(text))).toString() : text.toWellFormed()
}

async function attachment({ filename, content_type, content, content_id }: OutgoingAttachment): Promise<object> {
  const isMessage = content_type !== null && /^message\//i.test(content_type)
  const octets = isMessage ? await withLineEnds(content) : content
  const type = isMessage && !fitsUnencoded(octets) ? 'application/octet-stream' : content_type
  return {
    filename: filename.toWellFormed(),
    content: isMessage && type === content_type ? octets : Readable.from(slicesOf(octets)),
    ...(type === null ? {} : { contentType: type }),
    ...(content_id === null ? {} : { cid: content_id }),
    contentDisposition: content_id === null ? 'attachment' : 'inline',
  }
}

/** Bytes of an attachment that are encoded before yielding to the event loop. */
const slice = 256 * 1024

async function* slicesOf(octets: Buffer): AsyncGenerator<Buffer> {
  const turns = new Turns()
  for (let at = 0; at < octets.length; at += slice) {
    yield octets.subarray(at, at + slice)
    if (turns.due) await turns.yield()
  }
}

/** Makes the Date field the first, in place: messages are large, and a copy is as large again. */
function moveDate(built: Buffer, head: string): void {
  const at = built.indexOf(`\r\n${head}`) + 2
  built.copyWithin(head.length, 0, at)
  built.write(head, 'latin1')
}
