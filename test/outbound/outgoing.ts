import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { openStore, type Store } from '../support/open-store.ts'
import type { Seal } from '../../src/core/seal/seal.ts'
import type { Email } from '../../src/mail/model.ts'
import { type Answer, appliance, type Appliance, openAppliance } from '../support/appliance.ts'
import type { HeldClock } from '../support/held-clock.ts'

/** A box with two identities, ada@pillarbox.test and bob@pillarbox.test. */
export interface Pair {
  box: Appliance
  ada: { id: string; email: string }
  bob: { id: string; email: string }
}

export async function pair(env: Record<string, string> = {}, clock?: HeldClock): Promise<Pair> {
  const box = await appliance(env, clock)
  return { box, ada: await living(box, 'Ada'), bob: await living(box, 'Bob') }
}

/** The same for all tests of a file, which must close it. */
export async function openPair(env: Record<string, string> = {}): Promise<{ world: Pair; close: () => Promise<void> }> {
  const { box, close } = await openAppliance(env)
  return { world: { box, ada: await living(box, 'Ada'), bob: await living(box, 'Bob') }, close }
}

export async function living(box: Appliance, name: string): Promise<{ id: string; email: string }> {
  const { body } = await box.call('POST', '/v1/identities', { name })
  return { id: body.id as string, email: body.email as string }
}

/** As if the DNS of the box's own domain had been found to be right; the box is restarted. */
export async function verified({ box }: Pair): Promise<void> {
  database(box, (db) => db.exec(`UPDATE domains SET status = 'verified', verified_at = '2026-11-20T00:00:00.000Z'`))
  await box.restart()
}

/** Runs on the box's own file. */
export function database<T>(box: Appliance, work: (db: Store) => T): T {
  const db = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  try {
    return work(db)
  } finally {
    db.close()
  }
}

/** Sends; answers the answer. */
export function send(
  { box, ada }: Pair,
  input: Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<Answer<Email & { error: Record<string, string> }>> {
  return box.call('POST', `/v1/identities/${ada.id}/emails`, input, { headers })
}

/** The octets that leave, as latin1. */
export async function source({ box, ada }: Pair, id: string, owner = ada.id): Promise<string> {
  const url = `${box.url}/v1/identities/${owner}/emails/${id}/raw`
  const answer = await fetch(url, { headers: { Authorization: `Bearer ${box.key}` } })
  return Buffer.from(await answer.arrayBuffer()).toString('latin1')
}

/** The unfolded value of a header field of a message; undefined when there is none. */
export function field(message: string, name: string): string | undefined {
  const head = message.slice(0, message.indexOf('\r\n\r\n') + 2).replaceAll(/\r\n(?=[ \t])/g, '')
  const found = head.split('\r\n').find((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`))
  return found?.slice(name.length + 1).trim()
}

/** Puts the keys of a domain into a box that is stopped or has not used them yet; answers the TXT records that publish them. */
export function plantKeys(box: Appliance, seal: Seal, domain: string): { name: string; value: string }[] {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const ed25519 = generateKeyPairSync('ed25519').privateKey
  return database(box, (db) => {
    const { id } = db.prepare('SELECT id FROM domains WHERE name = ?').get(domain) as { id: string }
    db.prepare('DELETE FROM dkim_keys WHERE domain_id = ?').run(id)
    const insert = db.prepare(
      `INSERT INTO dkim_keys (domain_id, selector, algorithm, private_key, public_text, state, created_at, activated_at)
        VALUES (?, ?, ?, ?, ?, 'active', '2026-11-20T00:00:00.000Z', '2026-11-20T00:00:00.000Z')`,
    )
    const plant = (selector: string, algorithm: 'rsa-sha256' | 'ed25519-sha256', key: KeyObject) => {
      const spki = createPublicKey(key).export({ type: 'spki', format: 'der' })
      const text = (algorithm === 'rsa-sha256' ? spki : spki.subarray(-32)).toString('base64')
      const sealed = seal.seal(key.export({ type: 'pkcs8', format: 'der' }), `dkim ${selector} ${domain}`)
      insert.run(id, selector, algorithm, sealed, text)
      return {
        name: `${selector}._domainkey.${domain}`,
        value: `v=DKIM1; k=${algorithm === 'rsa-sha256' ? 'rsa' : 'ed25519'}; p=${text}`,
      }
    }
    return [plant('first', 'rsa-sha256', rsa), plant('second', 'ed25519-sha256', ed25519)]
  })
}
