import { conflict, Fault, invalid } from '../../core/fault.ts'
import { type Caller, insufficientScope, may } from '../../core/scopes.ts'
import { largeWork } from '../../core/work/long-work.ts'
import { release } from '../../core/memory.ts'
import type { WorkLimiter, WorkShare } from '../../net/work-limiter.ts'
import type { Identities, IdentityRow } from '../../identities/identities.ts'
import type { Emails } from '../../mail/emails.ts'
import type { StoredEmail } from '../../mail/email-rows.ts'
import type { AttachmentReader } from '../../mail/workers/attachment-reader.ts'
import type { Address, Email } from '../../mail/model.ts'
import type { OutgoingAttachment, MessageContent } from './compose.ts'
import type { Drafts, SendRequest } from './drafts.ts'
import { requireFewHops } from './prepare-raw.ts'
import { largestMessage, type NewEmail, type NewForward, type NewReply, readers } from '../model.ts'
import type { Outbox } from './outbox.ts'
import { forwardSubject, replySubject, withForwarded, withReplyQuote } from './quoting.ts'
import { type Addressee, addresseesOf } from './recipients.ts'
import { replyRecipients, automaticAnswer, type Original, referencesTo } from './replying.ts'
import { mailboxOf, senderOf } from './sender.ts'

interface Deps {
  identities: Identities
  emails: Emails
  reader: AttachmentReader
  drafts: Drafts
  outbox: Outbox
  fetches: WorkLimiter
}

const none: { to: Address[]; cc: Address[] } = { to: [], cc: [] }

/** The arguments of a send request. */
interface Envelope {
  caller: Caller
  addressees: Addressee[]
  from: string
  input: SendRequest
  signal: AbortSignal
}

/** Sends new messages, replies and forwarded messages. */
export class SendService {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async send(caller: Caller, identityId: string, input: NewEmail, signal: AbortSignal): Promise<Email> {
    requireReading(caller, input)
    const { identities } = this.#deps
    const owner = await identities.row(caller, identityId)
    const addressees = addresseesOf(input)
    const original = input.in_reply_to === undefined ? undefined : await this.#namedIn(caller, identityId, input.in_reply_to)
    const from = await senderOf(identities, owner, input.from, original?.email)
    return this.#accept(owner, { caller, addressees, from, input, signal }, async (draft) => {
      if (!original) return draft
      requireNoReferences(draft, 'in_reply_to')
      return {
        ...draft,
        ...referencesTo(original),
        subject: draft.subject || replySubject(original.email.subject),
        auto_submitted: automaticAnswer(original, draft.auto_submitted),
      }
    })
  }

  async reply(caller: Caller, identityId: string, emailId: string, input: NewReply, signal: AbortSignal): Promise<Email> {
    const { identities } = this.#deps
    const owner = await identities.row(caller, identityId)
    const quotes = input.quote ?? true
    const original = await this.#original(caller, identityId, emailId, quotes && signal)
    const from = await senderOf(identities, owner, input.from, original.email)
    const others = input.reply_all === true ? await this.#others(owner, original) : none
    const { to, cc } = replyRecipients(original, others, input.allow_unsigned ?? false)
    const addressees = addresseesOf({ to, cc: [...cc, ...[input.cc ?? []].flat()], bcc: input.bcc })
    if (addressees.length === 0) throw noRecipients()
    return this.#accept(owner, { caller, addressees, from, input, signal }, async (draft) => {
      requireNoReferences(draft, 'headers')
      return {
        ...draft,
        ...referencesTo(original),
        subject: draft.subject || replySubject(original.email.subject),
        ...(quotes ? withReplyQuote(draft, original.email) : {}),
        auto_submitted: automaticAnswer(original, draft.auto_submitted),
      }
    })
  }

  async forward(caller: Caller, identityId: string, emailId: string, input: NewForward, signal: AbortSignal): Promise<Email> {
    const { identities } = this.#deps
    const owner = await identities.row(caller, identityId)
    const isWhole = input.as_attachment ?? false
    const original = await this.#original(caller, identityId, emailId, !isWhole && signal)
    const addressees = addresseesOf(input)
    const from = await senderOf(identities, owner, input.from)
    const { size } = original.row
    if (isWhole && size > largestMessage)
      throw invalid('as_attachment', 'The message is larger than 25 MiB.', 'message_too_large')
    await largeWork(
      owner.account_id,
      size,
      async () => {
        const raw = await this.#deps.emails.rawMessage(original.row)
        requireFewHops(raw, 'email_id')
        release(raw)
      },
      signal,
    )
    return this.#accept(owner, { caller, addressees, from, input, signal }, async (draft, share) => {
      requireNoReferences(draft, 'headers')
      const carried = isWhole ? [await this.#whole(original, share)] : await this.#attachments(owner, original, share, signal)
      return {
        ...draft,
        ...referencesTo(original),
        subject: draft.subject || forwardSubject(original.email.subject),
        ...(isWhole ? {} : withForwarded(draft, original.email)),
        attachments: [...draft.attachments, ...carried],
      }
    })
  }

  /** Accepts a message; the memory of fetched and forwarded attachments counts until it is stored. */
  async #accept(
    owner: IdentityRow,
    { caller, addressees, from, input, signal }: Envelope,
    finish: (draft: MessageContent, share: WorkShare) => Promise<MessageContent>,
  ): Promise<Email> {
    const { drafts, outbox, fetches } = this.#deps
    const share = fetches.share(owner.account_id)
    try {
      const envelope = await outbox.admit({ caller, owner, from, addressees, send_at: drafts.sendAt(input.send_at) })
      return await outbox.accept(envelope, await finish(await drafts.read(input, share, signal), share))
    } finally {
      share.release()
    }
  }

  /** A complete message as an attachment. Throws Fault for a mail loop. */
  async asAttachment(row: StoredEmail): Promise<OutgoingAttachment> {
    const raw = await this.#deps.emails.rawMessage(row)
    requireFewHops(raw, 'email_id')
    // the trace of a received message was added by the box; that of an outbound one is a part of the message
    const content = row.direction === 'outbound' ? Buffer.concat([Buffer.from(row.trace), raw]) : raw
    if (content !== raw) release(raw)
    const name = row.subject
      .replaceAll(/[/\\\p{Cc}]/gu, '_')
      .slice(0, 100)
      .toWellFormed()
    return { filename: `${name || 'message'}.eml`, content_type: 'message/rfc822', content, content_id: null }
  }

  /** The other recipients of a message. */
  async #others(owner: IdentityRow, { email }: Original): Promise<{ to: Address[]; cc: Address[] }> {
    const { to, cc } = email.recipients
    if (email.direction === 'outbound') return { to: [], cc }
    const addresses = [...to, ...cc].map(({ address }) => mailboxOf(address))
    // a catch-all is recognized by the address where the message arrived
    const own = new Set([owner.email, mailboxOf(email.to), ...(await this.#deps.identities.ownAmong(owner.id, addresses))])
    const isOther = ({ address }: Address): boolean => !own.has(mailboxOf(address))
    return { to: to.filter(isOther), cc: cc.filter(isOther) }
  }

  async #whole(original: Original, share: WorkShare): Promise<OutgoingAttachment> {
    share.reserve(original.row.size)
    return this.asAttachment(original.row)
  }

  async #attachments(
    { account_id: account }: IdentityRow,
    { email, row }: Original,
    share: WorkShare,
    signal: AbortSignal,
  ): Promise<OutgoingAttachment[]> {
    const size = email.attachments.reduce((sum, one) => sum + one.size, 0)
    if (size > largestMessage)
      throw invalid('as_attachment', 'The attachments of the message exceed 25 MiB.', 'message_too_large')
    if (email.attachments.length === 0) return []
    share.reserve(size)
    const indexes = email.attachments.map(({ index }) => index)
    const contents = await this.#deps.reader.read({ row, account, signal }, (decode) => decode(indexes))
    return email.attachments.flatMap(({ index, filename, content_type, content_id, disposition }) => {
      const content = contents.get(index)?.content
      if (!content) return []
      const id = content_id?.replace(/^<(.*)>$/s, '$1') ?? ''
      const isInline = disposition === 'inline' && /^[!-;=?-~]{1,250}$/.test(id)
      return { filename, content_type, content, content_id: isInline ? id : null }
    })
  }

  /**
   * The e-mail that is answered or forwarded. Its bodies are read only where they are quoted, for as long as the call is not aborted: they may have many
   * megabytes.
   */
  async #original(caller: Caller, identityId: string, emailId: string, quoted: AbortSignal | false): Promise<Original> {
    const { emails } = this.#deps
    const email = quoted
      ? await emails.get(caller, identityId, emailId, quoted)
      : await emails.getBrief(caller, identityId, emailId)
    return { email, row: await emails.row(caller, identityId, emailId) }
  }

  async #namedIn(caller: Caller, identityId: string, emailId: string): Promise<Original> {
    try {
      return await this.#original(caller, identityId, emailId, false)
    } catch (error) {
      if (error instanceof Fault && error.type === 'not_found') {
        throw invalid('in_reply_to', `${emailId} is not an e-mail of this identity.`)
      }
      throw error
    }
  }
}

/** The subject and references of the e-mail replied to go into the message. Throws Fault 403. */
export function requireReading(caller: Caller, { in_reply_to }: Pick<NewEmail, 'in_reply_to'>): void {
  if (in_reply_to !== undefined && !may(caller, readers)) throw insufficientScope(readers, caller.person)
}

/** The fault of a reply without recipients, such as to an own message with blind copies only. */
function noRecipients(): Fault {
  const hint = 'The message has no address to reply to; set cc or bcc, or send a new message with in_reply_to.'
  return conflict(hint, { code: 'no_reply_address' })
}

/** In-Reply-To and References must not be given twice. */
function requireNoReferences({ references }: { references: string[] }, param: string): void {
  if (references.length === 0) return
  throw invalid(param, 'In-Reply-To and References are set from the e-mail replied to; leave them out of headers.')
}
