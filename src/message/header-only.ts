import { mailboxes, upTo } from './addresses.ts'
import { isAutomated } from './automated.ts'
import { firstValue, headersOf } from './headers.ts'
import type { Parsed } from './parsed.ts'
import { withoutInvisible, withSeenName } from './screening/invisible.ts'
import { displayLine } from '../core/text.ts'

/** The result for a message that was not parsed: its undecoded header fields, which are cheap to read whatever they contain. */
export function headerOnly(raw: Buffer, why: string): Parsed {
  const fields = headersOf(raw.subarray(0, longestHeader))
  const first = (name: string) => firstValue(fields, name)?.slice(0, longestValue)
  const boxes = (name: string) =>
    mailboxes(fields.filter((field) => field.name === name).map(({ value }) => upTo(longestValue, value))).map(withSeenName)
  const [author, another] = boxes('from')
  return {
    subject: withoutInvisible(displayLine(first('subject') ?? '')),
    // With several authors there is no From.
    from: author && !another ? author : null,
    reply_to: boxes('reply-to')[0]?.address ?? null,
    to: boxes('to'),
    cc: boxes('cc'),
    message_id: idsIn(first('message-id'))[0] ?? null,
    in_reply_to: idsIn(first('in-reply-to'))[0] ?? null,
    references: idsIn(first('references')),
    body_text: null,
    body_html: null,
    text: '',
    snippet: '',
    automated: isAutomated(
      fields.map((field) => ({ ...field, value: field.value.slice(0, longestValue) })),
      author?.address,
    ),
    codes: [],
    links: [],
    attachments: [],
    screening: { score: 0, reasons: [], hidden_text_omitted: 0 },
    report: null,
    parse_error: why,
  }
}

/** Message-ID and From domain of a message that begins with `head`, for the log. Null values without one. */
export function headerSummary(head: Buffer | null): { message_id: string | null; from_domain: string | null } {
  const fields = head === null ? [] : headersOf(head.subarray(0, longestHeader))
  const address = mailboxes(fields.filter(({ name }) => name === 'from').map(({ value }) => upTo(longestValue, value)))[0]
    ?.address
  return {
    message_id: idsIn(firstValue(fields, 'message-id')?.slice(0, longestValue))[0] ?? null,
    from_domain: address === undefined ? null : address.slice(address.lastIndexOf('@') + 1),
  }
}

// Low limits: this may run in the main thread, on a header that crashed the parser.
const longestHeader = 32 * 1024
const longestValue = 2048

function idsIn(value: string | undefined): string[] {
  return value?.match(/<[^<>\s]{1,996}>/g) ?? []
}
