import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openStore, type Store } from '../support/open-store.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { keyHash, newKey } from '../../src/accounts/secret.ts'
import { iso } from '../../src/core/clock.ts'
import { newId } from '../../src/core/ids.ts'
import { type Scope, scopes } from '../../src/core/scopes.ts'
import { type Answer, type Appliance, deliver, message, openAppliance } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { withPassword } from '../support/people.ts'
import { addedDomain } from '../support/verified-domain.ts'
import { plantedHoldLink, plantedInvitation, plantedLink, plantedPerson } from './planted-people.ts'

/** What one account has: one object of every kind that a path can name. */
export interface Estate {
  key: string
  account: string
  objects: Record<string, string>
}

/** A box that people live on: two accounts, and in the first a second identity beside the one most tests look at. */
export interface Inhabited {
  box: Appliance
  own: Estate
  /** In the same account, another identity. */
  sibling: Estate
  foreign: Estate
  /** A key written straight into the store, which can be what the API would refuse to make. */
  plantKey: (input: PlantedKey) => Promise<string>
  /** A session written straight into the store; answers the cookie that a browser would send. */
  plantSession: (account: string) => Promise<string>
  /** A link to set the first password of an account that has none; answers its token. */
  plantLink: () => Promise<string>
  /** An invitation to the first account; answers its token. */
  plantInvitation: () => Promise<string>
  /** A link by which a person decides a hold; answers its token. */
  plantHoldLink: (holdId: string) => Promise<string>
  /** One more estate in the first account, to be used up. */
  settle(name: string): Promise<Estate>
  database: Store
  close(): Promise<void>
}

interface PlantedKey {
  account: string
  scopes?: readonly Scope[]
  identity?: string
  expires_at?: string
  revoked_at?: string
  rate_limit?: number
}

/** The estates of all tests; those of one call are named by it. */
const ofAll = /^(?:Own|Sibling|Foreign)$/

/** The estates of calls on a whole identity have what those of all tests have, but domains. */
const ofIdentity = /\/identities\/:id(?:\/export|\/trash\/empty)?$/

/** True if calls of this kind are asked of the estate. */
function wants(name: string, kind: RegExp): boolean {
  return ofAll.test(name) || ofIdentity.test(name) || kind.test(name)
}

const limits = {
  PILLARBOX_HTTP__RATE_LIMIT: '1000000',
  PILLARBOX_HTTP__PUBLIC_RATE_LIMIT: '1000000',
  PILLARBOX_HTTP__DOCUMENT_RATE_LIMIT: '1000000',
  PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '1000000',
  PILLARBOX_BACKUP__DIRECTORY: './backups',
}

/** How the person of the first account signs in. */
export const person = { email: 'ada@example.com', password: 'a long and quiet evening' }

/** Starts the box and settles it. Rate limits are on, and too high to be met. */
export async function inhabit(env: Record<string, string> = {}): Promise<Inhabited> {
  const { box, close } = await openAppliance({ ...limits, ...env })
  mkdirSync(join(box.directory, 'backups'))
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  const plantKey = async (input: PlantedKey): Promise<string> => {
    const key = plant(database, input)
    const dead = input.revoked_at !== undefined || input.expires_at !== undefined
    const known = async (): Promise<boolean> => (await box.call('GET', '/v1/identities', undefined, { key })).status !== 401
    if (dead) return key
    await until(known)
    return key
  }
  const plantSession = async (account: string): Promise<string> => {
    const cookie = `pillarbox=${plantedSession(database, account)}`
    const known = async (): Promise<boolean> =>
      (await box.call('GET', '/v1/account', undefined, { key: null, headers: { Cookie: cookie } })).status !== 401
    await until(known)
    return cookie
  }
  const plantInvitation = async (): Promise<string> => {
    const { id, token } = plantedInvitation(database, account_id)
    const known = async (): Promise<boolean> =>
      JSON.stringify((await box.call('GET', '/v1/people/invitations')).body).includes(id)
    await until(known)
    return token
  }
  const plantHoldLink = async (holdId: string): Promise<string> => {
    const token = plantedHoldLink(database, holdId)
    await until(async () => (await box.call('POST', '/v1/hold-links/read', { token }, { key: null })).status !== 403)
    return token
  }
  const { account_id } = database.prepare('SELECT account_id FROM api_keys').get() as { account_id: string }
  await withPassword(box, person)
  const { id: foreignAccount } = await box.app.accounts.add({ ...person, name: 'Foreign', email: 'grace@example.com' })
  const foreignKey = await plantKey({ account: foreignAccount })
  const own = await settle(box, database, box.key, account_id, 'Own')
  const sibling = await settle(box, database, box.key, account_id, 'Sibling')
  const foreign = await settle(box, database, foreignKey, foreignAccount, 'Foreign')
  return {
    box,
    own,
    sibling,
    foreign,
    plantKey,
    plantSession,
    plantLink: async () => {
      const name = newId('acct')
      const { id } = await box.app.accounts.add({ ...person, name, email: `${name}@example.com` })
      return plantedLink(join(box.directory, 'data', 'pillarbox.db'), id)
    },
    plantInvitation,
    plantHoldLink,
    settle: (name) => settle(box, database, box.key, account_id, name),
    database,
    close: async () => {
      // a test may have closed it
      database[Symbol.dispose]()
      await close()
    },
  }
}

/** The box sees what others write with its own next commit at the latest. */
async function until(known: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 100 && !(await known()); tries += 1) await sleep(20)
}

/** What its calls name: an object that is missing is an error of `Asking.path`. */
async function settle(box: Appliance, database: Store, key: string, account: string, name: string): Promise<Estate> {
  const as = { key }
  const { body: identity } = await box.call('POST', '/v1/identities', { name, metadata: { of: name }, provision_phone: true }, as)
  const at = `/v1/identities/${identity.id}`
  const objects: Record<string, string> = { 'identities/:id': identity.id, number: identity.phone_number, ':index': '0' }
  if (wants(name, /\/(?:emails|threads|attachments)/)) {
    // whoever may write by now
    await box.call('PATCH', '/v1/senders', { allow: [], block: [], require_dmarc: false, max_score: null }, as)
    const reply = await deliver(box.smtp, { to: identity.email, raw: letter(name) })
    if (!reply.startsWith('250')) throw new Error(`The letter was refused: ${reply}`)
    objects[':email_id'] = (await box.call('GET', `${at}/emails`, undefined, as)).body.data[0].id
    objects[':thread_id'] = (await box.call('GET', `${at}/threads`, undefined, as)).body.data[0].id
  }
  if (wants(name, /\/(?:sms|media)/)) {
    const text = {
      from: '+15550100199',
      to: identity.phone_number,
      body: 'Your verification code is 493817.',
      media: [{ content_type: 'image/png', content: Buffer.from('a picture').toString('base64') }],
    }
    objects[':sms_id'] = (await box.call('POST', '/v1/sms/loopback/inject', text, as)).body.id
    const { body: texted } = await box.call('POST', '/v1/sms/loopback/inject', { ...text, media: [] }, as)
    await box.call('DELETE', `${at}/sms/${texted.id}`, undefined, as)
    objects[':sms_id/restore'] = texted.id
  }
  if (wants(name, /\/api-keys/)) {
    objects['api-keys/:id'] = (await box.call('POST', '/v1/api-keys', { label: name, scopes: ['identities:read'] }, as)).body.id
  }
  if (wants(name, /\/webhooks/)) {
    const input = { url: 'https://receiver.test/hook', events: ['email.received'], identity_id: identity.id }
    const { body: webhook } = await box.call('POST', '/v1/webhooks', input, as)
    objects['webhooks/:id'] = webhook.id
    const { body: delivery } = await box.call('POST', `/v1/webhooks/${webhook.id}/test`, undefined, as)
    objects[':delivery_id'] = delivery.id
    // it can be repeated once its first attempt has ended
    const attempted = `/v1/webhooks/${webhook.id}/deliveries/${delivery.id}`
    await until(async () => {
      const { body } = await box.call<{ attempts: { ended_at: string | null }[] }>('GET', attempted, undefined, as)
      return body.attempts.some(({ ended_at }) => ended_at !== null)
    })
  }
  if (wants(name, /\/people/)) {
    objects['people/:id'] = plantedPerson(database, account)
    objects['invitations/:id'] = plantedInvitation(database, account).id
  }
  if (wants(name, /\/hold/)) {
    await box.call('PATCH', `${at}/policy`, { preset: 'all' }, as)
    // nobody decides about what they sent
    const { body: sender } = await box.call('POST', '/v1/api-keys', { scopes: ['emails:write'] }, as)
    const { body: held } = await box.call('POST', `${at}/emails`, { to: 'postmaster@pillarbox.test' }, { key: sender.key })
    objects['holds/:id'] = held.hold.id
    await box.call('PATCH', `${at}/policy`, { preset: 'open' }, as)
  }
  if (wants(name, /\/suppressions/)) {
    const shy = { email: `${newId('sup')}@elsewhere.test` }
    objects['suppressions/:id'] = (await box.call('POST', '/v1/suppressions', shy, as)).body.id
  }
  if (/POST \S+\/phone$/.test(name)) await box.call('DELETE', `${at}/phone`, undefined, as)
  // not for the calls on a whole identity, as keys take long to make
  if (ofAll.test(name) || name.includes('/domains')) {
    const domain = await addedDomain(box, `${newId('dom').slice(-12)}.example`, key)
    objects['domains/:id'] = domain.id
    const further = { local_part: 'sales', identity_id: identity.id }
    objects[':alias_id'] = (await box.call('POST', `/v1/domains/${domain.id}/aliases`, further, as)).body.id
  }
  if (wants(name, /\/(?:emails|queue)/)) {
    const tomorrow = { to: 'postmaster@pillarbox.test', send_at: iso(Date.now() + 86_400_000) }
    objects[':email_id/cancel'] = (await box.call('POST', `${at}/emails`, tomorrow, as)).body.id
    const { body: queued } = await box.call('POST', `${at}/emails`, tomorrow, as)
    const waiting = database.prepare('SELECT delivery_id FROM email_recipients WHERE email_id = ?').get(queued.id) as {
      delivery_id: string
    }
    objects['queue/:id'] = waiting.delivery_id
    const { body: mailed } = await box.call('POST', `${at}/emails`, tomorrow, as)
    await box.call('DELETE', `${at}/emails/${mailed.id}`, undefined, as)
    objects[':email_id/restore'] = mailed.id
  }
  if (wants(name, /\/totp/)) {
    const password = { secret: 'JBSWY3DPEHPK3PXP', service_name: name }
    objects[':totp_id'] = (await box.call('POST', `${at}/totp`, password, as)).body.id
  }
  if (wants(name, /\/logins/)) {
    const login = { label: name, username: 'ada', password: 'correct horse' }
    objects['logins/:id'] = (await box.call('POST', `${at}/logins`, login, as)).body.id
  }
  if (wants(name, /\/cards/)) {
    const store = (label: string): Promise<Answer<{ id: string }>> =>
      box.call<{ id: string }>('POST', `${at}/cards`, card({ label, budget_cents: 1_000_000_000 }), as)
    objects['cards/:id'] = (await store('active')).body.id
    const { body: frozen } = await store('frozen')
    await box.call('POST', `/v1/cards/${frozen.id}/freeze`, undefined, as)
    objects['cards/:id/unfreeze'] = frozen.id
  }
  if (wants(name, /\/(?:agents|reputation|token|events)/)) {
    const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: identity.id }, as)
    objects['agents/:id'] = agent.id
    const link = { chain_id: 1, registry: '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432', token_id: freshToken() }
    objects[':link_id'] = (await box.call('POST', `/v1/agents/${agent.id}/erc8004`, link, as)).body.id
    objects['agentless'] = (await box.call('POST', '/v1/identities', { name: `${name} without an agent` }, as)).body.id
  }
  if (wants(name, /\/(?:jobs|exports)/)) {
    const job = await exported(box, identity.id, key)
    objects['jobs/:id'] = job
    objects[':job_id'] = job
  }
  // what the letter woke is heard, so that waits from here on have nothing to tell
  for (let turn = 0; turn < 10; turn += 1) {
    const { body } = await box.call('GET', `${at}/wait?timeout=0`, undefined, as)
    if (body.timed_out === true) break
  }
  return { key, account, objects }
}

/** The job of an export that is done. */
async function exported(box: Appliance, identity: string, key: string): Promise<string> {
  // one export of an account at a time
  await box.settled()
  const { body: job } = await box.call('POST', `/v1/identities/${identity}/export`, undefined, { key })
  if (job.id === undefined) throw new Error(`There is no export: ${JSON.stringify(job)}`)
  await box.settled()
  const { body } = await box.call('GET', `/v1/jobs/${job.id}`, undefined, { key })
  if (body.status !== 'done') throw new Error(`The export failed: ${JSON.stringify(body)}`)
  return job.id
}

let tokens = 1000

/** The id of a token that nothing is linked to yet. */
export function freshToken(): string {
  tokens += 1
  return String(tokens)
}

/** A message with everything a reply can show: an attachment, a code, a link, both bodies. */
export function letter(name: string): string {
  return message(
    {
      Subject: `Letter to ${name}`,
      'Message-ID': `<${name.toLowerCase()}@sender.test>`,
      Cc: 'Other <other@sender.test>',
      // an answer stays on the box
      'Reply-To': 'postmaster@pillarbox.test',
      'Content-Type': 'multipart/mixed; boundary=b',
    },
    [
      '--b',
      'Content-Type: multipart/alternative; boundary=c',
      '',
      '--c',
      'Content-Type: text/plain; charset=utf-8',
      '',
      'Your verification code is 493817. The invoice is attached.',
      '--c',
      'Content-Type: text/html; charset=utf-8',
      '',
      '<p>Your verification code is <b>493817</b>. <a href="https://sender.test/verify?token=1">Verify</a></p>',
      '--c--',
      '--b',
      'Content-Type: text/plain; name="notes.txt"',
      'Content-Disposition: attachment; filename="notes.txt"',
      '',
      'Some notes.',
      '--b--',
      '',
    ].join('\n'),
  )
}

function plant(database: Store, input: PlantedKey): string {
  const key = newKey()
  database
    .prepare(
      `INSERT INTO api_keys (id, account_id, label, scopes, key_prefix, hash, identity_id, rate_limit, created_at, expires_at, revoked_at)
        VALUES (?, ?, 'planted', ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      newId('key'),
      input.account,
      JSON.stringify(input.scopes ?? scopes),
      key.slice(0, 12),
      keyHash(key),
      input.identity ?? null,
      input.rate_limit ?? 1_000_000,
      iso(Date.now()),
      input.expires_at ?? null,
      input.revoked_at ?? null,
    )
  return key
}

function plantedSession(database: Store, account: string): string {
  const token = randomBytes(32).toString('base64url')
  const hash = createHash('sha256').update(token).digest('base64url')
  const now = iso(Date.now())
  database
    .prepare(
      `INSERT INTO sessions (id, account_id, person_id, hash, ip, user_agent, created_at, last_used_at)
        SELECT ?, account_id, id, ?, '', '', ?, ? FROM logins WHERE account_id = ? AND role = 'owner' ORDER BY seq LIMIT 1`,
    )
    .run(newId('sess'), hash, now, now, account)
  return token
}
