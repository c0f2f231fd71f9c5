import type { Keys } from '../account/keys.ts'
import type { Clock } from '../core/clock.ts'
import { Fault, invalid, storageFull } from '../core/fault.ts'
import { may } from '../core/scopes.ts'
import type { Caller } from '../core/scopes.ts'
import type { Domains } from '../domains/domains.ts'
import type { Identities, IdentityRow } from '../identities/identities.ts'
import type { Mailroom } from '../mail/mailroom.ts'
import type { Envelope } from '../mail/model.ts'
import type { MailPart } from '../mail/part.ts'
import type { Database } from '../store/database.ts'
import type { Space } from '../store/space.ts'
import type { Outbox } from './outbox.ts'
import { domainOf, recipientAddress } from './recipients.ts'
import type { Suppressions } from './suppressions.ts'

/** What handing in mail needs of the box. */
export interface SubmissionParts {
  database: Database
  space: Space
  keys: Keys
  identities: Identities
  suppressions: Suppressions
  domains: Domains
  outbox: Outbox
  authorOf: MailPart['authorOf']
  clock: Clock
  settings: () => SubmissionSettings
}

export interface SubmissionSettings {
  hostname: string
  /** The domain of a bare `postmaster`. */
  domain: string
  outbound: { mode: string; relays: readonly { domains: readonly string[] }[] }
}

/** One login: a key, and the identity that it sends as. */
export interface Login {
  caller: Caller
  owner: IdentityRow
  /** In milliseconds since the Unix epoch. */
  since: number
}

/** The mailroom of an identity that has logged in: takes its mail, in its name only, to whom it may write. */
export class Submitter implements Mailroom {
  readonly #parts: SubmissionParts
  readonly #login: Login

  constructor(parts: SubmissionParts, login: Login) {
    this.#parts = parts
    this.#login = login
  }

  /** Throws Fault: `sender_not_allowed` for an address that is another's, unauthorized when the login is no longer good. */
  async welcomes(sender: string): Promise<void> {
    if (this.#parts.space.low()) throw storageFull()
    await this.#requireStanding()
    if (!(await this.#isOwn(sender))) throw this.#notAllowed(sender === '' ? 'The null sender' : sender)
  }

  /** Throws Fault for who cannot be written to: no address, suppressed, or out of reach. */
  async ownerOf(address: string): Promise<void> {
    const { suppressions, domains, settings } = this.#parts
    const { owner } = this.#login
    const recipient = recipientAddress(this.#whole(address), 'to').address
    const [suppressed] = await suppressions.among(this.#parts.database, owner.account_id, [recipient])
    if (suppressed !== undefined) {
      throw invalid(
        'to',
        `${suppressed} is suppressed: it bounced, complained or asked for no more mail.`,
        'recipient_suppressed',
      )
    }
    if (domains.receives(domainOf(recipient))) return
    if (!leaves(settings(), domainOf(recipient)))
      throw invalid('to', `${recipient} is not on this box, and no mail leaves it.`, 'outbound_off')
    domains.requireSending(domainOf(owner.email))
  }

  /** Hands the message to the outbox, as the API would; answers its id. */
  async keep(envelope: Envelope, raw: Buffer): Promise<string> {
    const { outbox, authorOf } = this.#parts
    const owner = await this.#requireStanding()
    const { address, reason } = authorOf(raw)
    if (address === null) throw unreadable(reason)
    if (!(await this.#isOwn(address))) throw this.#notAllowed(`From: ${address}`)
    const email = await outbox.acceptRaw({
      owner,
      raw: Buffer.concat([Buffer.from(this.#received(envelope)), raw]),
      recipients: envelope.recipients.map((recipient) => this.#whole(recipient)),
      require_tls: envelope.require_tls === true,
    })
    return email.id
  }

  /** The identity as it stands now. A key or identity that is gone since the login ends the session. */
  async #requireStanding(): Promise<IdentityRow> {
    const { keys, identities, clock } = this.#parts
    const { caller, since } = this.#login
    const holder = await keys.holder(caller.key_id ?? '')
    const owner = await identities.ownerOf(this.#login.owner.email)
    const rotated = holder !== undefined && since < holder.rotated && holder.rotated <= clock.now()
    if (owner && !rotated && refusal(owner, holder) === null) return owner
    throw new Fault('unauthorized', 'This login is no longer good')
  }

  async #isOwn(address: string): Promise<boolean> {
    const found = await this.#parts.identities.ownerOf(withoutTag(canonical(address)))
    return found?.id === this.#login.owner.id
  }

  #notAllowed(what: string): Fault {
    return new Fault('forbidden', `${what} is not this login's; it sends as ${this.#login.owner.email}`, {
      code: 'sender_not_allowed',
    })
  }

  /** A bare `postmaster` is that of our own domain (RFC 5321 4.1.1.3). */
  #whole(recipient: string): string {
    return recipient.includes('@') ? recipient : `${recipient}@${this.#parts.settings().domain}`
  }

  /** Where the message was taken, and by which way (RFC 3848); not from where, which is nobody's business. */
  #received({ session, smtputf8, esmtp }: Envelope): string {
    const protocol = smtputf8 ? 'UTF8SMTPSA' : esmtp === false ? 'SMTP' : 'ESMTPSA'
    const at = new Date(this.#parts.clock.now()).toUTCString().replace('GMT', '+0000')
    return `Received: by ${this.#parts.settings().hostname} with ${protocol}\r\n\tid ${session}; ${at}\r\n`
  }
}

/** An address as the box keeps its own: ASCII in lower case, the domain as the DNS writes it. Other letters are no spelling of ASCII ones. */
export function canonical(address: string): string {
  const local = address.slice(0, Math.max(0, address.lastIndexOf('@')))
  return `${local}@${domainOf(address)}`.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** Why this key may not send as this identity now; null when it may. */
export function refusal(owner: IdentityRow, holder: Omit<Caller, 'ip' | 'user_agent'> | undefined): string | null {
  if (owner.status !== 'active') return `the identity is ${owner.status}`
  if (!holder) return 'no such key, or it is revoked or expired'
  if (holder.account_id !== owner.account_id) return 'the key belongs to another account'
  if (holder.identity_id !== null && holder.identity_id !== owner.id) return 'the key is bound to another identity'
  if (!may(holder, ['messages:write', 'emails:write'])) return 'the key lacks the scope messages:write'
  return null
}

/** Whether mail for this domain leaves the box at all. */
function leaves({ outbound }: SubmissionSettings, domain: string): boolean {
  return outbound.mode !== 'none' || outbound.relays.some(({ domains }) => domains.includes(domain))
}

function withoutTag(address: string): string {
  const at = address.lastIndexOf('@')
  const plus = address.indexOf('+')
  return plus < 1 || plus > at ? address : `${address.slice(0, plus)}${address.slice(at)}`
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
