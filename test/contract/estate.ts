import { setTimeout as sleep } from 'node:timers/promises'
import { iso } from '../../src/core/clock.ts'
import { newId } from '../../src/core/ids.ts'
import { type Answer, type Appliance, deliver, message } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import type { Store } from '../support/open-store.ts'
import { addedDomain } from '../support/verified-domain.ts'
import { plantedInvitation, plantedPerson } from './planted-people.ts'

/** What one account has: one object of every kind that a path can name. */
export interface Estate {
  key: string
  account: string
  objects: Record<string, string>
}

/** What a box needs for estates. */
type Home = Pick<Appliance, 'key' | 'smtp' | 'dns' | 'call' | 'settled'>

/** The estates of all tests; those of one call are named by it. */
const ofAll = /^(?:Own|Sibling|Foreign|Suspended|Deleted|Expired|Stopped)$/

/** The estates of calls on a whole identity have what those of all tests have, but domains. */
const ofIdentity = /\/identities\/:id(?:\/export|\/trash\/empty)?$/

/** True if calls of this kind are asked of the estate. */
function wants(name: string, kind: RegExp): boolean {
  return ofAll.test(name) || ofIdentity.test(name) || kind.test(name)
}

/** The box sees what others write with its own next commit at the latest. */
export async function until(known: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 100 && !(await known()); tries += 1) await sleep(20)
}

/** What its calls name: an object that is missing is an error of `Asking.path`. */
export async function settle(
  box: Home,
  database: Store,
  { key, account, name }: { key: string; account: string; name: string },
): Promise<Estate> {
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
async function exported(box: Home, identity: string, key: string): Promise<string> {
  // one export of an account at a time
  await box.settled()
  const { body: job } = await box.call('POST', `/v1/identities/${identity}/export`, undefined, { key })
  if (job.id === undefined) throw new Error(`There is no export: ${JSON.stringify(job)}`)
  await box.settled()
  const look = (): Promise<Answer<{ status: string }>> => box.call('GET', `/v1/jobs/${job.id}`, undefined, { key })
  // of a box in another process the end is stored before it is shown
  await until(async () => (await look()).body.status !== 'running')
  const { body } = await look()
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
