import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { newId } from '../../src/core/ids.ts'
import { scopes } from '../../src/core/scopes.ts'
import { masterKey, Seal } from '../../src/core/seal/seal.ts'
import { newSecret, Sealed } from '../../src/webhooks/signature.ts'
import { authorized, post } from '../api.ts'
import { type Box, startBox } from '../box.ts'
import { startNameServer } from '../dns.ts'
import type { Finding } from '../finding.ts'
import { figure } from '../measure.ts'
import { startProgram } from '../program.ts'
import { openStore } from '../seed.ts'
import { costOf, each, peakOf, startOf, told } from './cost.ts'

const webhooks = 50_000
/** The most that an account may have. */
const ofAccount = 1000
const created = 100
const renames = 200

/** So many webhooks in all, in accounts that have as many as they may. Each is for one identity. */
export async function manyWebhooks(directory: string, scale: number): Promise<Finding[]> {
  const accounts = Math.ceil((webhooks * scale) / ofAccount)
  const data = join(directory, 'data')
  await fill(data, accounts)
  await using ending = new AsyncDisposableStack()
  const sink = startProgram('load/sink.ts')
  ending.defer(() => sink.stop())
  const dns = await startNameServer(directory, { txt: {}, a: {} })
  ending.defer(() => dns.stop())
  const env = { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }
  const box = await startBox({ directory: data, dns: dns.address, env })
  ending.defer(() => box.stop())
  const url = `http://127.0.0.1:${await sink.ask<number>('listen')}/events`
  const { id } = await post<{ id: string }>(box, '/v1/identities', { name: 'told' })
  const made = await costOf(box, async () => {
    for (let number = 0; number < created; number++) {
      // one concerns the identity, the others listen to what does not happen
      const events = [number === 0 ? 'identity.updated' : 'card.created']
      await post(box, '/v1/webhooks', { url, events, identity_id: id })
    }
  })
  const delivered = await costOf(box, async () => {
    for (let number = 1; number <= renames; number++) {
      await rename(box, id, `told ${number}`)
      await sink.ask('until', number)
    }
  })
  const { count } = await sink.ask<{ count: number }>('told')
  if (count !== renames) throw new Error(`${count} posts came of ${renames}.`)
  const all = (accounts * ofAccount).toLocaleString('en')
  return [
    await startOf(box, `${all} webhooks`, directory),
    told('P30', `A webhook created by the API, in a box with ${all}, one after the other`, made.time / created, 'ms', [
      `${created} in an account that has then ${ofAccount.toLocaleString('en')}, ${figure(made.cpu / created)} ms CPU each`,
      peakOf(box),
    ]),
    told('P30', `An event that concerns one of ${all} webhooks, from the call to the post`, delivered.time / renames, 'ms', [
      `${renames} one after the other, ${each(delivered, renames)} each, with the call that makes it`,
      peakOf(box),
    ]),
  ]
}

async function rename(box: Box, id: string, name: string): Promise<void> {
  const response = await fetch(`${box.url}/v1/identities/${id}`, {
    method: 'PATCH',
    headers: authorized,
    body: JSON.stringify({ name }),
  })
  if (!response.ok) throw new Error(`The change of an identity was answered ${response.status}: ${await response.text()}`)
  await response.arrayBuffer()
}

/** All accounts are full but for the webhooks that are to be created in the first, that of the key of the bench. */
async function fill(data: string, accounts: number): Promise<void> {
  const store = await openStore(data)
  const first = store.caller.account_id
  await store.close()
  const ids = [first, ...Array.from({ length: accounts - 1 }, () => newId('acct'))]
  addAccounts(join(data, 'state.json'), ids.slice(1))
  const sealed = new Sealed(new Seal(masterKey(`${data}-keys`)))
  const database = new DatabaseSync(join(data, 'pillarbox.db'))
  const now = new Date().toISOString()
  const add = database.prepare(
    `INSERT INTO webhooks (id, account_id, identity_id, url, events, scopes, active, secret, after_seq, created_at, updated_at)
      VALUES (?, ?, ?, 'http://127.0.0.1:9/events', ?, ?, 1, ?, 0, ?, ?)`,
  )
  const [kinds, held] = [JSON.stringify(['identity.updated']), JSON.stringify(scopes)]
  database.exec('BEGIN')
  for (const account of ids) {
    for (let number = account === first ? created : 0; number < ofAccount; number++) {
      const id = newId('whk')
      add.run(id, account, newId('ident'), kinds, held, sealed.write(id, newSecret()), now, now)
    }
  }
  database.exec('COMMIT')
  database.close()
}

function addAccounts(file: string, ids: string[]): void {
  const state = JSON.parse(readFileSync(file, 'utf8')) as { accounts: { id: string; name: string; created_at: string }[] }
  const created_at = new Date().toISOString()
  state.accounts.push(...ids.map((id, index) => ({ id, name: `account ${index + 2}`, created_at })))
  writeFileSync(file, JSON.stringify(state))
}
