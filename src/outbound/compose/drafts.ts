import { invalid } from '../../core/fault.ts'
import { type Clock, day } from '../../core/clock.ts'
import type { Outside } from '../../net/outside.ts'
import type { Draft, MessageContent } from './compose.ts'
import { attachmentsOf } from './attachments.ts'
import type { WorkShare } from '../../net/work-limiter.ts'
import { headerFields, messageIds, requireWritable } from './header-fields.ts'
import type { NewEmail, NewForward, NewReply } from '../model.ts'
import { recipientAddress } from './recipients.ts'

/** The fields that all send requests have. */
export type SendRequest = Pick<
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
const maxAhead = 366 * day

/** Reads send requests. */
export class Drafts {
  readonly #clock: Clock
  readonly #outside: Outside

  constructor(deps: { clock: Clock; outside: Outside }) {
    this.#clock = deps.clock
    this.#outside = deps.outside
  }

  /** Reads the content of a request, without recipients, time and the message it answers. Throws Fault invalid_request. */
  async read(input: SendRequest, share: WorkShare, signal: AbortSignal): Promise<MessageContent> {
    const { fields, known } = headerFields(input.headers)
    const subject = one(input.subject, known.subject, 'subject') ?? ''
    requireWritable(subject, 'subject')
    const replyTo = one(input.reply_to, known['reply-to'], 'reply_to')
    const inReplyTo = known['in-reply-to']
    const ids = inReplyTo === undefined ? [] : messageIds(inReplyTo, 'headers.In-Reply-To')
    if (ids.length > 1) throw invalid('headers.In-Reply-To', 'A message can reply to only one other.')
    return {
      subject,
      text: textOf(input),
      html: input.body_html ?? null,
      reply_to: [replyTo ?? []].flat().map((text) => recipientAddress(text, 'reply_to')),
      headers: fields,
      attachments: await attachmentsOf(input.attachments ?? [], { outside: this.#outside, share, signal }),
      labels: [...new Set(input.labels)],
      auto_submitted: automatic(one(input.auto_submitted, known['auto-submitted'], 'auto_submitted')),
      require_tls: input.require_tls ?? false,
      in_reply_to: ids[0] ?? null,
      references: known.references === undefined ? ids : messageIds(known.references, 'headers.References'),
      thread_id: null,
    }
  }

  /** The time a message is sent; null for at once, also for a past time. Throws Fault invalid_request for more than a year ahead. */
  sendAt(input: string | undefined): string | null {
    if (input === undefined) return null
    const ahead = Date.parse(input) - this.#clock.now()
    if (ahead > maxAhead) throw invalid('send_at', 'send_at must be at most a year ahead.')
    return ahead > 0 ? input : null
  }
}

function textOf({ body, body_text }: SendRequest): string | null {
  if (body !== undefined && body_text !== undefined && body !== body_text) {
    throw invalid('body', 'body and body_text mean the same; send only one of them.')
  }
  return body_text ?? body ?? null
}

function one<Value>(parameter: Value | undefined, field: string | undefined, name: string): Value | string | undefined {
  if (parameter === undefined || field === undefined) return parameter ?? field
  throw invalid(name, `${name} is set twice, as a parameter and in headers.`)
}

function automatic(value: string | undefined): Draft['auto_submitted'] {
  if (value === undefined) return null
  if (value === 'no' || value === 'auto-generated' || value === 'auto-replied') return value
  throw invalid('headers.Auto-Submitted', 'Auto-Submitted must be no, auto-generated or auto-replied.')
}
