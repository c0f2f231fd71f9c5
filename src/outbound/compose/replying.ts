import { conflict, invalid } from '../../core/fault.ts'
import type { EmailDetail, StoredEmail } from '../../mail/email-rows.ts'
import { type Address, type Email, isVouchedFor } from '../../mail/model.ts'
import type { Draft } from './compose.ts'
import { reachable, sameMailbox } from './recipients.ts'

/** A message that another one refers to. */
export interface Original {
  email: Email
  row: StoredEmail
}

/** Message-IDs in a References field: the first of the conversation, and the latest. */
const maxReferences = 21

/** The references of a message to the one it answers or forwards (RFC 5322 3.6.4). */
export function referencesTo({ email }: Original): Pick<Draft, 'in_reply_to' | 'references' | 'thread_id'> {
  const earlier = email.references.length > 0 ? email.references : [email.in_reply_to ?? []].flat()
  const chain = [...new Set([...earlier, ...[email.message_id ?? []].flat()])].filter((id) => writable.test(id))
  const references = chain.length > maxReferences ? [...chain.slice(0, 1), ...chain.slice(1 - maxReferences)] : chain
  const inReplyTo = email.message_id !== null && writable.test(email.message_id) ? email.message_id : null
  return { in_reply_to: inReplyTo, references, thread_id: email.thread_id }
}

/** The Auto-Submitted of a reply: a reply to an automatic message is automatic too (RFC 3834 3.1.7). Throws Fault when the caller sets `no`. */
export function automaticAnswer({ email }: Original, input: Draft['auto_submitted']): Draft['auto_submitted'] {
  if (email.direction === 'outbound' || !email.automated) return input
  if (input !== 'no') return 'auto-replied'
  throw invalid('auto_submitted', 'A reply to an automatic message is auto-replied; leave auto_submitted out.')
}

/**
 * The recipients of a reply: the author, or for an own message its recipients, and `others`. Throws Fault conflict when there is none: the null
 * sender, a bounce, an invalid address.
 *
 * A Reply-To that the verified author did not sign is not followed unless `unsigned` are allowed (RFC 6376 8.15: anyone may add one to a signed
 * message). The reply then goes to the verified author, so that none is lost and none goes to a forger; the response names the recipients. The
 * other recipients have no such second address, so unsigned ones are a conflict.
 */
export function replyRecipients(
  original: Original,
  others: { to: Address[]; cc: Address[] },
  unsigned: boolean,
): { to: Address[]; cc: Address[] } {
  const { email, row } = original
  if (email.direction === 'outbound') return { to: reachables(email.recipients.to), cc: reachables(others.cc) }
  const { mail_from } = JSON.parse(row.detail) as EmailDetail
  if (mail_from === '') {
    throw conflict('This message has a null sender: it is a bounce or notification, and must not be replied to (RFC 3834 2).', {
      code: 'null_sender',
    })
  }
  if (!unsigned) requireSigned(email, others)
  const replyTo = unsigned || email.reply_to_verified !== false ? email.reply_to : null
  const name = replyTo === null || sameMailbox(replyTo, email.from) ? email.from_name : ''
  const author = reachable({ address: replyTo ?? email.from, name })
  if (!author) throw conflict('This message has no address to reply to.', { code: 'no_reply_address' })
  const isAuthor = ({ address }: Address): boolean => sameMailbox(address, author.address)
  const rest = (list: Address[]): Address[] => reachables(list).filter((one) => !isAuthor(one))
  return { to: [author, ...rest(others.to)], cc: rest(others.cc) }
}

function requireSigned({ authentication, verified_domain }: Email, others: { to: Address[]; cc: Address[] }): void {
  if (authentication === null || verified_domain === null) return
  for (const field of ['to', 'cc'] as const) {
    if (others[field].length === 0 || isVouchedFor(authentication, field)) continue
    const title = field === 'to' ? 'To' : 'Cc'
    throw conflict(
      `The ${title} of this message is not signed by ${verified_domain}: a forwarder may have added addresses. Reply without reply_all and name them in cc, or set allow_unsigned.`,
      { code: 'unsigned_recipients' },
    )
  }
}

function reachables(list: Address[]): Address[] {
  return list.flatMap((one) => reachable(one) ?? [])
}

const writable = /^<[!-;=?-~]{1,900}>$/
