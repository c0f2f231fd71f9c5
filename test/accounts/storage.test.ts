import { describe, expect, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { Dialogue } from '../support/smtp.ts'
import { loggedIn, office, outbound, submit } from '../support/submission.ts'
import { limit, limitsAsEnv, refused, usage } from './limited.ts'

/** A message of so many octets. */
function sized(octets: number): string {
  const whole = message({ Subject: 'Sized' }, '')
  const body = 'x'.repeat(octets - whole.length - 2).replaceAll(/(x{70})xx/g, '$1\r\n')
  return `${whole}${body.replace(/[\r\n]+$/, (end) => 'x'.repeat(end.length))}\r\n`
}

async function named(box: Appliance, name: string, more = {}): Promise<{ id: string; email: string; phone_number: string }> {
  const { body } = await box.call('POST', '/v1/identities', { name, ...more })
  return { id: body.id, email: body['email'], phone_number: body['phone_number'] }
}

const room = (octets: number): Record<string, string> => limitsAsEnv({ storage_bytes: octets })

/** What a caller can find that is kept of all identities, in octets. */
async function found(box: Appliance): Promise<number> {
  const { body: all } = await box.call('GET', '/v1/identities?limit=200')
  let octets = 0
  for (const { id } of all.data) {
    for (const spam of [false, true]) {
      const { body } = await box.call('GET', `/v1/identities/${id}/emails?direction=all&duplicates=true&spam=${spam}&limit=200`)
      for (const { size } of body.data) octets += size
    }
    const { body: trash } = await box.call('GET', `/v1/identities/${id}/emails?trash=true&limit=200`)
    for (const { size } of trash.data) octets += size
    for (const where of ['', '&trash=true']) {
      const { body: texts } = await box.call('GET', `/v1/identities/${id}/sms?limit=200${where}`)
      for (const { media, body, codes, error } of texts.data) {
        octets += 256 + Buffer.byteLength(body) + JSON.stringify(codes).length + (error ? JSON.stringify(error).length : 0)
        for (const { size } of media) octets += size ?? 0
      }
    }
  }
  return octets
}

describe('mail that comes', () => {
  test('all identities of an account fill one store; who declares a size hears it at RCPT', async () => {
    const box = await appliance(room(5000))
    const [ada, bob] = [await named(box, 'Ada'), await named(box, 'Bob')]
    expect(await deliver(box.smtp, { to: ada.email, raw: sized(3000) })).toMatch(/^250 /)
    expect(await deliver(box.smtp, { to: bob.email, raw: sized(2001) })).toMatch(/^452 4\.2\.2 .*account/)
    const client = await Dialogue.hello(box.smtp.port)
    expect(await client.say('MAIL FROM:<sam@sender.test> SIZE=2001')).toMatch(/^250 /)
    expect(await client.say(`RCPT TO:<${bob.email}>`)).toMatch(/^452 4\.2\.2 .*account/)
    client.destroy()
    expect(await deliver(box.smtp, { to: bob.email, raw: sized(2000) })).toMatch(/^250 /)
    expect(await usage(box, 'storage_bytes')).toBe(5000)
    expect(await deliver(box.smtp, { to: ada.email, raw: sized(1000) })).toMatch(/^452 4\.2\.2 /)
    const { body } = await box.call('GET', `/v1/identities/${bob.id}/emails`)
    await box.call('DELETE', `/v1/identities/${bob.id}/emails/${body.data[0].id}`)
    expect(await deliver(box.smtp, { to: ada.email, raw: sized(1000) })).toMatch(/^250 /)
  })

  test('twenty that come at once for two mailboxes do not fill more than there is', async () => {
    const box = await appliance(room(9000))
    const owners = [await named(box, 'Ada'), await named(box, 'Bob')]
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, turn) => deliver(box.smtp, { to: owners[turn % 2]!.email, raw: sized(2000) })),
    )
    expect(replies.filter((reply) => reply.startsWith('250')).length).toBe(4)
    expect(replies.filter((reply) => reply.startsWith('452 4.2.2')).length).toBe(16)
    expect(await usage(box, 'storage_bytes')).toBe(8000)
    expect(await found(box)).toBe(8000)
  })

  test('copies for several mailboxes of one account all count', async () => {
    const box = await appliance(room(5000))
    const owners = [await named(box, 'Ada'), await named(box, 'Bob'), await named(box, 'Kim')]
    const to = owners.map(({ email }) => email)
    expect(await deliver(box.smtp, { to, raw: sized(2000) })).toMatch(/^452 4\.2\.2 .*account/)
    expect(await usage(box, 'storage_bytes')).toBe(0)
    expect(await deliver(box.smtp, { to: to.slice(0, 2), raw: sized(2000) })).toMatch(/^250 /)
    expect(await usage(box, 'storage_bytes')).toBe(4000)
  })

  test('the operator’s mailbox takes mail all the same', async () => {
    const box = await appliance(room(100))
    expect(await deliver(box.smtp, { to: 'postmaster@pillarbox.test', raw: sized(1000) })).toMatch(/^250 /)
    expect(await usage(box, 'storage_bytes')).toBe(1000)
  })
})

describe('mail that is sent', () => {
  test('needs room too, and nothing is half kept', async () => {
    const box = await appliance()
    const ada = await named(box, 'Ada')
    const send = (body: string) => box.call('POST', `/v1/identities/${ada.id}/emails`, { to: 'postmaster@pillarbox.test', body })
    const { body: short } = await send('short')
    await box.settled()
    expect((await box.call('GET', `/v1/identities/${ada.id}/emails/${short.id}`)).body['status']).toBe('delivered')
    const before = await usage(box, 'storage_bytes')
    await limit(box, { storage_bytes: before + 2000 })
    expect(refused(await send('word '.repeat(1000)))).toMatch(
      new RegExp(
        `may store ${before + 2000} bytes of messages and long texts, stores ${before}, .*: delete some messages, or .*limits\\.storage_bytes\\.$`,
      ),
    )
    expect(await usage(box, 'storage_bytes')).toBe(before)
    expect(await usage(box, 'emails_sent')).toBe(1)
  })

  test('a program that submits hears that it may try again', async () => {
    const here = await office()
    await limit(here.box, { emails_sent: 0 })
    const client = await loggedIn(here)
    const raw = 'From: ada@pillarbox.test\r\n\r\nHello\r\n'
    expect(await submit(client, { raw })).toMatch(/^451 4\.7\.1 .*limits\.emails_sent/)
    await limit(here.box, { storage_bytes: 10 })
    expect(await submit(client, { raw })).toMatch(/^451 4\.7\.1 .*limits\.storage_bytes/)
    expect(await outbound(here)).toEqual([])
    await limit(here.box, {})
    expect(await submit(client, { raw })).toMatch(/^250 /)
    expect(await usage(here.box, 'emails_sent')).toBe(1)
  })
})

const picture = (octets: number) => ({ content_type: 'image/png', content: Buffer.alloc(octets, 1).toString('base64') })

test('text messages count with their pictures, and the text is kept where they find no room', async () => {
  // 256, Look, and its codes, which are []
  const words = 256 + 4 + 2
  const box = await appliance(room(5000 + 3 * words))
  const ada = await named(box, 'Ada', { provision_phone: true })
  const come = async (...sizes: number[]) => {
    const text = { from: '+15550100199', to: ada.phone_number, body: 'Look', media: sizes.map(picture) }
    return (await box.call('POST', '/v1/sms/loopback/inject', text)).body
  }
  const first = await come(3000, 2001 + 2 * words, 2000)
  expect(first['media'].map(({ status }: { status: string }) => status)).toEqual(['kept', 'failed', 'kept'])
  expect(await usage(box, 'storage_bytes')).toBe(5000 + words)
  expect(await come(words + 1)).toMatchObject({ body: 'Look', media: [{ status: 'failed', size: null }] })
  expect(await deliver(box.smtp, { to: ada.email, raw: sized(1000) })).toMatch(/^452 4\.2\.2 /)
  await box.call('DELETE', `/v1/identities/${ada.id}/sms/${first.id}`)
  expect(await usage(box, 'storage_bytes')).toBe(5000 + 2 * words)
  expect(await come(5000)).toMatchObject({ media: [{ status: 'kept' }] })
  expect(await usage(box, 'storage_bytes')).toBe(5000 + 2 * words)
})

test('a text message is not sent where the account has no room to keep it', async () => {
  const box = await appliance(room(1000))
  const ada = await named(box, 'Ada', { provision_phone: true })
  const send = (octets: number) =>
    box.call('POST', `/v1/identities/${ada.id}/sms`, { to: '+14155550199', body: 'x'.repeat(octets) })
  expect((await send(500)).status).toBe(201)
  const full = await send(500)
  expect(full).toMatchObject({ status: 403, body: { error: { code: 'plan_limit_reached' } } })
  expect([await usage(box, 'storage_bytes'), await usage(box, 'sms_sent')]).toEqual([256 + 500 + 2, 1])
})

test('what is counted is what is there, whatever comes, goes and fails', async () => {
  const box = await appliance()
  const [ada, bob] = [await named(box, 'Ada', { provision_phone: true }), await named(box, 'Bob')]
  const agree = async (): Promise<number> => {
    const counted = await usage(box, 'storage_bytes')
    expect(counted).toBe(await found(box))
    return counted
  }
  await deliver(box.smtp, { to: [ada.email, bob.email], raw: sized(4000) })
  const raw = message({ Subject: 'Once', 'Message-ID': '<once@sender.test>' }, 'twice')
  await deliver(box.smtp, { to: ada.email, raw })
  await deliver(box.smtp, { to: ada.email, raw })
  const media = [{ content_type: 'image/png', content: Buffer.alloc(700).toString('base64') }]
  await box.call('POST', '/v1/sms/loopback/inject', { from: '+15550100199', to: ada.phone_number, body: 'Look', media })
  const { body: sent } = await box.call('POST', `/v1/identities/${ada.id}/emails`, { to: bob.email, body: 'Hello' })
  await box.settled()
  expect((await box.call('GET', `/v1/identities/${ada.id}/emails/${sent.id}`)).body['status']).toBe('delivered')
  expect(await agree()).toBeGreaterThan(8000)
  await box.call('DELETE', `/v1/identities/${ada.id}/emails/${sent.id}`)
  const before = await agree()
  await box.call('POST', `/v1/identities/${ada.id}/emails/${sent.id}/restore`)
  expect(await agree()).toBe(before)
  await box.call('DELETE', `/v1/identities/${ada.id}/emails/${sent.id}?purge=true`)
  expect(await agree()).toBeLessThan(before)
  const less = await agree()
  await box.restart()
  expect(await agree()).toBe(less)
  await box.call('DELETE', `/v1/identities/${ada.id}`)
  expect(await agree()).toBeGreaterThan(4000)
  await box.call('DELETE', `/v1/identities/${bob.id}`)
  expect(await agree()).toBe(0)
})
