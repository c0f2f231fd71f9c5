import { invalid, placeOf } from '../../core/fault.ts'

/** Fields that only the box writes. */
const own =
  /^(?:from|sender|to|cc|bcc|resent-bcc|date|message-id|return-path|received|authentication-results|dkim-.*|arc-.*|mime-.*|content-.*)$/i

/** Fields that have a parameter of their own. */
type Known = Partial<Record<'subject' | 'reply-to' | 'in-reply-to' | 'references' | 'auto-submitted', string>>
const known = ['subject', 'reply-to', 'in-reply-to', 'references', 'auto-submitted'] as const

/** Limits of further fields: their number, and their bytes together. */
const limits = { fields: 100, octets: 64 * 1024 }

/**
 * Splits header fields into further fields and those that correspond to a parameter. Throws Fault invalid_request with the field's place
 * (`headers.X-Mood`) for fields that only the box writes, invalid names, and values that could end the field.
 */
export function headerFields(given: Record<string, string> = {}): { fields: { name: string; value: string }[]; known: Known } {
  const fields: { name: string; value: string }[] = []
  const found: Known = {}
  requireWithinLimits(given)
  for (const [name, value] of Object.entries(given)) {
    const param = placeOf(['headers', name])
    if (!/^[!-9;-~]{1,76}$/.test(name))
      throw invalid(param, `${JSON.stringify(name.slice(0, 128))} is not a valid header field name.`)
    if (own.test(name)) throw invalid(param, `${name} is set by the box; leave it out.`, 'header_refused')
    requireWritable(value, param)
    // words of encoded text are short, others stay as they are
    if (
      /^[\t -~]*/
        .exec(value)![0]
        .split(/[\t ]/)
        .some((word) => word.length >= 900)
    )
      throw invalid(param, `${param} contains a word of 900 characters or more, too long for a line.`)
    const special = known.find((one) => one === name.toLowerCase())
    if (special === undefined) fields.push({ name, value: value.replaceAll(/[ \t]+/g, ' ').trim() })
    else if (found[special] === undefined) found[special] = value
    else throw invalid(param, `${name} appears twice.`)
  }
  return { fields, known: found }
}

function requireWithinLimits(given: Record<string, string>): void {
  const entries = Object.entries(given)
  const octets = entries.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0)
  if (entries.length <= limits.fields && octets <= limits.octets) return
  const message = `headers can have at most ${limits.fields} fields and ${limits.octets} bytes in total; this has ${entries.length} and ${octets}.`
  throw invalid('headers', message, 'headers_too_large')
}

/** Throws Fault invalid_request when the text cannot be the value of a header field: CR, LF, NUL and other controls but the tabulator. */
export function requireWritable(value: string, param: string): void {
  // eslint-disable-next-line no-control-regex -- these are what is looked for
  if (!/[\0-\x08\x0a-\x1f\x7f]/.test(value)) return
  throw invalid(
    param,
    `${param} contains a line break or another control character; a header field is one line.`,
    'header_injection',
  )
}

/** Message-IDs as In-Reply-To and References write them. Throws Fault invalid_request. */
export function messageIds(value: string, param: string): string[] {
  const ids = value.trim().split(/\s+/)
  if (ids.every((id) => /^<[!-;=?-~]{1,900}>$/.test(id))) return ids
  throw invalid(param, `${param} must be message ids such as <1@example.com>, with angle brackets.`)
}
