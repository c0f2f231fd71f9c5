import { domainNameOf } from '../core/domain-names.ts'
import type { Authentication, Envelope } from '../mail/model.ts'

/**
 * The value of our Authentication-Results field (RFC 8601 2.2), without the field name, folded below 78 columns where a single value allows it.
 * Values from the sender become tokens or quoted strings of printable ASCII, so that they cannot end the field or add a result.
 */
export function authenticationResults(hostname: string, authentication: Authentication, envelope: Envelope): string {
  const { spf, dkim, dmarc, arc } = authentication
  const results = [
    // RFC 8601 2.7.2: the identity that was checked, which for the null sender is the HELO name.
    ['spf=' + spf.result, ...(envelope.mail_from === '' ? [property('smtp.helo', envelope.helo)] : sender(spf.domain))],
    ...dkim.map((signature) => [
      'dkim=' + signature.result,
      property('header.d', signature.domain),
      property('header.s', signature.selector),
      ...(signature.algorithm ? [property('header.a', signature.algorithm)] : []),
    ]),
    ...(dkim.length === 0 ? [['dkim=none']] : []),
    [
      'dmarc=' + dmarc.result,
      ...(dmarc.policy ? [`(p=${dmarc.policy})`] : []),
      ...(dmarc.domain ? [property('header.from', dmarc.domain)] : []),
    ],
    ...(arc.result === 'none' ? [] : [['arc=' + arc.result, `(i=${arc.chain})`]]),
  ]
  return [hostname, ...results.map(fold)].join(';\r\n ')
}

/**
 * Third-party text for a log line or a JSON answer: printable, one line, at most 200 characters. For display only, as a truncated
 * name is a different name.
 */
export function oneLine(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, 200)
    .toWellFormed()
}

function sender(domain: string | null): string[] {
  return domain ? [property('smtp.mailfrom', domain)] : []
}

function property(name: string, value: string): string {
  const printable = (domainNameOf(value) ?? value).replace(/[^\x21-\x7e]/g, '?').slice(0, 253)
  return `${name}=${/^[\w!#$%&'*+\-.^`{|}~]+$/.test(printable) ? printable : `"${printable.replace(/["\\]/g, '\\$&')}"`}`
}

function fold(words: string[]): string {
  const lines = ['']
  for (const word of words) {
    const line = lines.at(-1)!
    if (line === '') lines[lines.length - 1] = word
    else if (line.length + word.length > 74) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines.join('\r\n  ')
}
