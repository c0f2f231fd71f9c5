import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../../support/appliance.ts'
import { emailsOf, exported, type Fields, imported } from './moving.ts'
import { HeldClock } from '../../support/held-clock.ts'

const fixtures = new URL('../../fixtures/mail/', import.meta.url)
const letters = readdirSync(fixtures)
  .filter((name) => name.endsWith('.eml'))
  .map((name) => readFileSync(new URL(name, fixtures)))

/** A box on which somebody has lived: mail in and out, in every state, text messages with pictures, a card, a one-time password. */
async function livedIn(): Promise<{ box: Appliance; identity: Fields }> {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const { body: identity } = await box.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true, metadata: { a: 1 } })
  const at = `/v1/identities/${identity.id}`
  const to = identity.email
  let kept = 0
  for (const octets of letters) {
    clock.advance(61_000)
    if ((await deliver(box.smtp, { to, raw: octets })).startsWith('250')) kept += 1
  }
  expect(kept).toBeGreaterThan(80)
  const twice = message(
    { Subject: 'Twice', 'Message-ID': '<twice@sender.test>', 'Reply-To': 'postmaster@pillarbox.test' },
    'Said twice.',
  )
  for (const tag of ['', '', '+news']) {
    clock.advance(1000)
    await deliver(box.smtp, { to: to.replace('@', `${tag}@`), raw: twice })
  }
  await deliver(box.smtp, {
    to,
    raw: message({ Subject: 'Quoted' }, 'From here on\n>From there\n\nFrom me Fri Nov 20 10:00:00 2026\n\nend\n\n\n'),
  })
  const { body: list } = await box.call('GET', `${at}/emails?limit=200`)
  for (const [index, { id }] of list.data.entries()) {
    if (index % 3 === 0) await box.call('PATCH', `${at}/emails/${id}`, { read: true, labels: { add: ['seen', 'été'] } })
  }
  const answered = list.data.find((one: Fields) => one['subject'] === 'Twice')
  expect((await box.call('POST', `${at}/emails/${answered.id}/reply`, { body_text: 'An answer.' })).status).toBe(201)
  await box.call('POST', `${at}/emails`, {
    to: [to, 'abuse@pillarbox.test'],
    bcc: 'postmaster@pillarbox.test',
    subject: 'Out',
    body_html: '<p>Hi</p>',
  })
  await box.call('POST', `${at}/emails`, { to: 'postmaster@pillarbox.test', subject: 'Later', send_at: '2027-01-01T00:00:00Z' })
  // until the copies for mailboxes of the box have arrived
  for (;;) {
    const { body: sent } = await box.call('GET', `${at}/emails?direction=outbound`)
    expect(sent.data).toHaveLength(3)
    if (sent.data.every((one: Fields) => ['delivered', 'scheduled'].includes(one['status']))) break
    await sleep(20)
  }
  const picture = { content_type: 'image/png', content: Buffer.from('a picture').toString('base64') }
  await box.call('POST', '/v1/sms/loopback/inject', {
    from: '+15550100199',
    to: identity.phone_number,
    body: 'Code 493817',
    media: [picture],
  })
  await box.call('POST', `${at}/sms`, { to: '+15550100199', body: 'Thanks' })
  await box.call('POST', `${at}/totp`, { secret: 'JBSWY3DPEHPK3PXP', service_name: 'Bank' })
  return { box, identity }
}

function over(status: string): string {
  return ['sent', 'delivered', 'bounced', 'failed'].includes(status) ? status : 'cancelled'
}

/** What moving changes: ids, what the checks of another box said, and what was still to be sent. */
function moved(email: Fields): Record<string, unknown> {
  const {
    id: _i,
    identity_id: _d,
    thread_id: _t,
    duplicate_of,
    created_at: _c,
    // a key of the other box
    created_by: _b,
    authentication: _a,
    verified_domain: _v,
    ...rest
  } = email
  const same: Fields = { ...rest, repeat: duplicate_of !== null }
  if (email['direction'] === 'inbound') return same
  // a sent message has its date and signatures in its source there, and before it here
  delete same['size']
  const deliveries = email['deliveries'].map((one: Fields) => ({
    ...one,
    status: over(one['status']),
    next_attempt_at: null,
    history: [],
  }))
  return { ...same, status: over(email['status']), deliveries }
}

async function raw(box: Appliance, owner: string, id: string): Promise<string> {
  return (await box.call<string>('GET', `/v1/identities/${owner}/emails/${id}/raw`)).body
}

async function texts(box: Appliance, identity: string): Promise<unknown[]> {
  const { body } = await box.call('GET', `/v1/identities/${identity}/sms`)
  return body.data.map(({ id: _i, identity_id: _d, created_at: _c, provider_id: _p, ...rest }: Fields) => rest)
}

async function found(box: Appliance, identity: string): Promise<string[]> {
  const { body } = await box.call('GET', `/v1/identities/${identity}/emails/search?query=said`)
  return body.data.map((one: Fields) => one['subject'])
}

/** Which messages stand together, by the order of the first of each thread. */
function threading(emails: Fields[]): number[] {
  const known: string[] = []
  return emails.map(({ thread_id }) => (known.includes(thread_id) ? known.indexOf(thread_id) : known.push(thread_id) - 1))
}

test.each(['mbox', 'eml'])(
  'an identity exported as %s and imported on another box is the same, field by field',
  async (format) => {
    const { box, identity } = await livedIn()
    const { octets, job } = await exported(box, identity.id, format)
    expect(job).toMatchObject({ kind: 'export', identity_id: identity.id, progress: { unit: 'messages' } })
    const before = await emailsOf(box, identity.id)
    expect(job.result!['messages']).toBe(before.length)

    const other = await appliance()
    const { body: fresh } = await other.call('POST', '/v1/identities', { name: 'Ada' })
    const done = await imported(other, fresh.id, octets)
    expect(done).toMatchObject({
      status: 'done',
      result: { imported: before.length, duplicates: 0, sms: 2, too_large: 0, unreadable: 0, not_understood: 0 },
    })

    const after = await emailsOf(other, fresh.id)
    expect(after.map(moved)).toEqual(before.map(moved))
    expect(threading(after)).toEqual(threading(before))
    for (const email of after) {
      const { authentication } = email
      expect(email.verified_domain).toBe(null)
      if (authentication)
        expect([authentication.spf.result, authentication.dmarc, authentication.dkim]).toEqual([
          'none',
          expect.objectContaining({ result: 'none', reason: 'imported' }),
          [],
        ])
    }
    for (const [index, email] of after.entries()) {
      const [one, two] = [await raw(box, identity.id, before[index]!['id']), await raw(other, fresh.id, email['id'])]
      // what stands before a received message is of the box that received it
      expect(email['direction'] === 'inbound' ? one.endsWith(two) : one === two).toBe(true)
    }
    expect(await texts(other, fresh.id)).toEqual(await texts(box, identity.id))
    expect(await found(other, fresh.id)).toEqual(await found(box, identity.id))
    expect(await found(other, fresh.id)).toContain('Twice')

    const again = await imported(other, fresh.id, octets)
    expect(again).toMatchObject({ status: 'done', result: { imported: 0, duplicates: before.length + 2, sms: 0 } })
    expect(await emailsOf(other, fresh.id)).toHaveLength(before.length)
    const back = await imported(box, identity.id, octets)
    expect(back).toMatchObject({ status: 'done', result: { imported: 0 } })
  },
  300_000,
)
