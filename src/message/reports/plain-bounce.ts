import { bareAddress, enhancedCodeIn, lineOf, returnedFrom, smtpCodeIn } from './field-groups.ts'
import { firstValue, type HeaderField, headersOf } from '../headers.ts'
import type { Mime } from '../mime/model.ts'
import type { DeliveryReport, ReportedRecipient } from './reported.ts'

const maxRecipients = 20
const maxText = 64 * 1024

/**
 * A bounce in plain text only: qmail and others (QSBMF), Exim, old Sendmail and similar. Reads addresses at the start of a line, and codes in the
 * text after them. Null for any message that is not a bounce of a mail server; `X-Failed-Recipients` alone makes none, as anybody can add it to a
 * message that somebody else signed.
 */
export function plainBounce(fields: readonly HeaderField[], mail: Mime): DeliveryReport | null {
  const subject = (firstValue(fields, 'subject') ?? '').slice(0, 500)
  const failed = firstValue(fields, 'x-failed-recipients')?.slice(0, 5000)
  const byAuthor = isFromServer(fields) && (failed !== undefined || subjects.test(subject))
  if (!byAuthor && !opening.test(mail.text?.slice(0, 200) ?? '')) return null
  const [report, copy] = splitReport(mail)
  const action = delayed.test(`${subject}\n${report}`) ? 'delayed' : 'failed'
  const addresses = (failed ?? '').split(',').flatMap((one) => bareAddress(one.trim()) ?? [])
  const recipients = itemsOf(report, addresses).map(({ address, words }) => recipientOf(action, address, words))
  if (recipients.length === 0) return null
  return { kind: 'delivery', reporter: reporterIn(report), recipients, returned: returnedFrom(headersOf(copy)) }
}

/** The reason for a recipient in the text part of a report: some servers omit it from the report itself. */
export function reasonFor(mail: Mime, address: string): string | null {
  const [report] = splitReport(mail)
  return lineOf(itemsOf(report, [address]).find(({ words }) => words !== '')?.words)
}

const delayed =
  /\b(?:delayed|not (?:yet )?been delivered|(?:continue|keep)[a-z]{0,5} (?:to )?(?:try|retry)|still trying|no action is required)/i

const subjects =
  /undeliver|un-deliver|deliver[a-z]{0,5} (?:has )?(?:status|fail|problem|delay)|fail[a-z]{0,5} (?:notice|to deliver)|returned (?:mail|to sender)|could not (?:be delivered|send)|non ?remis/i

const opening = /^\s{0,20}(?:Hi\. This is the [\w-]|This message was created automatically by mail delivery software)/i

function isFromServer(fields: readonly HeaderField[]): boolean {
  const from = (firstValue(fields, 'from') ?? '').slice(0, 1000)
  return /(?:^|<)(?:mailer-daemon|postmaster)(?:[@>]|\s{0,9}(?:\(|$))/i.test(from)
}

/** Splits the text into the report and the quoted message. */
function splitReport(mail: Mime): [string, Buffer] {
  const text = (mail.text ?? '').slice(0, maxText)
  let at = 0
  for (const line of text.split('\n')) {
    if (line.length < 200 && /^[ \t>]{0,9}--/.test(line) && copyDelimiter.test(line))
      return [text.slice(0, at), Buffer.from(text.slice(at + line.length).trimStart())]
    at += line.length + 1
  }
  return [text, Buffer.alloc(0)]
}

const copyDelimiter = /below this line|copy of (?:the|your) message|original message|unsent message|returned message/i

const addressLine = /^[ \t]*<?([^\s<>@:;,"()]{1,64}@[^\s<>@:;,"()]{1,255})>?(?=$|[\s:;,.(])[:;,.]?/

/** Addresses at the start of a line, with the text up to the next address, or to an empty line after some text. */
function itemsOf(report: string, addresses: string[]): { address: string; words: string }[] {
  const items: { address: string; words: string }[] = []
  let open = false
  for (const whole of report.split('\n').slice(0, 2000)) {
    const line = whole.slice(0, 1000)
    const found = addressLine.exec(line)
    const address = found?.[1]
    const last = items.at(-1)
    if (found && address !== undefined && (addresses.length === 0 || isAmong(address, addresses))) {
      if (items.length === maxRecipients) break
      items.push({ address, words: line.slice(found[0].length).trim() })
      open = true
    } else if (line.trim() === '' && last?.words !== '') open = false
    else if (open && last && last.words.length < 2000) last.words += ` ${line.trim()}`
  }
  const named = new Set(items.map(({ address }) => address.toLowerCase()))
  const withoutWords = addresses.filter((address) => !named.has(address.toLowerCase())).map((address) => ({ address, words: '' }))
  return [...items, ...withoutWords].slice(0, maxRecipients)
}

function isAmong(address: string, addresses: string[]): boolean {
  return addresses.some((one) => one.toLowerCase() === address.toLowerCase())
}

function recipientOf(action: 'failed' | 'delayed', address: string, words: string): ReportedRecipient {
  const diagnostic = lineOf(words)
  return {
    action,
    status: enhancedCodeIn(diagnostic),
    smtp_code: smtpCodeIn(diagnostic),
    diagnostic,
    final_recipient: address,
    original_recipient: null,
    remote: /\bhost ([\w-]{1,63}(?:\.[\w-]{1,63}){1,9})[ :[]/i.exec(diagnostic ?? '')?.[1] ?? null,
  }
}

function reporterIn(report: string): string | null {
  return /\bprogram at (?:host )?([\w-]+(?:\.[\w-]+)+)/i.exec(report)?.[1] ?? null
}
