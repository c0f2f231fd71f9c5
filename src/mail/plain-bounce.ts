import { enhancedCodeIn, smtpCodeIn } from './delivery-report.ts'
import { bareAddress, lineOf, returnedFrom } from './field-groups.ts'
import { firstValue, headersOf } from './headers.ts'
import type { HeaderField } from './headers.ts'
import type { Mime } from './mime.ts'
import type { DeliveryReport, ReportedRecipient } from './reported.ts'

const mostRecipients = 20
const mostText = 64 * 1024

/**
 * A bounce of a server that writes for people alone: qmail and its like (QSBMF), Exim, old Sendmail and others in their manner. Read as far as
 * it goes: addresses that stand at the start of a line, codes in the words after them. Null for all that no mail server wrote about a delivery.
 */
export function plainBounce(fields: readonly HeaderField[], mail: Mime): DeliveryReport | null {
  const [report, copy] = parted((mail.text ?? '').slice(0, mostText))
  const failed = firstValue(fields, 'x-failed-recipients')
  if (failed === undefined && !isServers(fields, report)) return null
  const delayed =
    /\b(?:delayed|not (?:yet )?been delivered|(?:continue|keep)\w* (?:to )?(?:try|retry)|still trying|no action is required)/i
  const action = delayed.test(`${firstValue(fields, 'subject') ?? ''}\n${report}`) ? 'delayed' : 'failed'
  const listed = (failed ?? '')
    .slice(0, 5000)
    .split(',')
    .flatMap((one) => bareAddress(one.trim()) ?? [])
  const recipients = itemsOf(report, listed).map(({ address, words }) => recipientOf(action, address, words))
  if (recipients.length === 0) return null
  const returned = returnedFrom(headersOf(Buffer.from(copy.trimStart())))
  return { kind: 'delivery', reporter: reporterIn(report), recipients, returned }
}

const subjects =
  /undeliver|un-deliver|deliver\w* (?:has )?(?:status|fail|problem|delay)|fail\w* (?:notice|to deliver)|returned (?:mail|to sender)|could not (?:be delivered|send)|non ?remis/i

function isServers(fields: readonly HeaderField[], report: string): boolean {
  if (/^\s*Hi\. This is the [\w-]+/.test(report)) return true
  if (/^\s*This message was created automatically by mail delivery software/i.test(report)) return true
  const from = firstValue(fields, 'from') ?? ''
  return /(?:^|[<\s"(])(?:mailer-daemon|postmaster)(?:@|\b)/i.test(from) && subjects.test(firstValue(fields, 'subject') ?? '')
}

const copies =
  /^[ \t>]*-{2,}[^\n]*(?:below this line|copy of (?:the|your) message|original message|unsent message|returned message|this is a copy)[^\n]*$/im

/** The report, and what it quotes of the message. */
function parted(text: string): [string, string] {
  const mark = copies.exec(text)
  return mark ? [text.slice(0, mark.index), text.slice(mark.index + mark[0].length)] : [text, '']
}

const addressLine = /^[ \t]*<?([^\s<>@:;,"()]{1,64}@[^\s<>@:;,"()]{1,255})>?(?=$|[\s:;,.(])[:;,.]?/

/** Addresses at the start of a line with the words up to the next, or to an empty line after words. */
function itemsOf(report: string, listed: string[]): { address: string; words: string }[] {
  const items: { address: string; words: string }[] = []
  let open = false
  for (const line of report.split('\n').slice(0, 2000)) {
    const found = addressLine.exec(line)
    const address = found?.[1]
    const last = items.at(-1)
    if (found && address !== undefined && (listed.length === 0 || isAmong(address, listed))) {
      if (items.length === mostRecipients) break
      items.push({ address, words: line.slice(found[0].length).trim() })
      open = true
    } else if (line.trim() === '' && last?.words !== '') open = false
    else if (open && last && last.words.length < 2000) last.words += ` ${line.trim()}`
  }
  const named = new Set(items.map(({ address }) => address.toLowerCase()))
  const silent = listed.filter((address) => !named.has(address.toLowerCase())).map((address) => ({ address, words: '' }))
  return [...items, ...silent].slice(0, mostRecipients)
}

function isAmong(address: string, listed: string[]): boolean {
  return listed.some((one) => one.toLowerCase() === address.toLowerCase())
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
    remote: /\bhost ([\w.-]{1,255})[ :[]/i.exec(diagnostic ?? '')?.[1] ?? null,
  }
}

function reporterIn(report: string): string | null {
  return /\bprogram at (?:host )?([\w-]+(?:\.[\w-]+)+)/i.exec(report)?.[1] ?? null
}
