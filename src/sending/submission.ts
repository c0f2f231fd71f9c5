import type { Caller } from '../core/scopes.ts'
import type { Entry, Gate } from '../mail/mailroom.ts'
import { largestMessage, mostRecipients } from './model.ts'
import { canonical } from './sender.ts'
import { refusal, Submitter } from './submitter.ts'
import type { SubmissionParts } from './submitter.ts'

/** What our own fields may add to a message, in octets. */
const room = 4096

/**
 * Who may hand in mail by SMTP (RFC 6409): an identity by its address or an alias, with an API key that may send as it. What is wrong with a name or
 * key is for the log alone.
 */
export class Submission implements Gate {
  readonly size = largestMessage - room
  readonly max_recipients = mostRecipients
  readonly #parts: SubmissionParts

  constructor(parts: SubmissionParts) {
    this.#parts = parts
  }

  async enter(user: string, password: string, address: string): Promise<Entry> {
    const { keys, identities } = this.#parts
    // before it is known whether there is such a name, so that the time tells nothing
    const holder = await keys.authenticate(password)
    const owner = await identities.named(canonical(user))
    if (!owner || owner.status === 'deleted') return { mailroom: null, who: null, why: 'no such identity' }
    const why = refusal(owner, holder)
    if (why !== null || !holder) return { mailroom: null, who: owner.email, why: why ?? 'no such key' }
    const caller: Caller = { ...holder, ip: address, user_agent: 'smtp' }
    return { mailroom: new Submitter(this.#parts, { caller, owner }), who: owner.email }
  }
}
