import type { Basis } from '../basis.ts'
import { Fault } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { IdentityRow } from '../identities/identities.ts'
import type { Found } from '../message/findings.ts'
import type { Reader, Transaction } from '../store/database.ts'
import { emailRecipients, newToday, noteContacts } from './contacts.ts'
import type { HoldReason } from './model.ts'
import type { Policies } from './policies.ts'
import { type Departure, type Finding, isOpen, judge, rank, scans } from '../core/policy.ts'

interface Deps extends Pick<Basis, 'clock'> {
  policies: Policies
}

/** An e-mail that is about to leave. */
export interface OutgoingEmail {
  owner: IdentityRow
  addresses: readonly string[]
  inReplyTo: string | null
  hasAttachments: boolean
  hasLinks: boolean
  /** Null when the scan failed; undefined when none was made. */
  found: readonly Found[] | null | undefined
}

/** Why something is held. */
export interface Held {
  reasons: HoldReason[]
  found: readonly Found[]
}

/** The one place where policies decide about what leaves. */
export class PolicyCheck {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** True if a policy looks at what is in the messages of an identity. */
  async scans(reader: Reader, owner: IdentityRow): Promise<boolean> {
    return (await this.#deps.policies.of(reader, owner)).some(({ policy }) => scans(policy))
  }

  /**
   * Decides about an e-mail in the transaction that stores it, so that a change of policy is before or after it. Returns why it must be held; undefined
   * when it may leave. Throws Fault forbidden, code `policy_refused`, which says nothing of the rules.
   */
  async email(tx: Transaction, caller: Caller | null, message: OutgoingEmail): Promise<Held | undefined> {
    // the box itself
    if (caller === null) return undefined
    const { owner, addresses, inReplyTo, hasAttachments, hasLinks, found } = message
    const policies = await this.#deps.policies.of(tx, owner)
    if (policies.every(({ policy }) => isOpen(policy))) return undefined
    const now = this.#deps.clock.now()
    const recipients = await emailRecipients(tx, owner, addresses, inReplyTo)
    const departure: Departure = {
      channel: 'email',
      recipients,
      hasAttachments,
      hasLinks,
      found: found ? new Set<Finding>(found.map(({ kind }) => kind)) : null,
      newToday: await newToday(tx, owner.id, recipients, now),
      amount: null,
    }
    const reasons = policies.map(({ level, policy }): HoldReason => ({ level, ...judge(policy, departure) }))
    const strictest = Math.max(...reasons.map(({ action }) => rank(action)))
    if (strictest === rank('refuse')) throw refused()
    const unknown = recipients.filter(({ sort }) => sort === 'new').map(({ address }) => address)
    await noteContacts(tx, owner.id, unknown, { now, approved: false })
    if (strictest === rank('send') || isPerson(caller)) return undefined
    return { reasons: reasons.filter(({ action }) => action === 'hold'), found: found ?? [] }
  }
}

/** True for a signed-in person and for the operator on the machine of the box: they look at what they send themselves. */
function isPerson({ key_id }: Caller): boolean {
  return key_id === null
}

function refused(): Fault {
  return new Fault(
    'forbidden',
    'The policy of this account does not let this leave, and a repetition will not either. Ask a person of the account, or whoever runs this box.',
    { code: 'policy_refused' },
  )
}
