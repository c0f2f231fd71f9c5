import type { Caller } from '../core/scopes.ts'
import type { LoginResult, SubmissionAuth } from '../smtp/delivery-target.ts'
import { largestMessage, maxRecipients } from './model.ts'
import { canonical } from './compose/sender.ts'
import { refusal, type SubmissionDeps, SubmissionLogin } from './submission-auth.ts'

/** Bytes that our own header fields may add to a message. */
const maxAddedBytes = 4096

/**
 * Authentication of message submission (RFC 6409): the user is an address or alias of an identity, the password an API key that may send as it. The
 * reason of a failure is only logged.
 */
export class Submission implements SubmissionAuth {
  readonly size = largestMessage - maxAddedBytes
  readonly max_recipients = maxRecipients
  readonly #deps: SubmissionDeps

  constructor(deps: SubmissionDeps) {
    this.#deps = deps
  }

  async authenticate(user: string, password: string, address: string): Promise<LoginResult> {
    const { keys, identities } = this.#deps
    // before the name is looked up, so that the time does not reveal whether it exists
    const holder = await keys.authenticate(password)
    const owner = await identities.named(canonical(user))
    if (!owner || owner.status === 'deleted') return { deliveryTarget: null, who: null, why: 'no such identity' }
    const why = refusal(owner, holder)
    if (why !== null || !holder) return { deliveryTarget: null, who: owner.email, why: why ?? 'no such key' }
    const caller: Caller = { ...holder, ip: address, user_agent: 'smtp' }
    return { deliveryTarget: new SubmissionLogin(this.#deps, { caller, owner }), who: owner.email }
  }
}
