import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { keyHash, newKey } from '../../src/accounts/secret.ts'
import { iso } from '../../src/core/clock.ts'
import { newId } from '../../src/core/ids.ts'
import { type Scope, scopes } from '../../src/core/scopes.ts'
import { type Answer, type Appliance, deliver, message, openAppliance } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { withPassword } from '../support/people.ts'
import { addedDomain } from '../support/verified-domain.ts'

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
  /** One more estate in the first account, to be used up. */
  settle(name: string): Promise<Estate>
  database: DatabaseSync
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

/** The estates of all tests, and those made for one call about domains. */
const wantsDomain = /^(?:Own|Sibling|Foreign)$|\/domains/

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
  const database = new DatabaseSync(join(box.directory, 'data', 'pillarbox.db'), { timeout: 5000 })
  const plantKey = async (input: PlantedKey): Promise<string> => {
    const key = plant(database, input)
    const dead = input.revoked_at !== undefined || input.expires_at !== undefined
    // the box sees what others write with its own next commit at the latest
    const known = async (): Promise<boolean> => (await box.call('GET', '/v1/identities', undefined, { key })).status !== 401
    if (dead) return key
    for (let tries = 0; tries < 100 && !(await known()); tries += 1) await sleep(20)
    return key
  }
  const plantSession = async (account: string): Promise<string> => {
    const cookie = `pillarbox=${plantedSession(database, account)}`
    const known = async (): Promise<boolean> =>
      (await box.call('GET', '/v1/account', undefined, { key: null, headers: { Cookie: cookie } })).status !== 401
    for (let tries = 0; tries < 100 && !(await known()); tries += 1) await sleep(20)
    return cookie
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
    settle: (name) => settle(box, database, box.key, account_id, name),
    database,
    close: async () => {
      database.close()
      await close()
    },
  }
}

async function settle(box: Appliance, database: DatabaseSync, key: string, account: string, name: string): Promise<Estate> {
  const as = { key }
  const { body: identity } = await box.call('POST', '/v1/identities', { name, metadata: { of: name }, provision_phone: true }, as)
  const reply = await deliver(box.smtp, { to: identity.email, raw: letter(name) })
  if (!reply.startsWith('250')) throw new Error(`The letter was refused: ${reply}`)
  const { body: emails } = await box.call('GET', `/v1/identities/${identity.id}/emails`, undefined, as)
  const { body: threads } = await box.call('GET', `/v1/identities/${identity.id}/threads`, undefined, as)
  const text = {
    from: '+15550100199',
    to: identity.phone_number,
    body: 'Your verification code is 493817.',
    media: [{ content_type: 'image/png', content: Buffer.from('a picture').toString('base64') }],
  }
  const { body: sms } = await box.call('POST', '/v1/sms/loopback/inject', text, as)
  const { body: made } = await box.call('POST', '/v1/api-keys', { label: name, scopes: ['identities:read'] }, as)
  const input = { url: 'https://receiver.test/hook', events: ['email.received'], identity_id: identity.id }
  const { body: webhook } = await box.call('POST', '/v1/webhooks', input, as)
  const { body: delivery } = await box.call('POST', `/v1/webhooks/${webhook.id}/test`, undefined, as)
  const shy = { email: `${newId('sup')}@elsewhere.test` }
  const { body: suppression } = await box.call('POST', '/v1/suppressions', shy, as)
  if (/POST \S+\/phone$/.test(name)) await box.call('DELETE', `/v1/identities/${identity.id}/phone`, undefined, as)
  // only for those who ask for it, as keys take long to make
  const domain = wantsDomain.test(name) ? await addedDomain(box, `${newId('dom').slice(-12)}.example`, key) : undefined
  const further = { local_part: 'sales', identity_id: identity.id }
  const alias = domain && (await box.call('POST', `/v1/domains/${domain.id}/aliases`, further, as)).body
  const tomorrow = { to: 'postmaster@pillarbox.test', send_at: iso(Date.now() + 86_400_000) }
  const { body: later } = await box.call('POST', `/v1/identities/${identity.id}/emails`, tomorrow, as)
  const { body: queued } = await box.call('POST', `/v1/identities/${identity.id}/emails`, tomorrow, as)
  const waiting = database.prepare('SELECT delivery_id FROM email_recipients WHERE email_id = ?').get(queued.id) as {
    delivery_id: string
  }
  const { body: mailed } = await box.call('POST', `/v1/identities/${identity.id}/emails`, tomorrow, as)
  await box.call('DELETE', `/v1/identities/${identity.id}/emails/${mailed.id}`, undefined, as)
  const { body: texted } = await box.call('POST', '/v1/sms/loopback/inject', { ...text, media: [] }, as)
  await box.call('DELETE', `/v1/identities/${identity.id}/sms/${texted.id}`, undefined, as)
  const password = { secret: 'JBSWY3DPEHPK3PXP', service_name: name }
  const { body: totp } = await box.call('POST', `/v1/identities/${identity.id}/totp`, password, as)
  const store = (label: string): Promise<Answer<{ id: string }>> =>
    box.call<{ id: string }>('POST', `/v1/identities/${identity.id}/cards`, card({ label, budget_cents: 1_000_000_000 }), as)
  const { body: active } = await store('active')
  const { body: frozen } = await store('frozen')
  await box.call('POST', `/v1/cards/${frozen.id}/freeze`, undefined, as)
  const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: identity.id }, as)
  const link = { chain_id: 1, registry: '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432', token_id: freshToken() }
  const { body: linked } = await box.call('POST', `/v1/agents/${agent.id}/erc8004`, link, as)
  const { body: agentless } = await box.call('POST', '/v1/identities', { name: `${name} without an agent` }, as)
  const job = await exported(box, identity.id, key)
  // what the letter woke is heard, so that waits from here on have nothing to tell
  for (let turn = 0; turn < 10; turn += 1) {
    const { body } = await box.call('GET', `/v1/identities/${identity.id}/wait?timeout=0`, undefined, as)
    if (body.timed_out === true) break
  }
  return {
    key,
    account,
    objects: {
      'identities/:id': identity.id,
      'api-keys/:id': made.id,
      ':email_id': emails.data[0].id,
      ':sms_id': sms.id,
      number: identity.phone_number,
      ':email_id/cancel': later.id,
      ':email_id/restore': mailed.id,
      ':sms_id/restore': texted.id,
      'queue/:id': waiting.delivery_id,
      ':thread_id': threads.data[0].id,
      ':index': '0',
      'webhooks/:id': webhook.id,
      ':delivery_id': delivery.id,
      'suppressions/:id': suppression.id,
      ...(domain && alias ? { 'domains/:id': domain.id, ':alias_id': alias['id'] as string } : {}),
      'jobs/:id': job,
      ':job_id': job,
      'agents/:id': agent.id,
      ':link_id': linked.id,
      agentless: agentless.id,
      ':totp_id': totp.id,
      'cards/:id': active.id,
      'cards/:id/unfreeze': frozen.id,
    },
  }
}

/** The job of an export that is done. */
async function exported(box: Appliance, identity: string, key: string): Promise<string> {
  const { body: job } = await box.call('POST', `/v1/identities/${identity}/export`, undefined, { key })
  for (;;) {
    const { body } = await box.call('GET', `/v1/jobs/${job.id}`, undefined, { key })
    if (body.status === 'done') return job.id
    if (body.status !== 'running') throw new Error(`The export failed: ${JSON.stringify(body)}`)
    await sleep(10)
  }
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

function plant(database: DatabaseSync, input: PlantedKey): string {
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

function plantedSession(database: DatabaseSync, account: string): string {
  const token = randomBytes(32).toString('base64url')
  const hash = createHash('sha256').update(token).digest('base64url')
  const now = iso(Date.now())
  database
    .prepare(
      `INSERT INTO sessions (id, account_id, hash, ip, user_agent, created_at, last_used_at) VALUES (?, ?, ?, '', '', ?, ?)`,
    )
    .run(newId('sess'), account, hash, now, now)
  return token
}

/**
 * The password that the account was made with is forgotten for it. The box may be in the middle of a transaction, which cannot end while
 * this thread waits for it: so it is tried again, and not waited for.
 */
async function plantedLink(file: string, account: string): Promise<string> {
  const token = randomBytes(32).toString('base64url')
  const hash = createHash('sha256').update(token).digest('base64url')
  const expires_at = iso(Date.now() + 3_600_000)
  const database = new DatabaseSync(file, { timeout: 0 })
  for (let tries = 0; ; tries += 1) {
    try {
      database.exec(`BEGIN IMMEDIATE; DELETE FROM logins WHERE account_id = '${account}';
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
