import { mailboxesOf, readHeader, valueOf } from './fields.ts'
import type { Parsed } from './model.ts'

/** What can be said of a message the parser did not finish: its plain header fields, cheap to read whatever they hold. */
export function unread(raw: Buffer, why: string): Parsed {
  const header = readHeader(raw)
  const first = (name: string): string | null => {
    const field = header.fields.find((candidate) => candidate.name === name)
    return field ? valueOf(raw, { ...field, end: Math.min(field.end, field.value + longest) }) : null
  }
  const from = mailboxesOf(raw, header, 'from')
  return {
    subject: first('subject') ?? '',
    // With several authors none is shown as the author.
    from: (from.length === 1 && from[0]?.address ? from[0] : null) ?? null,
    reply_to: mailboxesOf(raw, header, 'reply-to')[0]?.address ?? null,
    to: mailboxesOf(raw, header, 'to'),
    cc: mailboxesOf(raw, header, 'cc'),
    message_id: idsIn(first('message-id'))[0] ?? null,
    in_reply_to: idsIn(first('in-reply-to'))[0] ?? null,
    references: idsIn(first('references')),
    body_text: null,
    body_html: null,
    text: '',
    snippet: '',
    automated: (first('auto-submitted') ?? 'no').toLowerCase() !== 'no',
    codes: [],
    links: [],
    attachments: [],
    parse_error: why,
  }
}

const longest = 2048

function idsIn(value: string | null): string[] {
  return value?.match(/<[^<>\s]{1,996}>/g) ?? []
}
