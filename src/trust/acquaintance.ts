import { Fault } from '../core/fault.ts'
import { type Caller, may } from '../core/scopes.ts'
import { type Database, sql, type Sql } from '../store/database.ts'

interface Acquaintance {
  /** Messages from it with a DMARC pass that were not spam, counted up to 20; otherwise why they were not counted. */
  proven: number | 'not_allowed' | 'too_slow'
  /** Why the address is suppressed, if so and the key may know. */
  suppressed: 'manual' | 'bounce' | 'complaint' | undefined
}

/** The count at which counting stops. */
const enough = 20

/** The timeout for counting in a large mailbox, in milliseconds. */
const timeout = 3000

/** The history of the caller's account with an address (its domain in ASCII, all in lower case), as far as this key may read. */
export async function acquaintanceOf(database: Database, caller: Caller, address: string): Promise<Acquaintance> {
  const { account_id, identity_id } = caller
  const bound = identity_id === null ? sql`` : sql` AND identities.id = ${identity_id}`
  const messagesQuery = sql`SELECT 1 FROM identities CROSS JOIN emails WHERE emails.identity_id = identities.id AND identities.account_id = ${account_id}
    AND identities.status <> 'deleted'${bound} AND direction = 'inbound' AND lower(from_address) = ${address}
    AND verified_domain IS NOT NULL AND spam = 0 AND duplicate_of IS NULL LIMIT ${enough}`
  const proven = may(caller, ['messages:read', 'emails:read'])
    ? await counted(database, account_id, messagesQuery)
    : 'not_allowed'
  const listed =
    may(caller, ['account:read']) && identity_id === null
      ? await database.get<{ source: 'manual' | 'bounce' | 'complaint' }>(
          sql`SELECT source FROM suppressions WHERE account_id = ${account_id} AND email = ${address}`,
        )
      : undefined
  return { proven, suppressed: listed?.source }
}

/** The number of messages that the query returns, or `too_slow` after the timeout. */
async function counted(database: Database, accountId: string, messagesQuery: Sql): Promise<number | 'too_slow'> {
  try {
    return (await database.slow(messagesQuery, timeout, accountId)).length
  } catch (error) {
    if (error instanceof Fault && error.code === 'too_slow') return 'too_slow'
    throw error
  }
}
