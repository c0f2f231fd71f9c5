import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { keyHash } from '../../src/accounts/secret.ts'
import { iso } from '../../src/core/clock.ts'
import { newId } from '../../src/core/ids.ts'
import { openStore, type Store } from '../support/open-store.ts'

/** A reader, who has no password. */
export function plantedPerson(database: Store, account: string): string {
  const id = newId('person')
  const email = `${id}@example.com`
  const now = iso(Date.now())
  database
    .prepare(
      `INSERT INTO logins (id, account_id, role, email, email_folded, password, created_at, changed_at) VALUES (?, ?, 'reader', ?, ?, '', ?, ?)`,
    )
    .run(id, account, email, email, now, now)
  return id
}

export function plantedInvitation(database: Store, account: string): { id: string; token: string } {
  const id = newId('inv')
  const token = randomBytes(32).toString('base64url')
  const now = Date.now()
  database
    .prepare(
      `INSERT INTO invitations (id, account_id, email, role, hash, created_at, expires_at) VALUES (?, ?, ?, 'reader', ?, ?, ?)`,
    )
    .run(id, account, `${id}@example.com`, keyHash(token), iso(now), iso(now + 3_600_000))
  return { id, token }
}

/** Of the first owner of the hold's account. */
export function plantedHoldLink(database: Store, holdId: string): string {
  const token = randomBytes(32).toString('base64url')
  database
    .prepare(
      `INSERT INTO hold_links (hash, hold_id, person_id, sha256, expires_at) SELECT ?, holds.id, logins.id, sha256, expires_at
        FROM holds JOIN logins ON logins.account_id = holds.account_id AND role = 'owner' WHERE holds.id = ? ORDER BY logins.seq LIMIT 1`,
    )
    .run(keyHash(token), holdId)
  return token
}

/**
 * The password that the account was made with is forgotten for it. The box may be in the middle of a transaction, which cannot end while
 * this thread waits for it: so it is tried again, and not waited for.
 */
export async function plantedLink(file: string, account: string): Promise<string> {
  const token = randomBytes(32).toString('base64url')
  const hash = createHash('sha256').update(token).digest('base64url')
  const expires_at = iso(Date.now() + 3_600_000)
  const database = openStore(file, { timeout: 0 })
  for (let tries = 0; ; tries += 1) {
    try {
      database.exec(`BEGIN IMMEDIATE; DELETE FROM logins WHERE account_id = '${account}'; DELETE FROM setup_links WHERE account_id = '${account}';
        INSERT INTO setup_links VALUES ('${account}', '${hash}', '${expires_at}'); COMMIT`)
      break
    } catch (error) {
      if (tries === 200 || !String(error).includes('locked')) throw error
      await sleep(20)
    }
  }
  database.close()
  return token
}
