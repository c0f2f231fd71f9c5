import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { newId } from '../../src/core/ids.ts'
import { MasterKey } from '../../src/core/seal/master-key.ts'
import { readKey, Seal } from '../../src/core/seal/seal.ts'
import { expect } from 'vitest'
import type { Appliance } from '../support/appliance.ts'
import { person, signIn, withPassword } from '../support/people.ts'

const secret = 'JBSWY3DPEHPK3PXP'
const signing = 'whsec_c2lnbmluZyBzZWNyZXQgb2YgdGhlIHdlYmhvb2s='

/** What a box was told that it keeps sealed: something for every column there is. */
export interface Kept {
  box: Appliance
  /** Asks for all of it, by the API, and expects what was told. */
  expectAll(): Promise<void>
}

export async function fill(box: Appliance): Promise<Kept> {
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const at = `/v1/identities/${ada.id}/totp`
  const { body: entry } = await box.call('POST', at, { secret, service_name: 'X', period: 120 })
  const login = { label: 'X', username: 'ada', password: 'correct horse', api_key: 'k', notes: 'n' }
  const { body: stored } = await box.call('POST', `/v1/identities/${ada.id}/logins`, login)
  const once = { headers: { 'Idempotency-Key': 'once' } }
  const { body: key } = await box.call('POST', '/v1/api-keys', { label: 'kept' }, once)
  const input = { url: 'https://receiver.test/', events: ['*'], headers: { Authorization: 'Bearer of theirs' } }
  const { body: webhook } = await box.call('POST', '/v1/webhooks', input)
  await box.call('POST', `/v1/webhooks/${webhook.id}/secret/rotate`, { secret: signing })
  await withPassword(box)
  const page = await signIn(box)
  await page.call('POST', '/v1/account/totp', { password: person.password })
  const database = openStore(databaseOf(box))
  const seal = new Seal(readKey(join(keysOf(box), 'master.key')))
  const [domain, selector] = [newId('dom'), 's1']
  database.prepare(`INSERT INTO domains (id, account_id, name, created_at) VALUES (?, 'acct', 'example.com', '2026')`).run(domain)
  database
    .prepare(
      `INSERT INTO dkim_keys (domain_id, selector, algorithm, private_key, public_text, state, created_at)
        VALUES (?, ?, 'ed25519', ?, '', 'active', '2026')`,
    )
    .run(domain, selector, seal.seal(Buffer.from('private'), `dkim ${selector} example.com`))
  database.close()
  return {
    box,
    expectAll: async () => {
      const { body: code } = await box.call('GET', `${at}/${entry.id}/code`)
      expect(code.code).toMatch(/^\d{6}$/)
      const { label: _, ...revealed } = login
      expect((await box.call('POST', `/v1/logins/${stored.id}/reveal`, {})).body).toEqual(revealed)
      expect((await box.call('POST', '/v1/api-keys', { label: 'kept' }, once)).body).toEqual(key)
      expect((await box.call('GET', `/v1/webhooks/${webhook.id}`)).body).toMatchObject({ headers: input.headers })
      const again = await box.call('POST', `/v1/webhooks/${webhook.id}/secret/rotate`, { secret: signing })
      expect(again.body.error).toMatchObject({ status: 409, message: 'This is already the secret.' })
      // a secret that would not open could not be compared with
      const refused = await page.call('POST', '/v1/account/totp/confirm', { code: '000000' })
      expect(refused.body.error).toMatchObject({ status: 403, code: 'wrong_code' })
    },
  }
}

/** Every sealed value of a stopped box, by the place it is in, with its octets as kept and as opened under the key in use. */
export function sealedValues(box: Appliance): { place: string; kept: Buffer; plain: string }[] {
  const seal = new Seal(new MasterKey(keysOf(box)).read(true))
  const database = openStore(databaseOf(box), { readOnly: true })
  try {
    return box.app.sealed.flatMap(({ table, column, from, base64, only, context }) =>
      database
        .prepare(
          `SELECT *, ${table}.rowid AS place, ${table}.${column} AS value FROM ${from ?? table} WHERE ${table}.${column} IS NOT NULL AND ${only ?? '1'}`,
        )
        .all()
        .map((row) => {
          const { place, value } = row as { place: number; value: string | Uint8Array }
          const kept = typeof value === 'string' ? Buffer.from(value, 'base64') : Buffer.from(value)
          expect(typeof value === 'string').toBe(base64 === true)
          return { place: `${table}.${column} ${place}`, kept, plain: seal.open(kept, context(row)).toString('hex') }
        }),
    )
  } finally {
    database.close()
  }
}

export function keysOf(box: Appliance): string {
  return `${box.env['PILLARBOX_DATA_DIR']!}-keys`
}

export function databaseOf(box: Appliance): string {
  return join(box.env['PILLARBOX_DATA_DIR']!, 'pillarbox.db')
}

/** The files below a directory that hold these octets. */
export function holding(directory: string, octets: Buffer): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(octets))
}
