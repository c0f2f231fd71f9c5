import { canonicalOf } from '../core/address-list.ts'
import { day, iso } from '../core/clock.ts'
import type { IdentityRow } from '../identities/identities.ts'
import { aliasesOf, firstOrLastById, isOwn } from '../mail/address.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import type { Recipient, Sort } from '../core/policy.ts'

/** The recipients of an e-mail as rules see them; `inReplyTo` is the Message-ID that it answers. `withAliases` is for rules for one address. */
export async function emailRecipients(
  reader: Reader,
  owner: IdentityRow,
  addresses: readonly string[],
  { inReplyTo, withAliases }: { inReplyTo: string | null; withAliases: boolean },
): Promise<Recipient[]> {
  const answered = inReplyTo === null ? undefined : await verifiedAuthor(reader, owner.id, inReplyTo)
  const found: Recipient[] = []
  for (const given of addresses) {
    const address = contactKey(given)
    const sort = await sortOf(reader, owner, address)
    const aliases = withAliases ? await aliasesOf(reader, owner, address) : []
    found.push({ address, aliases, sort, isAnswered: answered === address })
  }
  return found
}

/** The recipient of a text message. */
export async function smsRecipient(reader: Reader, { id, account_id }: IdentityRow, number: string): Promise<Recipient> {
  const own = await reader.get(
    sql`SELECT 1 FROM phone_numbers JOIN identities ON identities.id = phone_numbers.identity_id
      WHERE number = ${number} AND phone_numbers.status = 'active' AND identities.account_id = ${account_id}`,
  )
  const sort = own ? 'own' : (await isContact(reader, id, number)) ? 'known' : 'new'
  return { address: number, sort, isAnswered: false }
}

/** True if a person approved a reveal of a login of this place, by this identity. */
export function isKnownPlace(reader: Reader, identityId: string, place: string): Promise<boolean> {
  return isContact(reader, identityId, placeKey(place))
}

/** A place among recipients, none of which is written so. */
export function placeKey(place: string): string {
  return `login:${place}`
}

/** New recipients of an identity within 24 hours, with those of these that were never written to. */
export async function newToday(
  reader: Reader,
  identityId: string,
  recipients: readonly Recipient[],
  now: number,
): Promise<number> {
  const unknown = recipients.filter(({ sort }) => sort === 'new').map(({ address }) => address)
  const row = await reader.get<{ n: number }>(
    sql`SELECT (SELECT count(*) FROM contacts WHERE identity_id = ${identityId} AND first_at > ${iso(now - day)})
      + (SELECT count(*) FROM json_each(${JSON.stringify(unknown)}) AS given
        WHERE NOT EXISTS (SELECT 1 FROM contacts WHERE identity_id = ${identityId} AND address = given.value)) AS n`,
  )
  return row!.n
}

/** The most recipients of an identity that are noted: more than `new_per_day_over` can ask for. */
const maxNoted = 101_000

/** Notes deleted at a time. */
const batch = 500

/** Notes that an identity wrote to these; from an approval on they are known. */
export async function noteContacts(
  tx: Transaction,
  identityId: string,
  addresses: readonly string[],
  { first_at, approved }: { first_at: number; approved: boolean },
): Promise<void> {
  for (const address of addresses) {
    await tx.run(
      sql`INSERT INTO contacts (identity_id, address, first_at, approved) VALUES (${identityId}, ${address}, ${iso(first_at)}, ${approved ? 1 : 0})
        ON CONFLICT (identity_id, address) DO UPDATE SET approved = excluded.approved WHERE contacts.approved < excluded.approved`,
    )
  }
  // what is cancelled takes back its counts, not its notes
  if (addresses.length > 0) await forgetOldest(tx, identityId, addresses.length)
}

/** Deletes the notes of a deleted identity, some at a time. Returns undefined when none is left. */
export async function forgetContacts(tx: Transaction, identityId: string): Promise<number | undefined> {
  const { changes } = await tx.run(
    sql`DELETE FROM contacts WHERE identity_id = ${identityId} AND address IN
      (SELECT address FROM contacts WHERE identity_id = ${identityId} ORDER BY address LIMIT ${batch})`,
  )
  return changes < batch ? undefined : 0
}

/** Deletes as many of the oldest notes, and a few more, where there are more than may be; those that a person approved are deleted after all others. */
async function forgetOldest(tx: Transaction, identityId: string, count: number): Promise<void> {
  const its = sql`FROM contacts WHERE identity_id = ${identityId}`
  for (const approved of [0, 1]) {
    if (!(await tx.get(sql`SELECT 1 ${its} LIMIT 1 OFFSET ${maxNoted}`))) return
    const oldest = sql`SELECT address ${its} AND approved = ${approved} ORDER BY first_at LIMIT ${count + batch}`
    await tx.run(sql`DELETE ${its} AND address IN (${oldest})`)
  }
}

/** What an address, in the spelling of `contactKey`, is to an identity. */
export async function sortOf(
  reader: Reader,
  { id, account_id }: Pick<IdentityRow, 'id' | 'account_id'>,
  address: string,
): Promise<Sort> {
  if (await isOwn(reader, account_id, address)) return 'own'
  if (await isContact(reader, id, address)) return 'known'
  // the conditions of the index emails_by_verified_author; what was set aside, or is spam, makes nobody known
  const wrote = await reader.get(
    sql`SELECT 1 FROM emails WHERE identity_id = ${id} AND lower(from_address) = ${address} AND direction = 'inbound'
      AND verified_domain IS NOT NULL AND octet_length(from_address) <= 1000 AND spam = 0 LIMIT 1`,
  )
  return wrote ? 'known' : 'new'
}

async function isContact(reader: Reader, identityId: string, address: string): Promise<boolean> {
  const row = await reader.get(
    sql`SELECT 1 FROM contacts WHERE identity_id = ${identityId} AND address = ${address} AND approved = 1`,
  )
  return row !== undefined
}

/** Who wrote the message with this Message-ID, if DMARC verified them and it was not set aside. */
async function verifiedAuthor(reader: Reader, identityId: string, messageId: string): Promise<string | undefined> {
  const row = await reader.get<{ from_address: string }>(
    sql`SELECT from_address FROM ${firstOrLastById(identityId, [messageId], 'first')} JOIN emails ON emails.seq = named.seq
      WHERE direction = 'inbound' AND verified_domain IS NOT NULL AND spam = 0`,
  )
  return row && contactKey(row.from_address)
}

/** One spelling for all of an address. */
export function contactKey(address: string): string {
  return canonicalOf(address) ?? address.toLowerCase()
}
