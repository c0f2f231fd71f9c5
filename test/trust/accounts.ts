import { openStore } from '../support/open-store.ts'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { keyHash, newKey } from '../../src/accounts/secret.ts'
import { iso } from '../../src/core/clock.ts'
import { newId } from '../../src/core/ids.ts'
import { type Scope, scopes } from '../../src/core/scopes.ts'
import type { Appliance, Call } from '../support/appliance.ts'

/** An identity of some account, perhaps with its agent. */
export interface Somebody {
  id: string
  email: string
  agent: { id: string; did: string; handle: string }
}

/** One more account of the box, as its operator would add it; answers how it calls. */
export async function anotherAccount(box: Appliance, held: readonly Scope[] = scopes): Promise<Call> {
  const key = newKey()
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  database
    .prepare(
      `INSERT INTO api_keys (id, account_id, label, scopes, key_prefix, hash, rate_limit, created_at) VALUES (?, ?, 'another', ?, ?, ?, 0, ?)`,
    )
    .run(newId('key'), newId('acct'), JSON.stringify(held), key.slice(0, 12), keyHash(key), iso(Date.now()))
  database.close()
  const call: Call = (method, path, body, options) => box.call(method, path, body, { key, ...options })
  // the box sees what others write with its own next commit at the latest
  for (let tries = 0; tries < 100 && (await call('GET', '/v1/identities')).status === 401; tries += 1) await sleep(20)
  return call
}

export async function somebody(call: Call, name: string): Promise<Somebody> {
  const { body: identity } = await call('POST', '/v1/identities', { name })
  const { body: agent } = await call('POST', '/v1/agents', { identity_id: identity.id, handle: name.toLowerCase() })
  return { id: identity.id, email: identity.email, agent: { id: agent.id, did: agent.did, handle: agent.handle } }
}
