import { sql } from '../store/database.ts'
import type { Sql } from '../store/database.ts'

/** Message-IDs of one message that are looked for. */
const mostIds = 51

/**
 * A table `named` of the first or the last e-mail (`seq`) of an identity under each of these Message-IDs. It takes one row for each, as strangers can
 * send any number under one. The first under a Message-ID of our own making is the one we made.
 */
export function oneOfEach(identityId: string, messageIds: readonly string[], which: 'first' | 'last'): Sql {
  const order = which === 'first' ? sql`ASC` : sql`DESC`
  return sql`(SELECT (SELECT seq FROM emails WHERE identity_id = ${identityId} AND message_id = ids.value ORDER BY seq ${order} LIMIT 1) AS seq
    FROM json_each(${JSON.stringify(messageIds.slice(-mostIds))}) AS ids) AS named`
}
