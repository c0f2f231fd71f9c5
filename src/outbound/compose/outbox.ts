import { randomUUID } from 'node:crypto'
import type { Basis } from '../../basis.ts'
import type { Keys } from '../../accounts/keys.ts'
import type { Plan } from '../../accounts/plan.ts'
import { largeWork } from '../../core/work/long-work.ts'
import { loggable } from '../../core/log.ts'
import { release } from '../../core/memory.ts'
import { conflict, invalid, notFound } from '../../core/fault.ts'
import { type Caller, makerOf } from '../../core/scopes.ts'
import type { Queue } from '../../queue/queue.ts'
import type { Domains } from '../../domains/domains.ts'
import { type IdentityRow, present } from '../../identities/row.ts'
import type { Examiner } from '../../mail/workers/examiner.ts'
import type { Examination } from '../../mail/types.ts'
import type { Email, Envelope } from '../../mail/model.ts'
import type { StoredMessage, OutgoingEmails } from '../../mail/outgoing.ts'
import type { Quota } from '../../mail/quota.ts'
import type { OutgoingEmail, PolicyCheck } from '../../policy/policy-check.ts'
import type { Holds } from '../../policy/holds.ts'
import { sql, type Transaction } from '../../store/database.ts'
import type { Composed, Draft, MessageContent } from './compose.ts'
import type { Composer } from './composer.ts'
import type { SendLimits, SendCount } from './limits.ts'
import {
  emailHeld,
  emailKind,
  type EmailLoad,
  emailQueued,
  largestBodies,
  largestMessage,
  maxRecipients,
  releaseKind,
  type ReleaseLoad,
} from '../model.ts'
import { prepareRaw, requireFewHops } from './prepare-raw.ts'
import { type Addressee, domainOf, recipientAddress } from './recipients.ts'
import type { DkimSigner } from './signing.ts'
import type { Suppressions } from '../suppressions.ts'

interface OutboxSettings {
  mode: 'direct' | 'relay' | 'none'
  relays: readonly { domains: readonly string[] }[]
}

interface Deps extends Pick<Basis, 'log' | 'database' | 'clock'> {
  keys: Pick<Keys, 'origins'>
  domains: Pick<Domains, 'receives' | 'requireSending'>
  queue: Queue
  outgoing: OutgoingEmails
  composer: Composer
  examiner: Examiner
  suppressions: Suppressions
  limits: SendLimits
  plan: Plan
  quota: Quota
  signer: DkimSigner
  policyCheck: PolicyCheck
  holds: Holds
  settings: OutboxSettings
}

/** A complete message, as SMTP clients submit it. */
interface RawMail {
  caller: Caller
  owner: IdentityRow
  /** The address in its From, one of the owner's, without a tag. */
  from: string
  /** The whole message. Bcc fields are taken out, lone CR and LF made line ends, a missing Date or Message-ID added. */
  raw: Buffer
  /** The recipients of the envelope; those in neither To nor Cc are blind copies. */
  recipients: string[]
  labels?: string[]
  require_tls?: boolean
}

/** Who sends a message to whom, and when. */
interface SendEnvelope {
  /** Null for the box itself. */
  caller: Caller | null
  owner: IdentityRow
  /** The address it is from, one of the owner's, which the caller has checked. */
  from: string
  addressees: Addressee[]
  send_at: string | null
}

/** One that the outbox has admitted. */
interface AdmittedEnvelope extends SendEnvelope {
  admitted: true
}

/** A composed message. */
interface ComposedEmail extends SendEnvelope, Composed {
  labels: string[]
  require_tls: boolean
  /** Its text as it was given; null without one. */
  text: string | null
  /** The thread, when it is known other than by the header. */
  thread_id: string | null
}

/** Accepts messages for sending: once it resolves, they are on disk and will be sent. */
export class Outbox {
  readonly #deps: Deps
  #settings: OutboxSettings

  constructor(deps: Deps) {
    this.#deps = deps
    this.#settings = deps.settings
  }

  reload(settings: OutboxSettings): void {
    this.#settings = settings
  }

  /** All checks that can be made before the content of a message is known. Throws a Fault when it may not be sent. */
  async admit(envelope: SendEnvelope): Promise<AdmittedEnvelope> {
    const { owner, from, addressees, send_at } = envelope
    await this.#require(owner, from, addressees, send_at)
    return { ...envelope, admitted: true }
  }

  /** Composes and accepts a message; returns it as stored. Throws a Fault when it may not be sent. */
  async accept({ owner, caller, from, addressees, send_at }: AdmittedEnvelope, content: MessageContent): Promise<Email> {
    const draft: Draft = { ...content, from, addressees, send_at }
    const bodies = requireBodySize(draft)
    const { clock, composer } = this.#deps
    const at = send_at === null ? clock.now() : Date.parse(send_at)
    // quoted-printable takes up to three bytes for one
    const bytes = draft.attachments.reduce((sum, one) => sum + one.content.length, 3 * bodies)
    return largeWork(owner.account_id, bytes, async () => {
      const { raw, head, whole } = await composer.compose(owner.account_id, draft, { name: owner.name, at })
      if (raw.length + head.length > largestMessage) {
        const param = draft.attachments.length > 0 ? 'attachments' : draft.html === null ? 'body_text' : 'body_html'
        throw invalid(param, `The message has ${raw.length} bytes; the limit is ${largestMessage} (25 MiB).`, 'message_too_large')
      }
      const email = await this.#post({ ...draft, caller, owner, raw, head, whole })
      release(whole)
      return email
    })
  }

  /** Accepts a complete message, to be sent at once; the caller has checked that its From is an address of the owner. */
  async acceptRaw({ caller, owner, from, raw, recipients, labels = [], require_tls = false }: RawMail): Promise<Email> {
    const addresses = recipients.map((one) => recipientAddress(one, 'to'))
    const { clock, examiner } = this.#deps
    requireFewHops(raw, 'raw')
    const octets = await prepareRaw(raw, { now: clock.now(), domain: domainOf(from) })
    if (octets.length > largestMessage) throw invalid('raw', 'The message is larger than 25 MiB.', 'message_too_large')
    if (addresses.length > maxRecipients) throw invalid('to', `A message can have at most ${maxRecipients} recipients.`)
    return largeWork(owner.account_id, octets.length, async () => {
      const scan = await this.#deps.policyCheck.scans(this.#deps.database, caller, owner)
      const examined = await examiner.examine(octets, envelopeOf(from, scan), owner.account_id)
      const addressees = addresseesOf(addresses, examined)
      await this.#require(owner, from, addressees, null)
      const rest = { head: '', addressees, labels, send_at: null, require_tls, text: null, thread_id: null }
      return this.#post({ caller, owner, from, raw: octets, whole: octets, ...rest }, examined)
    })
  }

  /** The count of a message for the rate limits. */
  sendCountOf(identityId: string, from: string, addresses: string[], at: number): SendCount {
    const outside = addresses.filter((address) => !this.#deps.domains.receives(domainOf(address))).length
    return { identity_id: identityId, domain: domainOf(from), recipients: addresses.length, outside, at }
  }

  /** All checks that can be made before the message is composed. */
  async #require(owner: IdentityRow, from: string, addressees: Addressee[], sendAt: string | null): Promise<void> {
    const { database, clock, domains, suppressions, limits, plan } = this.#deps
    requireActive(owner)
    const outside = addressees.filter(({ address }) => !domains.receives(domainOf(address.address)))
    const unreachable = outside.find(({ address }) => !this.leaves(domainOf(address.address)))
    if (unreachable) {
      const why = 'outgoing mail is disabled (outbound.mode is none).'
      throw invalid(unreachable.field, `${unreachable.address.address} is not on this box, and ${why}`, 'outbound_off')
    }
    for (const { address } of outside) domains.requireSending(domainOf(from), domainOf(address.address))
    const addresses = addressees.map(({ address }) => address.address)
    const suppressed = await suppressions.among(database, owner.account_id, addresses)
    if (suppressed.length > 0) {
      const field = addressees.find(({ address }) => suppressed.includes(address.address))?.field ?? 'to'
      const which = `${suppressed.join(', ')} ${suppressed.length === 1 ? 'is' : 'are'} suppressed`
      throw invalid(field, `${which}: they bounced, complained, or unsubscribed (GET /v1/suppressions).`, 'recipient_suppressed')
    }
    const at = sendAt === null ? clock.now() : Date.parse(sendAt)
    await plan.require(database, owner.account_id, 'emails_sent', 1, at)
    await limits.require(database, this.sendCountOf(owner.id, from, addresses, at))
  }

  /** True if mail for this domain leaves the box at all. */
  leaves(domain: string): boolean {
    return this.#settings.mode !== 'none' || this.#settings.relays.some(({ domains }) => domains.includes(domain))
  }

  async #post(composed: ComposedEmail, known?: Examination): Promise<Email> {
    const { database, clock, signer, quota } = this.#deps
    const { caller, owner, from, raw, head, whole, addressees, send_at } = composed
    const { outgoing } = this.#deps
    const accepted = known ?? (await this.#examine(composed))
    // a scheduled message is signed when it is sent, with the keys published then
    const signatures = send_at === null ? await signer.sign(domainOf(from), whole) : ''
    // whether that suffices is checked in the transaction
    await quota.freeSpace(owner, raw.length, 'sent')
    const examined = await outgoing.prepare(raw, accepted)
    return database.transaction(async (tx) => {
      const { keys, limits, plan, policyCheck, holds } = this.#deps
      // fetching attachments may have taken long
      if (caller) await keys.origins.requireAdmitted(tx, caller)
      if (caller && send_at !== null) await keys.origins.requireInGrace(tx, caller, send_at)
      const row = present(await tx.get<IdentityRow>(sql`SELECT * FROM identities WHERE id = ${owner.id}`), clock)
      if (!row || row.status === 'deleted') throw notFound('identity')
      requireActive(row)
      quota.requireSent(row, raw.length)
      await plan.require(tx, owner.account_id, 'storage_bytes', raw.length)
      const addresses = addressees.map(({ address }) => address.address)
      const at = send_at === null ? clock.now() : Date.parse(send_at)
      await plan.take(tx, owner.account_id, 'emails_sent', at)
      await limits.count(tx, this.sendCountOf(owner.id, from, addresses, at))
      const { automated, references, in_reply_to } = examined.parsed
      const referred = in_reply_to === null ? references : [...references, in_reply_to]
      if (automated) await limits.requireAutomatic(tx, owner.id, referred, addresses)
      const leaving = { owner, addresses, inReplyTo: in_reply_to, ...contentOf(examined) }
      const { verdict, own } = await policyCheck.email(tx, caller, leaving)
      const held = policyCheck.admitted(verdict)
      const hold = held ? await holds.prepare(tx, owner) : null
      const created_by = caller && makerOf(caller)
      // it is signed when it leaves
      const trace = hold ? head : signatures + head
      const message = { ...composed, created_by, recipients: addressees, examined, trace, hold }
      const kept = await outgoing.insert(tx, message, hold ? emailHeld : emailQueued)
      const about = kept.email.id
      if (caller && (send_at !== null || hold)) await keys.origins.inherit(tx, about, caller)
      if (hold && held) await holds.insert(tx, hold, { kind: 'email', owner, created_by, about, sha256: examined.sha256, held })
      else await this.#enqueue(tx, composed, kept, own)
      tx.afterCommit(() => this.#log(kept.email, addresses))
      return { ...kept.email, deliveries: kept.email.deliveries.map((one) => ({ ...one, history: [] })) }
    })
  }

  async #examine({ caller, owner, from, raw, text }: ComposedEmail): Promise<Examination> {
    const { database, examiner, policyCheck } = this.#deps
    const envelope = envelopeOf(from, await policyCheck.scans(database, caller, owner))
    return examiner.examine(raw, envelope, owner.account_id, text ?? undefined)
  }

  /** Writes the log line of an accepted message. */
  #log({ id, message_id, from, size, send_at }: Email, addresses: string[]): void {
    const to = addresses.map((address) => loggable(address, 320))
    this.#deps.log.info({ email_id: id, message_id, from, to, size, send_at }, 'message queued')
  }

  async #enqueue(
    tx: Transaction,
    { owner: { account_id }, from, send_at, require_tls }: ComposedEmail,
    kept: StoredMessage,
    own: ReadonlySet<string>,
  ): Promise<void> {
    const { queue } = this.#deps
    if (send_at !== null) {
      const load: ReleaseLoad = { email_id: kept.email.id, require_tls }
      const id = await queue.enqueue(tx, { kind: releaseKind, lane: domainOf(from), account_id, load, due: send_at })
      await tx.run(sql`UPDATE email_recipients SET delivery_id = ${id} WHERE email_id = ${kept.email.id}`)
      return
    }
    await enqueueCopies(tx, queue, account_id, kept.recipients, { require_tls, own })
  }
}

/** One delivery for each recipient, due at once; to those of `own` only while they are addresses of the account. */
export async function enqueueCopies(
  tx: Transaction,
  queue: Queue,
  accountId: string,
  recipients: { seq: number; address: string }[],
  { require_tls, own }: { require_tls: boolean; own: ReadonlySet<string> },
): Promise<void> {
  for (const { seq, address } of recipients) {
    const load: EmailLoad = {
      recipient_seq: seq,
      ...(require_tls ? { require_tls: true } : {}),
      ...(own.has(address) ? { own: true } : {}),
    }
    const id = await queue.enqueue(tx, { kind: emailKind, lane: domainOf(address), account_id: accountId, load })
    await tx.run(sql`UPDATE email_recipients SET delivery_id = ${id} WHERE seq = ${seq}`)
  }
}

/** The envelope for parsing an own message, which is not checked for spam. */
export function envelopeOf(from: string, scan = false): Envelope {
  return {
    remote_address: '127.0.0.1',
    helo: 'localhost',
    mail_from: from,
    recipients: [],
    smtputf8: true,
    tls: null,
    session: randomUUID(),
    own: true,
    ...(scan ? { scan } : {}),
  }
}

/** What a policy looks at in a message. */
export function contentOf({
  parsed,
  found,
  may_have_link,
  may_have_file,
}: Examination): Pick<OutgoingEmail, 'hasAttachments' | 'hasLinks' | 'found'> {
  const { attachments, links, parse_error } = parsed
  // of a message that was read in part, more may be in the rest
  const some = (isAny: boolean, isSure: boolean): boolean | null => isAny || (isSure && parse_error === null ? false : null)
  return {
    hasAttachments: some(attachments.length > 0 || may_have_file === true, may_have_file !== null),
    hasLinks: some(links.length > 0 || may_have_link === true, may_have_link === false),
    found,
  }
}

function requireActive({ status, email }: Pick<IdentityRow, 'status' | 'email'>): void {
  if (status === 'active') return
  throw conflict(`${email} is suspended and cannot send; PATCH its status to active first.`, { code: 'identity_suspended' })
}

/** The bytes of the bodies, checked before encoding, which takes much longer than reading. Throws Fault invalid_request `message_too_large`. */
function requireBodySize({ text, html }: Draft): number {
  const [plain, rich] = [bytesOf(text ?? ''), bytesOf(html ?? '')]
  if (plain + rich <= largestBodies) return plain + rich
  const param = plain > rich ? 'body_text' : 'body_html'
  const why = `The text and HTML of the message are too long: the limit is ${largestBodies} bytes (4 MiB), with two bytes for each line end.`
  throw invalid(param, `${why} Send longer text as an attachment.`, 'message_too_large')
}

/** Bytes of a text with CRLF for each line end; counting stops above the limit. */
function bytesOf(text: string): number {
  let octets = Buffer.byteLength(text)
  // searching for the next line end would take ten times as long where all are empty
  for (let at = 0; at < text.length && octets <= largestBodies; at += 1) {
    if (text.charCodeAt(at) === 0x0a && text.charCodeAt(at - 1) !== 0x0d) octets += 1
  }
  return octets
}

/** Each address of the envelope once, in the field of the header that names it. */
function addresseesOf(addresses: { address: string; name: string }[], { parsed }: Examination): Addressee[] {
  const [to, cc] = [keysOf(parsed.to), keysOf(parsed.cc)]
  const found = new Map<string, Addressee>()
  for (const address of addresses) {
    const key = address.address.toLowerCase()
    const field = to.has(key) ? 'to' : cc.has(key) ? 'cc' : 'bcc'
    if (!found.has(key)) found.set(key, { field, address })
  }
  const rank = { to: 0, cc: 1, bcc: 2 }
  return [...found.values()].toSorted((one, other) => rank[one.field] - rank[other.field])
}

function keysOf(addresses: { address: string }[]): Set<string> {
  return new Set(addresses.map(({ address }) => address.toLowerCase()))
}
