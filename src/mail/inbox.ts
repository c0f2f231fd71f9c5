import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { Turns } from '../core/work/paced-work.ts'
import { storageFull } from '../core/fault.ts'
import { receivingRoles } from '../identities/role-names.ts'
import { uncountedMessageBytes } from '../events/model.ts'
import type { Identities, IdentityRow } from '../identities/identities.ts'
import type { Transaction } from '../store/database.ts'
import { isAnswer, isReply, mailbox, operatorMailboxes, type ParsedAddress } from './address.ts'
import { duplicateOf, type EmailStore, receivedEmail, type StoredContent } from './email-store.ts'
import type { Examination, ExaminedMessage } from './types.ts'
import type { Examiner } from './workers/examiner.ts'
import type {
  CheckResults,
  SystemAddressHandler,
  MessageFindings,
  Hosted,
  DeliveryTarget,
  VerdictListener,
} from '../smtp/delivery-target.ts'
import { type Authentication, emailReceived, type Envelope } from './model.ts'
import { Refusal } from '../smtp/replies.ts'
import type { Objection, SenderRulesStore } from './senders/rules.ts'
import { isFull, type Quota, type Recipient, requireQuota } from './quota.ts'
import type { Screening } from '../mailauth/screening.ts'
import { traceHeader } from '../smtp/trace.ts'
import { internalVerdict } from '../mailauth/unchecked.ts'

export interface InboxSettings {
  hostname: string
  domain: string
  /** True if a DNS failure in the DMARC check defers the message (451). */
  strict_temperror: boolean
}

interface Deps extends Pick<Basis, 'database' | 'clock' | 'space' | 'account'> {
  store: EmailStore
  identities: Identities
  examiner: Examiner
  screening: Screening
  quota: Quota
  rules: SenderRulesStore
  hosted: Hosted
  handlers: readonly SystemAddressHandler[]
  settings: InboxSettings
}

/** The delivery target for incoming mail: checks recipients, has messages examined, and stores them. */
export class Inbox implements DeliveryTarget {
  readonly #deps: Deps
  #settings: InboxSettings
  #listener: VerdictListener | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    this.#settings = deps.settings
  }

  /** Registers a listener for the verdict on each message from outside, except those to return paths and report addresses only. */
  onVerdict(listener: VerdictListener): void {
    this.#listener = listener
  }

  reload(settings: InboxSettings): void {
    this.#settings = settings
  }

  /**
   * Resolves with the account of the mailbox when mail for the address is accepted; throws the Refusal for RCPT otherwise. '' for a system address,
   * and for the operator's mailbox before it exists. `size` is the size declared in MAIL, `mailFrom` its sender.
   */
  async checkRecipient(address: string, size = 0, mailFrom = ''): Promise<string> {
    if (this.#deps.space.low()) throw storageFull()
    const parsed = mailbox(address, this.#settings.domain)
    const { domain } = parsed
    if (!this.#deps.hosted.receives(domain)) throw new Refusal(550, '5.7.1', `This server does not accept mail for ${domain}`)
    if (this.#handlerOf(parsed)) return ''
    const { operator, owner } = await this.#findOwner(parsed)
    const exists = owner && owner.status !== 'deleted'
    // the operator's mailbox is created with the first message
    if (operator && !exists) return ''
    if (!exists) throw noSuchMailbox()
    if (owner.status === 'suspended' && !operator) throw new Refusal(450, '4.2.1', 'This mailbox does not accept mail at present')
    // the operator is written to by everyone (RFC 5321 4.5.1)
    if (!operator && (await this.#deps.rules.blocks(owner, mailFrom))) throw refusalOf('blocked_sender')
    await this.#deps.quota.require(owner, Math.max(size, 1))
    return owner.account_id
  }

  /** Stores one copy for each recipient, all or none. Resolves with the queue id once that is on disk. */
  async deliver(
    envelope: Envelope,
    raw: Buffer,
    note: (found: Partial<MessageFindings>) => void,
    account: string,
  ): Promise<string> {
    const examining = this.#deps.examiner.examine(raw, envelope, account).then((examination) => {
      // also for messages that another filter refuses (RFC 9990 3.1)
      if (!this.#isForHandlers(envelope)) this.#listener?.(envelope, examination.verdict)
      return examination
    })
    const screening = this.#deps.screening.isSpam(envelope, raw)
    // a refused message too is held until it is examined: the caller counts its memory until then
    await Promise.allSettled([examining, screening])
    const [isSpam, examined] = await Promise.all([screening, examining])
    const { verdict, parsed } = examined
    const { action, reply, authentication } = verdict
    const spam = isSpam || action === 'spam'
    note({
      results: resultsOf(authentication, spam),
      message_id: parsed.message_id,
      from_domain: domainOf(parsed.from?.address),
    })
    if (action === 'reject' && reply) throw new Refusal(reply.code, reply.enhanced, reply.text)
    if (this.#settings.strict_temperror && authentication.dmarc.result === 'temperror') {
      throw new Refusal(451, '4.4.3', 'DNS lookup of the sender failed; try again later')
    }
    note({ email_ids: await this.#storeAll({ envelope, raw, examined, spam }) })
    return envelope.session
  }

  /** Examines a message between identities of this box, once for all of its recipients; the envelope is `own`. */
  examineInternal(raw: Buffer, envelope: Envelope, account: string): Promise<Examination> {
    return this.#deps.examiner.examine(raw, envelope, account)
  }

  /**
   * Stores a message between identities of this box, of so many bytes, as if it had been received. Its sender is known, so no checks are made. The
   * envelope is `own`. The message is read once its recipients are checked. Returns the ids of the e-mails. Throws the Refusal for RCPT or DATA.
   */
  async deliverInternal(
    envelope: Envelope,
    size: number,
    read: () => Promise<Pick<ExaminedMessage, 'raw' | 'examined'>>,
  ): Promise<string[]> {
    for (const recipient of envelope.recipients) await this.checkRecipient(recipient, size, envelope.mail_from)
    const { raw, examined } = await read()
    const verdict = internalVerdict(envelope, this.#settings.hostname, examined.parsed.from?.address ?? '')
    return this.#storeAll({ envelope, raw, examined: { ...examined, verdict }, spam: false })
  }

  /** Stores the message; when space was lacking, purges the trash and tries again. Returns the ids of the e-mails. */
  async #storeAll(accepted: ExaminedMessage): Promise<string[]> {
    const message = { ...accepted, examined: await this.#deps.store.prepare(accepted.raw, accepted.examined) }
    const store = (): Promise<string[]> => this.#deps.database.transaction((tx) => this.#store(tx, message))
    try {
      return await store()
    } catch (error) {
      if (!isFull(error)) throw error
      await this.#freeSpace(message.envelope.recipients, message.raw.length)
      return store()
    }
  }

  /** Frees space for one copy of so many bytes for each recipient. */
  async #freeSpace(recipients: readonly string[], bytes: number): Promise<void> {
    const turns = new Turns()
    const copies = new Map<string, { owner: IdentityRow; bytes: number }>()
    for (const recipient of recipients) {
      if (turns.due) await turns.yield()
      const { owner } = await this.#findOwner(mailbox(recipient, this.#settings.domain))
      if (owner) copies.set(owner.id, { owner, bytes: bytes + (copies.get(owner.id)?.bytes ?? 0) })
    }
    for (const copy of copies.values()) {
      if (turns.due) await turns.yield()
      await this.#deps.quota.freeSpace(copy.owner, copy.bytes)
    }
  }

  /** The owner of a local mailbox, deleted or not. */
  async #findOwner({ local, domain }: ParsedAddress): Promise<{ operator: boolean; owner: IdentityRow | undefined }> {
    const ours = `postmaster@${this.#settings.domain}`
    if (operatorMailboxes.has(local)) return { operator: true, owner: await this.#deps.identities.ownerOf(ours) }
    const owner = await this.#deps.identities.ownerOf(`${local}@${domain}`)
    return this.#isOperators({ local, domain }, owner)
      ? { operator: true, owner: await this.#deps.identities.ownerOf(ours) }
      : { operator: false, owner }
  }

  /** True if mail for a role name of the box (RFC 2142) goes to the operator: unless an identity has that address. */
  #isOperators({ local, domain }: Pick<ParsedAddress, 'local' | 'domain'>, owner: IdentityRow | undefined): boolean {
    return domain === this.#settings.domain && receivingRoles.has(local) && (!owner || owner.status === 'deleted')
  }

  async #store(tx: Transaction, message: ExaminedMessage): Promise<string[]> {
    const { envelope, raw, examined } = message
    const owners: Recipient[] = []
    let handled = false
    const turns = new Turns()
    for (const recipient of envelope.recipients) {
      if (turns.due) await turns.yield()
      const parsed = mailbox(recipient, this.#settings.domain)
      const handler = this.#handlerOf(parsed)
      handled ||= handler !== undefined
      await handler?.receive(tx, parsed, message)
      const found = handler ? undefined : await this.#recipientOf(tx, recipient)
      if (found) owners.push({ ...found, recipient })
    }
    // deleted between RCPT and the end of DATA
    if (owners.length === 0 && handled) return []
    if (owners.length === 0) throw noSuchMailbox()
    const objections = await this.#objections(tx, message, owners)
    if (!handled && objections.every((one) => one !== null && one !== 'suspicious')) throw refusalOf(objections[0]!)
    requireQuota(owners, raw.length)
    const content = await this.#deps.store.insertContent(tx, raw, examined, { copies: owners.length })
    const ids: string[] = []
    for (const [index, { owner, recipient }] of owners.entries()) {
      if (turns.due) await turns.yield()
      ids.push(await this.#deliver(tx, { ...message, owner, recipient, set_aside: objections[index]! }, content))
    }
    if (examined.parsed.report) for (const handler of this.#deps.handlers) await handler.receiveReport?.(tx, message)
    return ids
  }

  async #deliver(
    tx: Transaction,
    copy: ExaminedMessage & { owner: IdentityRow; recipient: string; set_aside: Objection | null },
    content: StoredContent,
  ): Promise<string> {
    const { examined, owner, envelope } = copy
    const now = this.#deps.clock.now()
    const to = copy.recipient.includes('@') ? copy.recipient : `${copy.recipient}@${this.#settings.domain}`
    const { tag } = mailbox(to, this.#settings.domain)
    const original = await duplicateOf(tx, { ...copy, ...content, recipient: to }, now)
    const { set_aside } = copy
    const received = {
      ...receivedEmail(copy, { to, tag, at: iso(now) }),
      ...(set_aside === null ? {} : { spam: true, set_aside }),
    }
    const trace = traceHeader({
      envelope,
      hostname: this.#settings.hostname,
      id: envelope.session,
      received_at: now,
      recipient: to,
      authentication_results: examined.verdict.authentication_results,
    })
    const email = await this.#deps.store.insert(tx, {
      owner,
      email: received,
      parsed: examined.parsed,
      content,
      address: to,
      participants: [received.from, to],
      mail_from: envelope.mail_from,
      trace,
      original,
    })
    // a duplicate, sent again as our 250 was lost (RFC 1047), raises no event
    if (original) return email.id
    const { account_id } = owner
    await this.#deps.store.appendEvent(
      tx,
      emailReceived,
      {
        account_id,
        content,
        email,
        annotation: (await isReply(tx, account_id, email)) ? 'answer' : null,
        // the bytes of the message are counted already, with the e-mail
        uncounted: uncountedMessageBytes + email.size,
      },
      {},
    )
    return email.id
  }

  /** Why the message is not accepted for each of its recipients as others are; null if it is. */
  async #objections(
    tx: Transaction,
    { envelope, examined }: ExaminedMessage,
    owners: readonly Recipient[],
  ): Promise<(Objection | null)[]> {
    const { parsed, verdict } = examined
    const turns = new Turns()
    const found: (Objection | null)[] = []
    for (const { owner } of owners) {
      if (turns.due) await turns.yield()
      const arrival = {
        mail_from: envelope.mail_from,
        from: parsed.from?.address ?? envelope.mail_from,
        isVerified: verdict.verified_domain !== null,
        score: parsed.screening.score,
        isAnswer: () => isAnswer(tx, owner.id, { ...parsed, ...verdict, from: parsed.from?.address ?? '' }),
      }
      const isOperators = owner.email === `postmaster@${this.#settings.domain}`
      found.push(isOperators ? null : await this.#deps.rules.objection(tx, owner, arrival))
    }
    return found
  }

  /** True if all recipients are system addresses: reports on reports would never end. */
  #isForHandlers({ recipients }: Envelope): boolean {
    const addresses = recipients.map((recipient) => mailbox(recipient, this.#settings.domain))
    return addresses.every((parsed) => this.#deps.handlers.some((handler) => handler.classify(parsed) !== 'unknown'))
  }

  #handlerOf(parsed: ParsedAddress): SystemAddressHandler | undefined {
    const handler = this.#deps.handlers.find((one) => one.classify(parsed) !== 'unknown')
    if (handler?.classify(parsed) === 'refused') throw noSuchMailbox()
    return handler
  }

  async #recipientOf(tx: Transaction, recipient: string): Promise<Omit<Recipient, 'recipient'> | undefined> {
    const { local, domain } = mailbox(recipient, this.#settings.domain)
    const named = operatorMailboxes.has(local) ? undefined : await this.#deps.identities.ownerOf(`${local}@${domain}`, tx)
    const operator = operatorMailboxes.has(local) || this.#isOperators({ local, domain }, named)
    const owner = operator ? await this.#deps.identities.operator(tx, this.#deps.account) : named
    if (!owner || owner.status === 'deleted') return undefined
    return { owner, ...(await this.#deps.quota.limitsOf(owner, tx)) }
  }
}

function noSuchMailbox(): Refusal {
  return new Refusal(550, '5.1.1', 'No such mailbox here')
}

const objections: Readonly<Record<Objection, string>> = {
  blocked_sender: 'This mailbox does not accept mail from this sender',
  unlisted_sender: 'This mailbox accepts mail from known senders only',
  unverified_sender: 'This mailbox accepts mail only from senders that DMARC verifies',
  suspicious: 'This mailbox does not accept this message',
}

function refusalOf(objection: Objection): Refusal {
  return new Refusal(550, '5.7.1', objections[objection])
}

function domainOf(address: string | undefined): string | null {
  return address?.slice(address.lastIndexOf('@') + 1) ?? null
}

function resultsOf({ spf, dkim, dmarc, arc }: Authentication, spam: boolean): CheckResults {
  return {
    spf: spf.result,
    dkim: dkim.map(({ result, domain }) => `${result} ${domain}`),
    dmarc: dmarc.result,
    arc: arc.result,
    spam,
  }
}
