import { htmlEscaped } from '../../core/text.ts'
import type { Address, Email } from '../../mail/model.ts'

/** The texts of a message; null is none. */
interface QuotableBodies {
  text: string | null
  html: string | null
}

/** Maximum characters of the earlier message that are quoted. */
const maxQuoted = 100_000

/** A subject with `Re: ` before it, unless it has such a prefix already. */
export function replySubject(subject: string): string {
  return /^\s*(?:re|aw|sv|vs|antw|odp|rif|ynt|回复|回覆|答复)(?:\[\d+\])?\s*[:：]/iu.test(subject)
    ? subject
    : `Re: ${subject}`.trim()
}

/** A subject with `Fwd: ` before it, unless it has such a prefix already. */
export function forwardSubject(subject: string): string {
  return /^\s*(?:fwd?|wg|tr|rv|enc|vb|doorst|转发|轉寄)(?:\[\d+\])?\s*[:：]/iu.test(subject) ? subject : `Fwd: ${subject}`.trim()
}

/** An answer with the message it answers below it. */
export function withReplyQuote({ text, html }: QuotableBodies, original: Email): QuotableBodies {
  const heading = `On ${when(original)}, ${sender(original)} wrote:`
  const words = textOf(original)
  const lines = words.split('\n').map((line) => (line === '' || line.startsWith('>') ? `>${line}` : `> ${line}`))
  const quote = `${heading}\n${lines.join('\n')}\n`
  const blockquote = `<blockquote type="cite" style="margin:0 0 0 .8ex;border-left:1px solid #ccc;padding-left:1ex">${escaped(words)}</blockquote>`
  return {
    text: text === null && html !== null ? null : below(text, quote),
    html: html === null ? null : inside(html, `<br><div>${escaped(heading)}</div>${blockquote}`),
  }
}

/** A forwarded message below the new text, with its header. */
export function withForwarded({ text, html }: QuotableBodies, original: Email): QuotableBodies {
  const fields = [
    '---------- Forwarded message ---------',
    `From: ${sender(original)}`,
    `Date: ${when(original)}`,
    `Subject: ${original.subject}`,
    `To: ${listed(original.recipients.to)}`,
    ...(original.cc.length > 0 ? [`Cc: ${listed(original.cc)}`] : []),
  ]
  const isRich = html !== null || original.body_html !== null
  const kept = original.body_html === null ? escaped(textOf(original)) : withoutFrame(original.body_html)
  return {
    text: text === null && html !== null ? null : below(text, `${fields.join('\n')}\n\n${textOf(original)}\n`),
    html: isRich ? inside(html ?? escaped(text ?? ''), `<br><div>${fields.map(escaped).join('<br>')}</div><br>${kept}`) : null,
  }
}

function textOf(original: Email): string {
  const whole = (original.body_text ?? original.text).trimEnd()
  return whole.length > maxQuoted ? `${whole.slice(0, maxQuoted).toWellFormed()}\n[…]` : whole
}

/** `Fri, 20 Nov 2026 at 10:05 UTC` */
function when({ received_at, send_at, direction }: Email): string {
  const [date, time] = [new Date((direction === 'outbound' ? send_at : null) ?? received_at).toUTCString()].flatMap((text) => [
    text.slice(0, 16),
    text.slice(17, 22),
  ])
  return `${date} at ${time} UTC`
}

function sender({ from, from_name }: Email): string {
  return named({ address: from, name: from_name })
}

function named({ address, name }: Address): string {
  return name === '' || name === address ? address : `${name} <${address}>`
}

function listed(addresses: Address[]): string {
  return addresses.map(named).join(', ')
}

function below(text: string | null, quote: string): string {
  if (text === null || text === '') return quote
  // the text stays as it was given, and an empty line follows
  return `${text}${/[\r\n]/.test(text.at(-1)!) ? '\n' : '\n\n'}${quote}`
}

/** Puts more before the end of the HTML's body, or after the HTML if it has none. */
function inside(html: string, more: string): string {
  const end = html.toLowerCase().lastIndexOf('</body')
  return end < 0 ? `${html}${more}` : `${html.slice(0, end)}${more}${html.slice(end)}`
}

function escaped(text: string): string {
  return htmlEscaped(text).replaceAll('\n', '<br>')
}

/** An HTML document without its title and the tags around its content; its styles stay. */
function withoutFrame(html: string): string {
  const plain = withoutTags(html, /<!doctype[^>]*>?/gi).replaceAll(/<title\b[^<>]*>[^<]*<\/title>/gi, '')
  return withoutTags(plain, /<\/?(?:html|head|body|meta|base)\b[^>]*>?/gi)
}

/** Searches only up to the last closed tag: searching the end of unclosed tags would take quadratic time. */
function withoutTags(html: string, tag: RegExp): string {
  const end = html.lastIndexOf('>') + 1
  return html.slice(0, end).replaceAll(tag, '') + html.slice(end)
}
