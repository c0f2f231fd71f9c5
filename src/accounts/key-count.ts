import { type Clock, iso } from '../core/clock.ts'
import { sql, type Sql } from '../store/database.ts'

/** Counts the active keys of an account: neither revoked nor expired, nor bound to a deleted identity. */
export function keyCount(clock: Clock): (accountId: string) => Sql {
  return (accountId) =>
    sql`SELECT count(*) AS n FROM api_keys WHERE account_id = ${accountId} AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > ${iso(clock.now())}) AND (identity_id IS NULL OR EXISTS
      (SELECT 1 FROM identities WHERE identities.id = api_keys.identity_id AND identities.status <> 'deleted'))`
}
