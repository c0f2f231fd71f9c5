import type { Plan } from '../accounts/plan.ts'
import { type Clock, iso } from '../core/clock.ts'
import { storageFull } from '../core/fault.ts'
import { receivingRoles } from '../identities/role-names.ts'
import { littleOfMessages } from '../events/model.ts'
import type { EventLog } from '../events/log.ts'
import type { Identities, IdentityRow } from '../identities/identities.ts'
import { insertBlob, insertWhole } from '../store/blobs.ts'
import type { Trash } from '../ops/retention/trash.ts'
import { type Database, sql, type Transaction } from '../store/database.ts'
import type { Space } from '../store/space.ts'
import { isAnswer, mailbox, operatorMailboxes, type ParsedAddress } from './address.ts'
import { type Copy, duplicateOf, emailOf, insertEmail, insertSearchable, threadedOf } from './email-store.ts'
import type { ExaminedMessage } from './types.ts'
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
import { isFull, Quota, type Recipient, requireQuota } from './quota.ts'
import type { Screening } from '../mailauth/screening.ts'
import { addToThread, threadOf } from './threads.ts'
import { traceHeader } from '../smtp/trace.ts'
import { vouched } from '../mailauth/undecided.ts'

export interface InboxSettings {
  hostname: string
  domain: string
  /** Octets one identity may keep, the operator's own ten times as many; 0 is no limit. */
  quota: number
  /** Whether a DNS failure in the verdict puts the message off. */
  strict_temperror: boolean
}

interface Deps {
  database: Database
  events: EventLog
  clock: Clock
  identities: Identities
  examiner: Examiner
  screening: Screening
  space: Space
  plan: Plan
  trash: Trash
  hosted: Hosted
  desks: readonly SystemAddressHandler[]
  /** The account whose operator reads `postmaster`. */
  operatorAccount: string
  settings: InboxSettings
}

/** Where mail arrives: decides who is a recipient, has the message examined, and keeps it. */
export class Inbox implements DeliveryTarget {
  readonly #database: Database
  readonly #events: EventLog
  readonly #clock: Clock
  readonly #identities: Identities
  readonly #examiner: Examiner
  readonly #screening: Screening
  readonly #space: Space
  readonly #plan: Plan
  readonly #room: Quota
  readonly #hosted: Hosted
  readonly #desks: readonly SystemAddressHandler[]
  readonly #operatorAccount: string
  #settings: InboxSettings
  #listener: VerdictListener | undefined

  constructor(deps: Deps) {
    this.#database = deps.database
    this.#events = deps.events
    this.#clock = deps.clock
    this.#identities = deps.identities
    this.#examiner = deps.examiner
    this.#screening = deps.screening
    this.#space = deps.space
    this.#plan = deps.plan
    this.#room = new Quota(deps, deps.settings.quota)
    this.#hosted = deps.hosted
    this.#desks = deps.desks
    this.#operatorAccount = deps.operatorAccount
    this.#settings = deps.settings
  }

  /** Who hears of the verdict on each message of others', but not of what comes for our return paths and report addresses. */
  onVerdict(listener: VerdictListener): void {
    this.#listener = listener
  }

  reload(settings: InboxSettings): void {
    this.#settings = settings
    this.#room.reload(settings.quota)
  }

  /**
   * Resolves with the account whose mailbox it is, when mail for the address is taken; throws the Refusal that RCPT answers otherwise. '' for a
   * desk's and for a mailbox that is made first. `size` is what MAIL declared.
   */
  async checkRecipient(address: string, size = 0): Promise<string> {
    if (this.#space.low()) throw storageFull()
    const box = mailbox(address, this.#settings.domain)
    const { domain } = box
    if (!this.#hosted.receives(domain)) throw new Refusal(550, '5.7.1', `We do not take mail for ${domain}`)
    if (this.#deskOf(box)) return ''
    const { operator, owner } = await this.#found(box)
    const living = owner && owner.status !== 'deleted'
    // the operator's is made when the first message comes
    if (operator && !living) return ''
    if (!living) throw new Refusal(550, '5.1.1', 'No such mailbox here')
    if (owner.status === 'suspended' && !operator) throw new Refusal(450, '4.2.1', 'This mailbox takes no mail for now')
    await this.#room.require(owner, operator, Math.max(size, 1))
    return owner.account_id
  }

  /** Keeps one copy a recipient, all or none; resolves with the queue id once that is on disk. */
  async deliver(
    envelope: Envelope,
    raw: Buffer,
    note: (found: Partial<MessageFindings>) => void,
    account: string,
  ): Promise<string> {
    const examining = this.#examiner.examine(raw, envelope, account).then((examination) => {
      // also of what another filter refuses (RFC 9990 3.1)
      if (!this.#isForDesks(envelope)) this.#listener?.(envelope, examination.verdict)
      return examination
    })
    const [examined, unwanted] = await Promise.all([examining, this.#screening.isSpam(envelope, raw)])
    const { verdict, parsed } = examined
    const { action, reply, authentication } = verdict
    const spam = unwanted || action === 'spam'
    note({
      results: resultsOf(authentication, spam),
      message_id: parsed.message_id,
      from_domain: domainOf(parsed.from?.address),
    })
    if (action === 'reject' && reply) throw new Refusal(reply.code, reply.enhanced, reply.text)
    if (this.#settings.strict_temperror && authentication.dmarc.result === 'temperror') {
      throw new Refusal(451, '4.4.3', 'The DNS gave no answer about the sender; try again later')
    }
    note({ email_ids: await this.#storeAll({ envelope, raw, examined, spam }) })
    return envelope.session
  }

  /**
   * Keeps a message that one of our own sends to some of our own, as if it had come: known to be the sender's, so nothing is asked of the
   * DNS. The envelope is `own`; answers the ids of the e-mails. Throws the Refusal that RCPT or DATA would answer.
   */
  async deliverOwn(envelope: Envelope, raw: Buffer): Promise<string[]> {
    const accounts: string[] = []
    for (const recipient of envelope.recipients) accounts.push(await this.checkRecipient(recipient, raw.length))
    const examined = await this.#examiner.examine(raw, envelope, accounts[0])
    const verdict = vouched(envelope, this.#settings.hostname, examined.parsed.from?.address ?? '')
    return this.#storeAll({ envelope, raw, examined: { ...examined, verdict }, spam: false })
  }

  /** Stores once more when there was too little room, and what was deleted has made way. Answers the ids of the e-mails. */
  async #storeAll(message: ExaminedMessage): Promise<string[]> {
    const store = (): Promise<string[]> => this.#database.transaction((tx) => this.#store(tx, message))
    try {
      return await store()
    } catch (error) {
      if (!isFull(error)) throw error
      for (const recipient of message.envelope.recipients) await this.#makeRoom(recipient, message.raw.length)
      return store()
    }
  }

  async #makeRoom(recipient: string, octets: number): Promise<void> {
    const { operator, owner } = await this.#found(mailbox(recipient, this.#settings.domain))
    if (owner) await this.#room.make(owner, operator, octets)
  }

  /** Who a mailbox of ours is, living or not. */
  async #found({ local, domain }: ParsedAddress): Promise<{ operator: boolean; owner: IdentityRow | undefined }> {
    const ours = `postmaster@${this.#settings.domain}`
    if (operatorMailboxes.has(local)) return { operator: true, owner: await this.#identities.ownerOf(ours) }
    const owner = await this.#identities.ownerOf(`${local}@${domain}`)
    return this.#isOperators({ local, domain }, owner)
      ? { operator: true, owner: await this.#identities.ownerOf(ours) }
      : { operator: false, owner }
  }

  /** Whether the operator receives what comes for a name that speaks for the box (RFC 2142): unless an identity has it. */
  #isOperators({ local, domain }: Pick<ParsedAddress, 'local' | 'domain'>, owner: IdentityRow | undefined): boolean {
    return domain === this.#settings.domain && receivingRoles.has(local) && (!owner || owner.status === 'deleted')
  }

  async #store(tx: Transaction, message: ExaminedMessage): Promise<string[]> {
    const { envelope, raw, examined } = message
    const owners: Recipient[] = []
    let taken = false
    for (const recipient of envelope.recipients) {
      const box = mailbox(recipient, this.#settings.domain)
      const desk = this.#deskOf(box)
      taken ||= desk !== undefined
      await desk?.receive(tx, box, message)
      const found = desk ? undefined : await this.#owner(tx, recipient)
      if (found) owners.push({ ...found, recipient })
    }
    // deleted between RCPT and the end of DATA
    if (owners.length === 0 && taken) return []
    if (owners.length === 0) throw new Refusal(550, '5.1.1', 'No such mailbox here')
    requireQuota(owners, raw.length)
    const kept = {
      size: raw.length,
      sha256: Buffer.from(examined.sha256, 'hex'),
      deflated: examined.deflated !== null,
      bytes: examined.deflated ?? raw,
    }
    const rawId = await insertBlob(tx, kept)
    const bodyId = await insertWhole(tx, { size: examined.body_size, sha256: null, deflated: true, bytes: examined.bodies })
    const ids: string[] = []
    for (const { owner, recipient } of owners) {
      ids.push(await this.#deliver(tx, { ...message, rawId, bodyId, owner, recipient }))
    }
    if (examined.parsed.report) for (const desk of this.#desks) await desk.hears?.(tx, message)
    return ids
  }

  async #deliver(tx: Transaction, copy: Copy): Promise<string> {
    const { examined, owner, envelope } = copy
    const now = this.#clock.now()
    const to = copy.recipient.includes('@') ? copy.recipient : `${copy.recipient}@${this.#settings.domain}`
    const { tag } = mailbox(to, this.#settings.domain)
    const earlier = await duplicateOf(tx, { ...copy, recipient: to }, now)
    const threaded = threadedOf(copy)
    const thread = earlier ? undefined : await threadOf(tx, threaded, now)
    const email = emailOf(copy, {
      to,
      tag,
      at: iso(now),
      thread_id: thread?.id ?? earlier!.thread_id,
      duplicate_of: earlier?.id ?? null,
    })
    const trace = traceHeader({
      envelope,
      hostname: this.#settings.hostname,
      id: envelope.session,
      received_at: now,
      recipient: to,
      authentication_results: examined.verdict.authentication_results,
    })
    const seq = await insertEmail(tx, email, { ...copy, trace, mail_from: envelope.mail_from })
    await tx.run(sql`UPDATE identities SET stored_bytes = stored_bytes + ${email.size} WHERE id = ${owner.id}`)
    await this.#plan.add(tx, owner.account_id, 'storage_bytes', email.size)
    // the sender came again because our 250 was lost (RFC 1047): kept and marked, but it is no news
    if (!thread) return email.id
    await insertSearchable(tx, seq, email, copy.examined.parsed)
    await addToThread(tx, thread, {
      ...threaded,
      seq,
      at: email.received_at,
      snippet: email.snippet,
      participants: [email.from, to],
      unread: true,
    })
    const whole = email.body_truncated === undefined
    await this.#events.append(tx, emailReceived, {
      account_id: owner.account_id,
      identity_id: owner.id,
      data: email,
      remark: (await isAnswer(tx, owner.account_id, email)) ? 'answer' : null,
      // it is told once, and its octets count
      uncounted: littleOfMessages + email.size,
      ...(whole ? { blob: { id: copy.bodyId, fields: ['body_text', 'body_html', 'text'] } } : {}),
    })
    return email.id
  }

  /** Reports on reports would never end. */
  #isForDesks({ recipients }: Envelope): boolean {
    const boxes = recipients.map((recipient) => mailbox(recipient, this.#settings.domain))
    return boxes.every((box) => this.#desks.some((desk) => desk.answers(box) !== 'unknown'))
  }

  #deskOf(box: ParsedAddress): SystemAddressHandler | undefined {
    const desk = this.#desks.find((one) => one.answers(box) !== 'unknown')
    if (desk?.answers(box) === 'refused') throw new Refusal(550, '5.1.1', 'No such mailbox here')
    return desk
  }

  async #owner(tx: Transaction, recipient: string): Promise<Omit<Recipient, 'recipient'> | undefined> {
    const { local, domain } = mailbox(recipient, this.#settings.domain)
    const named = operatorMailboxes.has(local) ? undefined : await this.#identities.ownerOf(`${local}@${domain}`, tx)
    const operator = operatorMailboxes.has(local) || this.#isOperators({ local, domain }, named)
    const owner = operator ? await this.#identities.operator(tx, this.#operatorAccount) : named
    if (!owner || owner.status === 'deleted') return undefined
    return { owner, ...(await this.#room.of(owner, operator, tx)) }
  }
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
