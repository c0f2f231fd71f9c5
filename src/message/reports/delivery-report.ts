import { bareAddress, enhancedCodeIn, fieldGroups, lineOf, returnedOf, smtpCodeIn, textOf } from './field-groups.ts'
import type { HeaderField } from '../headers.ts'
import type { Mime } from '../mime/model.ts'
import type { DeliveryReport, ReportedRecipient } from './reported.ts'

const maxRecipients = 100

/** The delivery status notification (RFC 3464, RFC 6533) in a message; null when there is none with the status of a recipient. */
export function deliveryReport(mail: Mime): DeliveryReport | null {
  const part = mail.files.find(({ contentType }) => /^message\/(?:global-)?delivery-status$/i.test(contentType))
  if (!part) return null
  const groups = fieldGroups(part.content)
  const recipients = groups.flatMap((fields) => recipientOf(fields) ?? []).slice(0, maxRecipients)
  if (recipients.length === 0) return null
  const reporter = groups.map((fields) => hostOf(textOf(fields, 'reporting-mta'))).find((name) => name !== null) ?? null
  return { kind: 'delivery', reporter, recipients, returned: returnedOf(mail.files) }
}

const actions = ['failed', 'delayed', 'delivered', 'relayed', 'expanded'] as const

function recipientOf(fields: readonly HeaderField[]): ReportedRecipient | null {
  const actionText = textOf(fields, 'action')?.toLowerCase() ?? ''
  const status = enhancedCodeIn(textOf(fields, 'status'))
  const action = actions.find((one) => actionText.startsWith(one)) ?? impliedAction(status, fields)
  if (!action) return null
  const diagnostic = textOf(fields, 'diagnostic-code')
  // the text after the type `smtp` begins with the reply code
  const isSmtp = /^smtp\s*;/i.test(diagnostic ?? '')
  const words = withoutType(diagnostic)
  return {
    action,
    status: mostPrecise(status, enhancedCodeIn(words)),
    smtp_code: isSmtp || /^\W*[245]\d\d[ -]/.test(words ?? '') ? smtpCodeIn(words) : null,
    diagnostic: words,
    final_recipient: mailboxOf(textOf(fields, 'final-recipient')),
    original_recipient: mailboxOf(textOf(fields, 'original-recipient')),
    remote: hostOf(textOf(fields, 'remote-mta')),
  }
}

/** The action by the status code, for reports without a standard action. */
function impliedAction(status: string | null, fields: readonly HeaderField[]): ReportedRecipient['action'] | undefined {
  if (!fields.some(({ name }) => name === 'final-recipient' || name === 'original-recipient')) return undefined
  if (status?.startsWith('5.')) return 'failed'
  if (status?.startsWith('4.')) return 'delayed'
  return status?.startsWith('2.') ? 'delivered' : undefined
}

/** Prefers the code in the diagnostic text over an unspecific `5.0.0`. */
function mostPrecise(status: string | null, inText: string | null): string | null {
  const vague = status === null || (/^\d\.0\.0$/.test(status) && inText?.[0] === status[0])
  return vague ? (inText ?? status) : status
}

/** The host of `dns; mx.example.com`, without comments. */
function hostOf(value: string | null): string | null {
  return withoutType(value)?.split(/[\s(]/)[0]?.replace(/\.$/, '') || null
}

/** The text after `type;`. */
function withoutType(value: string | null): string | null {
  return lineOf(value?.replace(/^\s*[\w.-]{1,40}\s*;\s*/, ''))
}

/** The address of `rfc822; ada@example.com`. RFC 6533 3 encodes non-ASCII characters as `\x{…}`, RFC 3461 4 as `+XX`. */
function mailboxOf(value: string | null): string | null {
  const kind = /^\s*([\w-]{1,40})\s*;/.exec(value ?? '')?.[1]?.toLowerCase()
  const words = withoutType(value)
  const plain =
    kind === 'utf-8' ? words?.replace(/\\x\{([0-9a-f]{1,6})\}/gi, (whole, hex: string) => character(whole, hex)) : words
  return bareAddress(plain ?? null)
}

function character(whole: string, hex: string): string {
  const code = Number.parseInt(hex, 16)
  return code > 0x20 && code <= 0x10_ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : whole
}
