import type { Basis } from '../basis.ts'
import { day } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { IdentityRow } from '../identities/identities.ts'
import { findingsIn, type Found } from '../message/findings.ts'
import { mayHaveLink } from '../message/links.ts'
import type { Reader, Transaction } from '../store/database.ts'
import { contactKey, emailRecipients, isKnownPlace, newToday, noteContacts, placeKey, smsRecipient, sortOf } from './contacts.ts'
import type { HoldReason } from './model.ts'
import type { Level, Policies } from './policies.ts'
import { type Departure, type Finding, isOpen, judge, namesAddress, type Policy, rank, scans } from '../core/policy.ts'

interface Deps extends Pick<Basis, 'clock'> {
  policies: Policies
}

/** An e-mail that is about to leave. */
export interface OutgoingEmail {
  owner: IdentityRow
  addresses: readonly string[]
  inReplyTo: string | null
  /** Null where the message could not be read whole, and what was read has none. */
  hasAttachments: boolean | null
  hasLinks: boolean | null
  /** Null when the scan failed; undefined when none was made. */
  found: readonly Found[] | null | undefined
}

/** A text message that is about to leave. */
export interface OutgoingSms {
  owner: IdentityRow
  number: string
  body: string
}

/** A card that is about to be revealed; without an amount, a rule for amounts over any limit matches. */
interface OutgoingCard {
  owner: Pick<IdentityRow, 'id' | 'account_id'>
  amount: number | null
}

/** A login that is about to be revealed. */
interface OutgoingLogin {
  owner: Pick<IdentityRow, 'id' | 'account_id'>
  place: string
}

/** Why something is held. */
export interface Held {
  reasons: HoldReason[]
  found: readonly Found[]
}

/** Who sends: a key, or a person (`key_id` null); null for the box itself. */
export type Sender = Pick<Caller, 'key_id'> | null

/** What policies say: held, refused, or undefined for what may leave. */
export type Verdict = Held | 'refused' | undefined

/** What they say of an e-mail. It goes to the recipients in `own` only while those are addresses of the account. */
export interface EmailVerdict {
  verdict: Verdict
  own: ReadonlySet<string>
}

type LevelPolicy = { level: Level; policy: Policy }

/** What most departures are not. */
const plain: Omit<Departure, 'channel'> = {
  recipients: [],
  hasAttachments: false,
  hasLinks: false,
  found: null,
  newToday: 0,
  amount: null,
}

/** Of an e-mail that may leave wherever it goes. */
const leaves: EmailVerdict = { verdict: undefined, own: new Set() }

/** The one place where policies decide about what leaves. */
export class PolicyCheck {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** True if a policy looks at what is in the e-mails of this sender; undefined if they may leave whatever they are. */
  async scans(reader: Reader, sender: Sender, owner: IdentityRow): Promise<boolean | undefined> {
    return (await this.#closed(reader, sender, owner))?.some(({ policy }) => scans(policy))
  }

  /** Decides about an e-mail, in the transaction that stores or releases it, so that a change of policy is before or after it. */
  async email(tx: Transaction, sender: Sender, message: OutgoingEmail): Promise<EmailVerdict> {
    const { owner, addresses, inReplyTo, hasAttachments, hasLinks, found } = message
    const policies = await this.#closed(tx, sender, owner)
    if (!policies) return leaves
    const withAliases = policies.some(({ policy }) => namesAddress(policy))
    const recipients = await emailRecipients(tx, owner, addresses, { inReplyTo, withAliases })
    const departure = { ...plain, channel: 'email', recipients, hasAttachments, hasLinks } as const
    const verdict = await this.#decide(tx, sender, owner, policies, departure, found ?? null)
    const own = isPerson(sender) ? [] : addresses.filter((_, index) => recipients[index]!.sort === 'own')
    return { verdict, own: new Set(own) }
  }

  /** Decides about a text message, as about an e-mail. */
  async sms(tx: Transaction, sender: Sender, { owner, number, body }: OutgoingSms): Promise<Verdict> {
    const policies = await this.#closed(tx, sender, owner)
    if (!policies) return undefined
    const recipients = [await smsRecipient(tx, owner, number)]
    const found = policies.some(({ policy }) => scans(policy)) ? findingsIn([{ place: 'body', text: body }]) : null
    const departure = { ...plain, channel: 'sms', recipients, hasLinks: mayHaveLink(body, null) } as const
    return this.#decide(tx, sender, owner, policies, departure, found)
  }

  /** Decides about a reveal of a card, as about an e-mail; the caller records what is refused. */
  async card(tx: Transaction, sender: Sender, { owner, amount }: OutgoingCard): Promise<Verdict> {
    const policies = await this.#closed(tx, sender, owner)
    if (!policies) return undefined
    const departure = { ...plain, channel: 'card', amount: amount ?? Infinity } as const
    return this.#decide(tx, sender, owner, policies, departure, null)
  }

  /** Decides about a reveal of a login, as about an e-mail. */
  async login(tx: Transaction, sender: Sender, { owner, place }: OutgoingLogin): Promise<Verdict> {
    const policies = await this.#closed(tx, sender, owner)
    if (!policies) return undefined
    const departure = { ...plain, channel: 'login', isKnownPlace: await isKnownPlace(tx, owner.id, place) } as const
    return this.#decide(tx, sender, owner, policies, departure, null)
  }

  /** Notes that a person approved a reveal of a login of this place: it is known from now on, and counts as no new recipient. */
  async notePlace(tx: Transaction, identityId: string, place: string): Promise<void> {
    await noteContacts(tx, identityId, [placeKey(place)], { first_at: this.#deps.clock.now() - day, approved: true })
  }

  /** Notes that a person approved a message to these: they are known from now on. */
  async noteApproved(
    tx: Transaction,
    owner: Pick<IdentityRow, 'id' | 'account_id'>,
    addresses: readonly string[],
  ): Promise<void> {
    const now = this.#deps.clock.now()
    for (const address of addresses.map(contactKey)) {
      // one that was known before does not count as new
      const first_at = (await sortOf(tx, owner, address)) === 'new' ? now : now - day
      await noteContacts(tx, owner.id, [address], { first_at, approved: true })
    }
  }

  /** Why what a caller sends must be held; undefined when it may leave. Throws Fault forbidden, code `policy_refused`, which says nothing of the rules. */
  admitted(verdict: Verdict): Held | undefined {
    if (verdict !== 'refused') return verdict
    throw new Fault(
      'forbidden',
      'The policy of this account does not let this leave, and a repetition will not either. Ask a person of the account, or whoever runs this box.',
      { code: 'policy_refused' },
    )
  }

  /** The policies of an identity; undefined when all send everything, and for the box itself. */
  async #closed(reader: Reader, sender: Sender, owner: OutgoingCard['owner']): Promise<LevelPolicy[] | undefined> {
    if (sender === null) return undefined
    const policies = await this.#deps.policies.of(reader, owner)
    return policies.every(({ policy }) => isOpen(policy)) ? undefined : policies
  }

  async #decide(
    tx: Transaction,
    sender: Sender,
    owner: OutgoingCard['owner'],
    policies: readonly LevelPolicy[],
    seen: Departure,
    found: readonly Found[] | null,
  ): Promise<Verdict> {
    const { recipients } = seen
    const now = this.#deps.clock.now()
    const departure: Departure = {
      ...seen,
      found: found && new Set<Finding>(found.map(({ kind }) => kind)),
      newToday: recipients.length === 0 ? 0 : await newToday(tx, owner.id, recipients, now),
    }
    const reasons = policies.map(({ level, policy }): HoldReason => ({ level, ...judge(policy, departure) }))
    const strictest = Math.max(...reasons.map(({ action }) => rank(action)))
    if (strictest === rank('refuse')) return 'refused'
    if (strictest === rank('send') || isPerson(sender)) {
      const unknown = recipients.filter(({ sort }) => sort === 'new').map(({ address }) => address)
      await noteContacts(tx, owner.id, unknown, { first_at: now, approved: false })
      return undefined
    }
    return { reasons: reasons.filter(({ action }) => action === 'hold'), found: found ?? [] }
  }
}

/** True for a signed-in person and for the operator on the machine of the box: they look at what they send themselves. */
function isPerson(sender: Sender): boolean {
  return sender?.key_id === null
}
