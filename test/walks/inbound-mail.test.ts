import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'

test('a message sent to an identity is verified, kept, and read back', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada Lovelace' })
  expect(ada).toMatchObject({ name: 'Ada Lovelace', email: 'ada-lovelace@pillarbox.test', status: 'active' })

  const raw = message(
    { To: `${ada.email}`, Subject: 'Your sign-in code', 'Message-ID': '<one@sender.test>' },
    'Your verification code is 493817.\n\n-- \nThe Sender team\n',
  )
  expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^250 2\.0\.0 /)

  const { body: list } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  expect(list.has_more).toBe(false)
  expect(list.data).toHaveLength(1)
  expect(list.data[0]).toMatchObject({
    from: 'sender@sender.test',
    from_name: 'Sam',
    to: ada.email,
    subject: 'Your sign-in code',
    read: false,
    status: 'received',
    direction: 'inbound',
    codes: ['493817'],
  })
  expect(list.data[0]).not.toHaveProperty('body_text')

  const path = `/v1/identities/${ada.id}/emails/${list.data[0].id}`
  const { body: email } = await box.call('GET', path)
  expect(email.body_text).toContain('Your verification code is 493817.')
  expect(email.text).not.toContain('The Sender team')
  expect(email.authentication.dmarc.result).toBe('none')
  expect(email.verified_domain).toBeNull()
  expect(email.read).toBe(false)

  const source = await fetch(`${box.url}${path}/raw`, { headers: { Authorization: `Bearer ${box.key}` } })
  const octets = Buffer.from(await source.arrayBuffer())
  expect(source.headers.get('content-type')).toBe('message/rfc822')
  const head = octets.subarray(0, octets.length - Buffer.byteLength(raw)).toString()
  expect(head).toMatch(/^Return-Path: <sender@sender\.test>\r\nAuthentication-Results: pillarbox\.test/)
  expect(head).toContain('Received: from client.test')
  expect(sha(octets.subarray(head.length))).toBe(sha(Buffer.from(raw)))

  const { body: marked } = await box.call('PATCH', path, { read: true, labels: { add: ['done'] } })
  expect(marked).toMatchObject({ read: true, labels: ['done'] })
  const { body: events } = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.received`)
  expect(events.data).toHaveLength(1)
  expect(events.data[0]).toMatchObject({
    event: 'email.received',
    identity_id: ada.id,
    data: { id: email.id, body_text: email.body_text },
  })
})

test('several recipients get a copy each, tags are kept, unknown ones are refused', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const raw = message({ To: 'both', Subject: 'To both' }, 'Hello\n')
  expect(await deliver(box.smtp, { to: ['ada+news@pillarbox.test', 'bob@pillarbox.test'], raw })).toMatch(/^250 /)
  const { body: adas } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  const { body: bobs } = await box.call('GET', `/v1/identities/${bob.id}/emails`)
  expect(adas.data).toMatchObject([{ to: 'ada+news@pillarbox.test', tag: 'news' }])
  expect(bobs.data).toMatchObject([{ to: 'bob@pillarbox.test', tag: null }])

  expect(await deliver(box.smtp, { to: 'nobody@pillarbox.test', raw })).toMatch(/^550 5\.1\.1 /)
  expect(await deliver(box.smtp, { to: 'ada@elsewhere.test', raw })).toMatch(/^550 5\.7\.1 /)
  await box.call('PATCH', `/v1/identities/${bob.id}`, { status: 'suspended' })
  expect(await deliver(box.smtp, { to: bob.email, raw })).toMatch(/^450 4\.2\.1 /)
  await box.call('DELETE', `/v1/identities/${ada.id}`)
  expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^550 5\.1\.1 /)
  const { body: again } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  expect(again.email).toBe('ada-2@pillarbox.test')
})

test('mail to postmaster and abuse reaches the operator, whoever else exists', async () => {
  const box = await appliance()
  await box.call('POST', '/v1/identities', { name: 'Postmaster' })
  const raw = message({ Subject: 'To the operator' }, 'Hello\n')
  for (const to of ['postmaster', 'postmaster@pillarbox.test', 'ABUSE@Pillarbox.test']) {
    expect(await deliver(box.smtp, { to, raw })).toMatch(/^250 /)
  }
  const { body: list } = await box.call('GET', '/v1/identities')
  const operator = list.data.find((one) => one.email === 'postmaster@pillarbox.test')
  const { body: mail } = await box.call('GET', `/v1/identities/${operator.id}/emails`)
  expect(mail.data).toHaveLength(3)
})

test('a message that comes again because its 250 was lost is marked, and is no second event', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const raw = message({ Subject: 'Twice', 'Message-ID': '<twice@sender.test>' }, 'Hello\n')
  await deliver(box.smtp, { to: ada.email, raw })
  await deliver(box.smtp, { to: ada.email, raw })
  const { body: list } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  expect(list.data).toHaveLength(1)
  const { body: all } = await box.call('GET', `/v1/identities/${ada.id}/emails?duplicates=true`)
  const { body: repeat } = await box.call('GET', `/v1/identities/${ada.id}/emails/${all.data[0].id}`)
  expect(repeat.duplicate_of).toBe(list.data[0].id)
  const { body: events } = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.received`)
  expect(events.data).toHaveLength(1)
  const { body: threads } = await box.call('GET', `/v1/identities/${ada.id}/threads`)
  expect(threads.data).toMatchObject([{ message_count: 1, unread_count: 1 }])
})

test('a mailbox over its quota puts mail off', async () => {
  const box = await appliance({ PILLARBOX_MAIL__QUOTA: '4 KiB' })
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const raw = message({ Subject: 'Big' }, `${'x'.repeat(70)}\n`.repeat(40))
  expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^250 /)
  expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^452 4\.2\.2 /)
})

function sha(octets: Buffer): string {
  return createHash('sha256').update(octets).digest('hex')
}
