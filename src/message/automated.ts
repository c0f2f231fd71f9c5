import type { HeaderField } from './headers.ts'

/**
 * Whether a program made this message, so that no program should answer it. Any one of these says so:
 * `Auto-Submitted` other than `no` (RFC 3834 5); `Precedence: bulk, list, junk, auto_reply`; a mailing list's or
 * mailing's `List-Id`, `List-Unsubscribe`, `List-Post`, `Feedback-ID` (RFC 2919, RFC 2369); `X-Auto-Response-Suppress`,
 * `X-Autoreply`, `X-Autorespond`, `X-AutoReply-From`, `X-Mail-Autoreply`; `X-Failed-Recipients`; a null `Return-Path`;
 * `multipart/report` (RFC 6522); a sender called mailer-daemon, or no-reply in some language.
 */
export function isAutomated(fields: readonly HeaderField[], from: string | undefined): boolean {
  return fields.some(saysSo) || (from !== undefined && nobody.test(from))
}

const nobody =
  /^(?:mailer-daemon|(?:do[-_.]?)?no[-_.]?t?[-_.]?reply|ne[-_.]?pas[-_.]?repondre|nicht[-_.]?antworten|no[-_.]?responder|nao[-_.]?responda|non[-_.]?rispondere)(?:[-+_.][^@]*)?@/i

const sure = new Set([
  'list-id',
  'list-unsubscribe',
  'list-post',
  'feedback-id',
  'x-autoreply',
  'x-autorespond',
  'x-autoreply-from',
  'x-mail-autoreply',
  'x-failed-recipients',
])

function saysSo({ name, value }: HeaderField): boolean {
  if (sure.has(name)) return value !== ''
  switch (name) {
    case 'auto-submitted':
      return value !== '' && !/^no\b(?!-)/i.test(value)
    case 'precedence':
      return /^(?:bulk|list|junk|auto[-_]reply)\b/i.test(value)
    case 'x-auto-response-suppress':
      return value !== '' && !/^none\b/i.test(value)
    case 'return-path':
      return /^<\s*>$/.test(value)
    case 'content-type':
      return /^multipart\/report\b/i.test(value)
    default:
      return false
  }
}
