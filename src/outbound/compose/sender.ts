import { invalid } from '../../core/fault.ts'
import type { Identities, IdentityRow } from '../../identities/identities.ts'
import type { Email } from '../../mail/model.ts'
import { domainOf, reachable, recipientAddress } from './recipients.ts'

/** An address as the box keeps its own: ASCII in lower case, the domain as the DNS writes it. Other letters are not equal to ASCII ones. */
export function canonical(address: string): string {
  const local = address.slice(0, Math.max(0, address.lastIndexOf('@')))
  return `${local}@${domainOf(address)}`.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** The address as the box keeps it, without a tag. */
export function mailboxOf(address: string): string {
  const whole = canonical(address)
  const at = whole.lastIndexOf('@')
  const plus = whole.indexOf('+')
  return plus < 1 || plus > at ? whole : `${whole.slice(0, plus)}${whole.slice(at)}`
}

/**
 * True if an identity may send from an address, that is, receives its mail. Addresses with invisible characters, which look like another, are
 * refused.
 */
export async function maySendFrom(identities: Identities, owner: Pick<IdentityRow, 'id'>, address: string): Promise<boolean> {
  return reachable({ address, name: '' }) !== undefined && (await identities.ownerOf(mailboxOf(address)))?.id === owner.id
}

/**
 * The sender address of a message: `input`, else the address at which the answered message arrived or from which it was sent, if that belongs to
 * the identity, else its own. Throws Fault invalid_request, `sender_not_allowed`, when `input` does not belong to it.
 */
export async function senderOf(
  identities: Identities,
  owner: IdentityRow,
  input: string | undefined,
  answered?: Pick<Email, 'direction' | 'from' | 'to'>,
): Promise<string> {
  if (input !== undefined) {
    const address = canonical(recipientAddress(input, 'from').address)
    if (await maySendFrom(identities, owner, address)) return address
    const who = `${owner.email}, its aliases, and the addresses of a domain whose catch-all it is`
    throw invalid('from', `${address} is not an address of this identity. It can send from ${who}.`, 'sender_not_allowed')
  }
  if (!answered) return owner.email
  const address = mailboxOf(answered.direction === 'inbound' ? answered.to : answered.from)
  return (await maySendFrom(identities, owner, address)) ? address : owner.email
}
