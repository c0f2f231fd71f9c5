import { invalid } from '../core/fault.ts'
import type { Clock } from '../core/clock.ts'
import type { Outside } from '../delivery/outside.ts'
import type { Draft, Written } from './compose.ts'
import { enclosuresOf } from './enclosures.ts'
import type { FetchShare } from '../delivery/fetch-room.ts'
import { headerFields, messageIds, requireWritable } from './header-fields.ts'
import type { NewEmail, NewForward, NewReply } from './model.ts'
import { recipientAddress } from './recipients.ts'

/** What all wishes have. */
export type Wish = Pick<
  NewEmail & NewReply & NewForward,
  | 'subject'
  | 'body'
  | 'body_text'
  | 'body_html'
  | 'reply_to'
  | 'headers'
  | 'attachments'
  | 'labels'
  | 'send_at'
  | 'auto_submitted'
  | 'require_tls'
>

/** How far ahead a message may be scheduled, in milliseconds. */
const farthest = 366 * 86_400_000

/** Reads what callers wish for. */
export class Drafts {
  readonly #clock: Clock
  readonly #outside: Outside

  constructor(parts: { clock: Clock; outside: Outside }) {
    this.#clock = parts.clock
    this.#outside = parts.outside
  }

  /** What the wish itself says of a message, not yet whom it goes to, when, and what it answers. Throws Fault invalid_request. */
  async read(wish: Wish, share: FetchShare, signal: AbortSignal): Promise<Written> {
    const { fields, known } = headerFields(wish.headers)
    const subject = one(wish.subject, known.subject, 'subject') ?? ''
    requireWritable(subject, 'subject')
    const replyTo = one(wish.reply_to, known['reply-to'], 'reply_to')
    const inReplyTo = known['in-reply-to']
    const ids = inReplyTo === undefined ? [] : messageIds(inReplyTo, 'headers.In-Reply-To')
    if (ids.length > 1) throw invalid('headers.In-Reply-To', 'A message answers one other; name one.')
    return {
      subject,
      text: textOf(wish),
      html: wish.body_html ?? null,
      reply_to: [replyTo ?? []].flat().map((text) => recipientAddress(text, 'reply_to')),
      headers: fields,
      attachments: await enclosuresOf(wish.attachments ?? [], { outside: this.#outside, share, signal }),
      labels: [...new Set(wish.labels)],
      auto_submitted: automatic(one(wish.auto_submitted, known['auto-submitted'], 'auto_submitted')),
      require_tls: wish.require_tls ?? false,
      in_reply_to: ids[0] ?? null,
      references: known.references === undefined ? ids : messageIds(known.references, 'headers.References'),
      thread_id: null,
    }
  }

  /** When a message is to leave; null is at once, as is a time that has passed. Throws Fault invalid_request for more than a year ahead. */
  sendAt(wish: string | undefined): string | null {
    if (wish === undefined) return null
    const ahead = Date.parse(wish) - this.#clock.now()
    if (ahead > farthest) throw invalid('send_at', 'send_at must be at most a year ahead.')
    return ahead > 0 ? wish : null
  }
}

function textOf({ body, body_text }: Wish): string | null {
  if (body !== undefined && body_text !== undefined && body !== body_text) {
    throw invalid('body', 'body and body_text mean the same; give one of them.')
  }
  return body_text ?? body ?? null
}

function one<Value>(parameter: Value | undefined, field: string | undefined, name: string): Value | string | undefined {
  if (parameter === undefined || field === undefined) return parameter ?? field
  throw invalid(name, `${name} is given twice, as a parameter and in headers.`)
}

function automatic(value: string | undefined): Draft['auto_submitted'] {
  if (value === undefined) return null
  if (value === 'no' || value === 'auto-generated' || value === 'auto-replied') return value
  throw invalid('headers.Auto-Submitted', 'Auto-Submitted must be no, auto-generated or auto-replied.')
}
