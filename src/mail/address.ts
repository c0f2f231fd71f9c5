import { type Reader, sql, type Sql } from '../store/database.ts'
import { domainNameOf } from '../core/domain-names.ts'
import { type Email, isVouchedFor } from './model.ts'

/** A parsed local address: `ada+news@box.test` → local `ada`, tag `news`. The domain is lower-case ASCII. */
export interface ParsedAddress {
  local: string
  tag: string | null
  domain: string
}

/** Parses a recipient address. Bare `postmaster` belongs to the default domain (RFC 5321 4.5.1). */
export function mailbox(address: string, defaultDomain: string): ParsedAddress {
  const at = address.lastIndexOf('@')
  // only ASCII letters are lower-cased (U+212A is not a k), as for outgoing mail
  const whole = (at < 0 ? address : address.slice(0, at)).replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
  const domain = at < 0 ? defaultDomain : address.slice(at + 1).toLowerCase()
  const plus = whole.indexOf('+')
  return plus < 1 ? { local: whole, tag: null, domain } : { local: whole.slice(0, plus), tag: whole.slice(plus + 1), domain }
}

/** The operator mailboxes of every domain (RFC 5321 4.5.1, RFC 2142). */
export const operatorMailboxes: ReadonlySet<string> = new Set(['postmaster', 'abuse'])

/** Message-IDs of one message that are looked up. */
const maxIds = 51

/**
 * A table `named` of the first or the last e-mail (`seq`) of an identity with each of these Message-IDs. One row for each, as outsiders can send
 * any number of messages with the same one. The first message with a Message-ID generated here is our own.
 */
export function firstOrLastById(identityId: string, messageIds: readonly string[], which: 'first' | 'last'): Sql {
  const order = which === 'first' ? sql`ASC` : sql`DESC`
  return sql`(SELECT (SELECT seq FROM emails WHERE identity_id = ${identityId} AND message_id = ids.value ORDER BY seq ${order} LIMIT 1) AS seq
    FROM json_each(${JSON.stringify(messageIds.slice(-maxIds))}) AS ids) AS named`
}

/** The account that receives what comes for an address; null where it is of a domain of the box and nobody's, undefined where it is at another server. */
async function accountOf(reader: Reader, address: string): Promise<string | null | undefined> {
  const { local, domain: spelled } = mailbox(address, '')
  const domain = domainNameOf(spelled) ?? spelled
  const known = await reader.get<{ catch_all: string | null }>(
    sql`SELECT catch_all FROM domains WHERE name = ${domain} AND receives = 1`,
  )
  if (!known) return undefined
  const owner = await reader.get<{ account_id: string }>(
    sql`SELECT account_id FROM addresses JOIN identities ON identities.id = addresses.identity_id WHERE address = ${`${local}@${domain}`}
      UNION ALL SELECT account_id FROM identities WHERE id = ${known.catch_all} LIMIT 1`,
  )
  return owner?.account_id ?? null
}

/**
 * The other addresses of the mailbox of an address: without its tag, where its domain is of this box, and all of its identity, where that is of this
 * account (those of others are nobody's concern).
 */
export async function aliasesOf(reader: Reader, { account_id }: { account_id: string }, address: string): Promise<string[]> {
  const { local, domain } = mailbox(address, '')
  if (!(await reader.get(sql`SELECT 1 FROM domains WHERE name = ${domain} AND receives = 1`))) return []
  const base = `${local}@${domain}`
  const owner = await reader.get<{ id: string; email: string }>(
    sql`SELECT id, email FROM addresses JOIN identities ON identities.id = addresses.identity_id WHERE address = ${base} AND account_id = ${account_id}`,
  )
  if (!owner) return [base]
  const aliases = await reader.all<{ address: string }>(
    sql`SELECT address FROM addresses WHERE identity_id = ${owner.id} AND alias_id IS NOT NULL`,
  )
  return [base, owner.email, ...aliases.map((alias) => alias.address)]
}

/** True if an address is outside of this account: at another server, or of another account of this box. */
export async function isExternal(reader: Reader, accountId: string, address: string): Promise<boolean> {
  const account = await accountOf(reader, address)
  return account === undefined || (account !== null && account !== accountId)
}

/** True if what is sent to an address comes to this account, and to nobody else. */
export async function isOwn(reader: Reader, accountId: string, address: string): Promise<boolean> {
  return (await accountOf(reader, address)) === accountId
}

/**
 * True if a message answers one that an identity sent to its author: DMARC verifies the author, and covers the field that names it.
 */
export async function isAnswer(
  reader: Reader,
  identityId: string,
  {
    from,
    verified_domain,
    authentication,
    in_reply_to,
  }: { from: string } & Pick<Email, 'verified_domain' | 'in_reply_to'> & {
      authentication: NonNullable<Email['authentication']>
    },
): Promise<boolean> {
  if (verified_domain === null || in_reply_to === null || !isVouchedFor(authentication, 'in-reply-to')) return false
  // what is held, was rejected or cancelled has not left; imported messages, which have no trace, were not sent from here
  const sent = await reader.get(
    sql`SELECT 1 FROM ${firstOrLastById(identityId, [in_reply_to], 'first')} JOIN emails ON emails.seq = named.seq
      JOIN email_recipients ON email_id = emails.id WHERE direction = 'outbound' AND trace <> '' AND attempts > 0 AND lower(address) = lower(${from})`,
  )
  return sent !== undefined
}

/**
 * True if a message that was just stored is a reply to one that its owner sent: from outside of the account, verified (DMARC pass, which also
 * covers the reference fields), not generated by a program, and the first from this author in the conversation.
 */
export async function isReply(reader: Reader, accountId: string, email: Email): Promise<boolean> {
  if (email.verified_domain === null || email.spam || email.automated) return false
  const vouched = (field: string): boolean => email.authentication !== null && isVouchedFor(email.authentication, field)
  const named = [
    ...(vouched('in-reply-to') ? [email.in_reply_to] : []),
    ...(vouched('references') ? email.references.slice(-50) : []),
  ]
  const ids = [...new Set(named)].filter((id) => id !== null)
  if (ids.length === 0 || !(await isExternal(reader, accountId, email.from))) return false
  // imported messages were not sent from here: they have no trace with date and signatures
  const ours = await reader.get(
    sql`SELECT 1 FROM ${firstOrLastById(email.identity_id, ids, 'first')} JOIN emails ON emails.seq = named.seq WHERE direction = 'outbound' AND trace <> ''`,
  )
  if (!ours) return false
  // the conditions of the index emails_by_author; both sides are lower-cased by SQLite
  const before = await reader.get(
    sql`SELECT 1 FROM emails WHERE thread_id = ${email.thread_id} AND lower(from_address) = lower(${email.from})
      AND direction = 'inbound' AND octet_length(from_address) <= 1000 AND id <> ${email.id} LIMIT 1`,
  )
  return before === undefined
}
