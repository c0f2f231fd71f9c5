import { openStore } from './open-store.ts'
import { join } from 'node:path'
import { keyHash, newKey } from '../../src/accounts/secret.ts'
import { newId } from '../../src/core/ids.ts'
import { scopes } from '../../src/core/scopes.ts'
import type { Appliance } from './appliance.ts'

/** A key with every scope of an account, one that nobody else has unless said; written straight into the store. */
export function accountKey(box: Appliance, account = newId('acct')): string {
  const key = newKey()
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  database
    .prepare(
      `INSERT INTO api_keys (id, account_id, label, scopes, key_prefix, hash, rate_limit, created_at)
        VALUES (?, ?, 'other', ?, ?, ?, 0, ?)`,
    )
    .run(newId('key'), account, JSON.stringify(scopes), key.slice(0, 12), keyHash(key), new Date().toISOString())
  database.close()
  return key
}
