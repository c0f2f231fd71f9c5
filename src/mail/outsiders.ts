import { domainNameOf } from '../core/domain-names.ts'
import { sql } from '../store/database.ts'
import type { Reader } from '../store/database.ts'
import { mailbox } from './address.ts'
import { isVouchedFor } from './model.ts'
import type { Email } from './model.ts'
import { oneOfEach } from './named.ts'

/** Whether an address is somebody else's than this account's: at another server, or of another account of this box. */
export async function isOutside(reader: Reader, accountId: string, address: string): Promise<boolean> {
  const { local, domain: spelled } = mailbox(address, '')
  const domain = domainNameOf(spelled) ?? spelled
  if (!(await reader.get(sql`SELECT 1 FROM domains WHERE name = ${domain} AND receives = 1`))) return true
  const owner = await reader.get<{ account_id: string }>(
    sql`SELECT account_id FROM addresses JOIN identities ON identities.id = addresses.identity_id WHERE address = ${`${local}@${domain}`}`,
  )
  return owner !== undefined && owner.account_id !== accountId
}

/**
 * Whether a message that was just kept answers one that its owner sent: by somebody outside of the account whose domain vouched for them
 * (a DMARC pass) and for what they say they answer, no program, and for the first time in this conversation.
 */
export async function isAnswer(reader: Reader, accountId: string, email: Email): Promise<boolean> {
  if (email.verified_domain === null || email.spam || email.automated) return false
  const vouched = (field: string): boolean => email.authentication !== null && isVouchedFor(email.authentication, field)
  const named = [
    ...(vouched('in-reply-to') ? [email.in_reply_to] : []),
    ...(vouched('references') ? email.references.slice(-50) : []),
  ]
  const ids = [...new Set(named)].filter((id) => id !== null)
  if (ids.length === 0 || !(await isOutside(reader, accountId, email.from))) return false
  // what was imported did not leave here: it has no date and signatures of ours
  const ours = await reader.get(
    sql`SELECT 1 FROM ${oneOfEach(email.identity_id, ids, 'first')} JOIN emails ON emails.seq = named.seq WHERE direction = 'outbound' AND trace <> ''`,
  )
  if (!ours) return false
  const before = await reader.get(
    sql`SELECT 1 FROM emails WHERE thread_id = ${email.thread_id} AND id <> ${email.id} AND direction = 'inbound'
      AND lower(from_address) = ${email.from.toLowerCase()} LIMIT 1`,
  )
  return before === undefined
}
