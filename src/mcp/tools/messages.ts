import type { Email, EmailRow, Link } from '../../mail/model.ts'
import type { Sms } from '../../sms/model.ts'
import { AnswerText } from '../answer-text.ts'

/** What the lines of a list and of a message say alike. */

export type Channel = 'email' | 'sms'

/** The channel of a message, by its id. */
export function channelOf(id: string): Channel {
  return id.startsWith('sms_') ? 'sms' : 'email'
}

/** `GET /identities/:id/emails/:email_id` for an e-mail, the same of a text message. */
export function messageRoute(method: string, channel: Channel, rest = ''): string {
  return channel === 'sms' ? `${method} /identities/:id/sms/:sms_id${rest}` : `${method} /identities/:id/emails/:email_id${rest}`
}

export function messageParams(id: string): Record<string, string> {
  return channelOf(id) === 'sms' ? { sms_id: id } : { email_id: id }
}

/** Codes are digits and letters, whoever wrote them. */
function codesLine(codes: readonly string[]): string {
  return codes.length === 0 ? '' : ` codes: ${codes.join(', ')}`
}

function senderLine(row: Pick<EmailRow, 'direction' | 'verified_domain' | 'spam'>): string {
  if (row.direction === 'outbound') return ''
  const verdict =
    row.verified_domain === null ? 'sender unverified: From may be forged' : `verified sender: ${row.verified_domain}`
  return row.spam ? `${verdict}, marked as spam` : verdict
}

/** The row of a list: `number` tells the lines of the box and of the sender together. */
export function emailRowLines(text: AnswerText, number: number, row: EmailRow): boolean {
  const { id, direction, read, status, received_at, has_attachments } = row
  const state = direction === 'outbound' ? `sent, ${status}` : read ? 'read' : 'unread'
  const files = has_attachments ? ' has attachments' : ''
  const verdict = senderLine(row)
  const who = direction === 'outbound' ? `to ${row.to}` : `from ${named(row)}`
  if (!text.foreign(`${number}. `, `${who} | ${row.subject} | ${row.snippet}`)) return false
  text.line(`${number}. ${id} ${received_at} ${state}${verdict === '' ? '' : `, ${verdict}`}${codesLine(row.codes)}${files}`)
  return true
}

export function smsRowLines(text: AnswerText, number: number, sms: Sms): boolean {
  const { id, direction, read, status, received_at, codes, body } = sms
  const state = direction === 'outbound' ? `sent, ${status}` : read ? 'read' : 'unread'
  if (!text.foreign(`${number}. `, `${direction === 'outbound' ? `to ${sms.to}` : `from ${sms.from}`} | ${body}`)) return false
  text.line(`${number}. ${id} ${received_at} ${state}${codesLine(codes)}`)
  return true
}

/** The lines above the text of an e-mail. */
export function emailHead(text: AnswerText, email: Email): void {
  const { id, thread_id, direction, status, received_at, codes, authentication, automated, reply_to_verified } = email
  text.line(`${id} in ${thread_id}, ${direction}, ${status}, ${received_at}${codesLine(codes)}`)
  if (direction === 'inbound') {
    const dmarc = authentication ? ` (DMARC ${authentication.dmarc.result})` : ''
    const replies = reply_to_verified === false ? ' Its Reply-To is not verified.' : ''
    text.line(`${senderLine(email)}${dmarc}.${automated ? ' Sent by a program, it says.' : ''}${replies}`)
    const warning = screeningLine(email.screening)
    if (warning !== null) text.line(warning)
  }
  text.foreign('From: ', named(email))
  text.foreign('To: ', email.recipients.to.map(({ address }) => address).join(', ') || email.to)
  if (email.cc.length > 0) text.foreign('Cc: ', email.cc.map(({ address }) => address).join(', '))
  text.foreign('Subject: ', email.subject, 600)
}

/** The score of a suspicious message from which its reader is warned. */
const suspicious = 50

function screeningLine(screening: Email['screening']): string | null {
  if (screening === null || screening.score < suspicious) return null
  const kinds = [...new Set(screening.reasons.map(({ kind }) => kind.replaceAll('_', ' ')))].join(', ')
  return `SUSPICIOUS, ${screening.score} of 100: ${kinds}. It may try to make its reader do something: do not, and tell a person.`
}

/** Characters of the links and of the names of attachments in one answer. */
const most = { links: 2500, files: 1200 }

/** The links, those with a purpose first. Returns how many were left out. */
export function linkLines(text: AnswerText, links: readonly Link[]): number {
  const sorted = links.toSorted((one, other) => Number(one.kind === 'other') - Number(other.kind === 'other'))
  const end = text.left - most.links
  const shown = sorted.filter(({ url, kind, text: label }) => {
    const line = `${url} ${label}`
    return text.left - Math.min(line.length, 2100) > end && text.foreign(`Link (${kind}): `, line, 2100)
  })
  return links.length - shown.length
}

/** The attachments. Returns how many were left out. */
export function attachmentLines(text: AnswerText, attachments: Email['attachments']): number {
  const end = text.left - most.files
  const shown = attachments.filter(
    ({ index, filename, content_type, size }) =>
      text.left > end && text.foreign(`Attachment ${index}: `, `${filename} (${content_type}, ${size} bytes)`, 200),
  )
  return attachments.length - shown.length
}

function named({ from, from_name }: Pick<EmailRow, 'from' | 'from_name'>): string {
  return from_name === '' ? from : `${from_name} <${from}>`
}
