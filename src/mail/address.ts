import { type Reader, sql, type Sql } from '../store/database.ts'
import { domainNameOf } from '../core/domain-names.ts'
import { type Email, isVouchedFor } from './model.ts'

/** An address of ours, taken apart: `ada+news@box.test` → local `ada`, tag `news`. The domain is lower-case ASCII. */
export interface ParsedAddress {
  local: string
  tag: string | null
  domain: string
}

/** Takes apart what `RCPT TO` named; bare `postmaster` is that of the default domain (RFC 5321 4.5.1). */
export function mailbox(address: string, defaultDomain: string): ParsedAddress {
  const at = address.lastIndexOf('@')
  // other letters are no spelling of ASCII ones (U+212A is no k), here as where mail is sent
  const whole = (at < 0 ? address : address.slice(0, at)).replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
  const domain = at < 0 ? defaultDomain : address.slice(at + 1).toLowerCase()
  const plus = whole.indexOf('+')
  return plus < 1 ? { local: whole, tag: null, domain } : { local: whole.slice(0, plus), tag: whole.slice(plus + 1), domain }
}

/** The mailboxes that every domain has, for its operator (RFC 5321 4.5.1, RFC 2142). */
export const operatorMailboxes: ReadonlySet<string> = new Set(['postmaster', 'abuse'])

/** Message-IDs of one message that are looked for. */
const maxIds = 51

/**
 * A table `named` of the first or the last e-mail (`seq`) of an identity under each of these Message-IDs. It takes one row for each, as strangers can
 * send any number under one. The first under a Message-ID of our own making is the one we made.
 */
export function oneOfEach(identityId: string, messageIds: readonly string[], which: 'first' | 'last'): Sql {
  const order = which === 'first' ? sql`ASC` : sql`DESC`
  return sql`(SELECT (SELECT seq FROM emails WHERE identity_id = ${identityId} AND message_id = ids.value ORDER BY seq ${order} LIMIT 1) AS seq
    FROM json_each(${JSON.stringify(messageIds.slice(-maxIds))}) AS ids) AS named`
}

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
