import type { Basis } from '../basis.ts'
import type { Holder, Keys } from '../accounts/keys.ts'
import { actorOf, actors } from '../core/audit.ts'
import { Fault, invalid, storageFull } from '../core/fault.ts'
import { isId } from '../core/ids.ts'
import { type Caller, may } from '../core/scopes.ts'
import type { Domains } from '../domains/domains.ts'
import type { Identities, IdentityRow } from '../identities/identities.ts'
import type { DeliveryTarget, LoginResult, MessageFindings, SubmissionAuth } from '../smtp/delivery-target.ts'
import type { Email, Envelope } from '../mail/model.ts'
import type { Transaction } from '../store/database.ts'
import { strictAuthorOf } from '../mailauth/author.ts'
import type { Outbox } from './compose/outbox.ts'
import { domainOf, recipientAddress } from './compose/recipients.ts'
import { canonical, mailboxOf, maySendFrom } from './compose/sender.ts'
import { largestMessage, maxRecipients } from './model.ts'
import type { Suppressions } from './suppressions.ts'

interface Deps extends Pick<Basis, 'audit' | 'database' | 'space' | 'clock'> {
  keys: Keys
  identities: Identities
  suppressions: Suppressions
  domains: Domains
  outbox: Outbox
  settings: () => SubmissionSettings
}

export interface SubmissionSettings {
  hostname: string
  /** The domain of a bare `postmaster`. */
  domain: string
}

/** A login: a key and the identity that it sends as. */
interface Login {
  caller: Caller
  owner: IdentityRow
}

/** Bytes that our own header fields may add to a message. */
const maxAddedBytes = 4096

/**
 * Authentication of message submission (RFC 6409): the user is an address or alias of an identity, the password an API key that may send as it. The
 * reason of a failure is only logged.
 */
export class Submission implements SubmissionAuth {
  readonly size = largestMessage - maxAddedBytes
  readonly max_recipients = maxRecipients
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async authenticate(user: string, password: string, address: string): Promise<LoginResult> {
    const { keys, identities } = this.#deps
    // before the name is looked up, so that the time does not reveal whether it exists
    const holder = await keys.authenticate(password)
    const owner = await identities.named(canonical(user))
    if (!owner || owner.status === 'deleted') return { deliveryTarget: null, who: null, why: 'no such identity' }
    const why = refusal(owner, holder)
    if (why !== null || !holder) {
      this.#recordFailure(owner, holder, address)
      return { deliveryTarget: null, who: owner.email, why: why ?? 'no such key' }
    }
    const caller: Caller = { ...holder, client: 'smtp', ip: address, user_agent: 'smtp' }
    const { id, account_id } = owner
    this.#deps.audit.collect({
      ...actorOf(caller),
      account_id,
      action: 'smtp_login.accepted',
      target: id,
      identity_id: id,
      detail: {},
    })
    return { deliveryTarget: new SubmissionLogin(this.#deps, { caller, owner }), who: owner.email }
  }

  /** Of a name that exists: others are tried by strangers everywhere. */
  #recordFailure({ id, account_id }: IdentityRow, holder: Holder | undefined, address: string): void {
    const own = holder?.account_id === account_id ? holder : undefined
    this.#deps.audit.collect({
      account_id,
      actor: own?.key_id ?? actors.anonymous,
      client: 'smtp',
      address,
      action: 'smtp_login.refused',
      target: id,
      identity_id: id,
      detail: {},
    })
  }
}

/** The id of the e-mail that a transaction has stored. */
function storedId(result: unknown): string | undefined {
  const id = typeof result === 'object' && result !== null && 'id' in result ? result.id : undefined
  return typeof id === 'string' && isId('email', id) ? id : undefined
}

/** The delivery target of a logged-in identity: accepts mail from its own addresses to allowed recipients. */
class SubmissionLogin implements DeliveryTarget {
  readonly #deps: Deps
  readonly #login: Login
  /** The sender of the current message. */
  #sender: string

  constructor(deps: Deps, login: Login) {
    this.#deps = deps
    this.#login = login
    this.#sender = login.owner.email
  }

  /** Throws Fault: `sender_not_allowed` for an address of another identity, unauthorized when the login is no longer valid. */
  async checkSender(sender: string): Promise<void> {
    if (this.#deps.space.low()) throw storageFull()
    await this.#requireValidLogin()
    if (!(await maySendFrom(this.#deps.identities, this.#login.owner, sender))) {
      throw this.#notAllowed(sender === '' ? 'The null sender' : sender)
    }
    this.#sender = mailboxOf(sender)
  }

  /** Throws Fault for a recipient that is invalid, suppressed, or not reachable. */
  async checkRecipient(address: string): Promise<string> {
    const { suppressions, domains, outbox } = this.#deps
    const { owner } = this.#login
    const recipient = recipientAddress(this.#withDomain(address), 'to').address
    const [suppressed] = await suppressions.among(this.#deps.database, owner.account_id, [recipient])
    if (suppressed !== undefined) {
      throw invalid('to', `${suppressed} is suppressed: it bounced, complained or unsubscribed.`, 'recipient_suppressed')
    }
    if (domains.receives(domainOf(recipient))) return owner.account_id
    if (!outbox.leaves(domainOf(recipient)))
      throw invalid('to', `${recipient} is not on this box, and outgoing mail is disabled.`, 'outbound_off')
    domains.requireSending(domainOf(this.#sender), domainOf(recipient))
    return owner.account_id
  }

  /** Accepts the message as the API would; returns its id. */
  async deliver(envelope: Envelope, raw: Buffer, note: (found: Partial<MessageFindings>) => void): Promise<string> {
    const { outbox, audit, database } = this.#deps
    const record = async (tx: Transaction, result: unknown): Promise<boolean> => {
      const target = storedId(result)
      if (target === undefined) return false
      const what = { action: 'email.sent', target, identity_id: this.#login.owner.id, detail: {} }
      await audit.append(tx, { ...actorOf(this.#login.caller), ...what })
      return true
    }
    const owner = await this.#requireValidLogin()
    const { address, reason } = strictAuthorOf(raw)
    if (address === null) throw unreadable(reason)
    if (!(await maySendFrom(this.#deps.identities, owner, address))) throw this.#notAllowed(`From: ${address}`)
    const accept = (): Promise<Email> =>
      outbox.acceptRaw({
        caller: this.#login.caller,
        owner,
        from: mailboxOf(address),
        raw: Buffer.concat([Buffer.from(this.#received(envelope)), raw]),
        recipients: envelope.recipients.map((recipient) => this.#withDomain(recipient)),
        require_tls: envelope.require_tls === true,
      })
    const email = await database.recording({ record, recorded: false }, accept)
    note({ email_ids: [email.id], message_id: email.message_id })
    return email.id
  }

  /** The current identity. Throws when the key, its secret or the identity has ended since the login. */
  async #requireValidLogin(): Promise<IdentityRow> {
    const { keys, identities } = this.#deps
    const { caller } = this.#login
    const holder = await keys.holder(caller.key_id ?? '', caller.secret)
    const owner = await identities.ownerOf(this.#login.owner.email)
    if (owner && refusal(owner, holder) === null) return owner
    throw new Fault('unauthorized', 'This login is no longer valid')
  }

  #notAllowed(what: string): Fault {
    return new Fault('forbidden', `${what} does not belong to this login, which sends as ${this.#login.owner.email}`, {
      code: 'sender_not_allowed',
    })
  }

  /** A bare `postmaster` is that of our own domain (RFC 5321 4.1.1.3). */
  #withDomain(recipient: string): string {
    return recipient.includes('@') ? recipient : `${recipient}@${this.#deps.settings().domain}`
  }

  /** The Received field: host and protocol (RFC 3848), without the address of the client, for privacy. */
  #received({ session, smtputf8, esmtp }: Envelope): string {
    const protocol = smtputf8 ? 'UTF8SMTPSA' : esmtp === false ? 'SMTP' : 'ESMTPSA'
    const at = new Date(this.#deps.clock.now()).toUTCString().replace('GMT', '+0000')
    return `Received: by ${this.#deps.settings().hostname} with ${protocol}\r\n\tid ${session}; ${at}\r\n`
  }
}

/** Why this key may not send as this identity now; null when it may. */
function refusal(owner: IdentityRow, holder: Omit<Caller, 'ip' | 'user_agent'> | undefined): string | null {
  if (owner.status !== 'active') return `the identity is ${owner.status}`
  if (!holder) return 'the key is unknown, revoked or expired'
  if (holder.stopped) return 'the account is stopped'
  if (holder.account_id !== owner.account_id) return 'the key belongs to another account'
  if (holder.identity_id !== null && holder.identity_id !== owner.id) return 'the key is bound to another identity'
  if (!may(holder, ['messages:write', 'emails:write'])) return 'the key lacks the scope messages:write'
  return null
}

function unreadable(reason: string | null): Fault {
  if (reason === 'malformed-header')
    return new Fault('invalid_request', 'The header of the message is malformed', { param: 'raw' })
  const why =
    reason === 'no-author'
      ? 'has no From with an address'
      : 'must have one From with one plain address, such as Ada <ada@example.com>'
  return new Fault('forbidden', `The message ${why}`, { code: 'sender_not_allowed' })
}
