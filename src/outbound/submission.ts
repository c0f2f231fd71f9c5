import type { Caller } from '../core/scopes.ts'
import type { LoginResult, SubmissionAuth } from '../smtp/delivery-target.ts'
import { largestMessage, maxRecipients } from './model.ts'
import { canonical } from './compose/sender.ts'
import { refusal, type SubmissionDeps, SubmissionLogin } from './submission-auth.ts'

/** What our own fields may add to a message, in octets. */
const room = 4096

/**
 * Who may hand in mail by SMTP (RFC 6409): an identity by its address or an alias, with an API key that may send as it. What is wrong with a name or
 * key is for the log alone.
 */
export class Submission implements SubmissionAuth {
  readonly size = largestMessage - room
  readonly max_recipients = maxRecipients
  readonly #parts: SubmissionDeps

  constructor(parts: SubmissionDeps) {
    this.#parts = parts
  }

  async authenticate(user: string, password: string, address: string): Promise<LoginResult> {
    const { keys, identities } = this.#parts
    // before it is known whether there is such a name, so that the time tells nothing
    const holder = await keys.authenticate(password)
    const owner = await identities.named(canonical(user))
    if (!owner || owner.status === 'deleted') return { deliveryTarget: null, who: null, why: 'no such identity' }
    const why = refusal(owner, holder)
    if (why !== null || !holder) return { deliveryTarget: null, who: owner.email, why: why ?? 'no such key' }
    const caller: Caller = { ...holder, ip: address, user_agent: 'smtp' }
    return { deliveryTarget: new SubmissionLogin(this.#parts, { caller, owner }), who: owner.email }
  }
}
