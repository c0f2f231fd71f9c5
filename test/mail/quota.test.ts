import { describe, expect, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { Dialogue } from '../support/smtp.ts'

/** A message of so many octets. */
function sized(octets: number): string {
  const whole = message({ Subject: 'Sized' }, '')
  const line = `${'x'.repeat(98)}\r\n`
  const body = line.repeat(Math.ceil(octets / 100)).slice(0, octets - whole.length - 2)
  return `${whole}${body.replace(/[\r\n]+$/, (end) => 'x'.repeat(end.length))}\r\n`
}

async function identity(box: Appliance, name: string): Promise<{ id: string; email: string; count: () => Promise<number> }> {
  const { body } = await box.call('POST', '/v1/identities', { name })
  const count = async (): Promise<number> => {
    const { body: list } = await box.call('GET', `/v1/identities/${body.id}/emails?duplicates=true`)
    return list.data.length
  }
  return { id: body.id as string, email: body.email as string, count }
}

async function boxOf(quota: number): Promise<Appliance> {
  return appliance({ PILLARBOX_MAIL__QUOTA: String(quota) })
}

test('the size a sender declares is believed before it sends', async () => {
  const box = await boxOf(5000)
  const ada = await identity(box, 'Ada')
  const client = await Dialogue.hello(box.smtp.port)
  expect(await client.say('MAIL FROM:<sam@sender.test> SIZE=5001')).toMatch(/^250 /)
  expect(await client.say(`RCPT TO:<${ada.email}>`)).toMatch(/^452 4\.2\.2 /)
  await client.say('RSET')
  expect(await client.say('MAIL FROM:<sam@sender.test> SIZE=5000')).toMatch(/^250 /)
  expect(await client.say(`RCPT TO:<${ada.email}>`)).toMatch(/^250 /)
  client.destroy()
})

describe('at the end of the message', () => {
  test('what does not fit is put off, what fits exactly is kept', async () => {
    const box = await boxOf(5000)
    const ada = await identity(box, 'Ada')
    expect(await deliver(box.smtp, { to: ada.email, raw: sized(5001) })).toMatch(/^452 4\.2\.2 /)
    expect(await deliver(box.smtp, { to: ada.email, raw: sized(3000) })).toMatch(/^250 /)
    expect(await deliver(box.smtp, { to: ada.email, raw: sized(2001) })).toMatch(/^452 4\.2\.2 /)
    expect(await deliver(box.smtp, { to: ada.email, raw: sized(2000) })).toMatch(/^250 /)
    expect(await ada.count()).toBe(2)
  })

  test('twenty that come at once do not fill more than there is', async () => {
    const box = await boxOf(5000)
    const ada = await identity(box, 'Ada')
    const replies = await Promise.all(Array.from({ length: 20 }, () => deliver(box.smtp, { to: ada.email, raw: sized(2000) })))
    expect(replies.filter((reply) => reply.startsWith('250')).length).toBe(2)
    expect(replies.filter((reply) => reply.startsWith('452 4.2.2')).length).toBe(18)
    expect(await ada.count()).toBe(2)
  })

  test('copies for tags of one mailbox all count', async () => {
    const box = await boxOf(5000)
    const ada = await identity(box, 'Ada')
    const to = ['ada+a@pillarbox.test', 'ada+b@pillarbox.test', 'ada+c@pillarbox.test']
    expect(await deliver(box.smtp, { to, raw: sized(2000) })).toMatch(/^452 4\.2\.2 /)
    expect(await ada.count()).toBe(0)
  })

  test('a mailbox that is short of room does not keep the message from others, and is full then', async () => {
    const box = await boxOf(5000)
    const ada = await identity(box, 'Ada')
    const bob = await identity(box, 'Bob')
    expect(await deliver(box.smtp, { to: ada.email, raw: sized(4000) })).toMatch(/^250 /)
    expect(await deliver(box.smtp, { to: [ada.email, bob.email], raw: sized(2000) })).toMatch(/^250 /)
    expect([await ada.count(), await bob.count()]).toEqual([2, 1])
    expect(await deliver(box.smtp, { to: ada.email, raw: sized(500) })).toMatch(/^452 4\.2\.2 /)
  })

  test('one that filled up meanwhile puts the message off; the next time the others get it', async () => {
    const box = await boxOf(5000)
    const ada = await identity(box, 'Ada')
    const bob = await identity(box, 'Bob')
    const client = await Dialogue.hello(box.smtp.port)
    expect(await client.begin([ada.email, bob.email])).toMatch(/^354/)
    expect(await deliver(box.smtp, { to: ada.email, raw: sized(5000) })).toMatch(/^250 /)
    client.send(sized(1000))
    expect(await client.say('.')).toMatch(/^452 4\.2\.2 /)
    await client.say('MAIL FROM:<sender@client.test>')
    expect(await client.say(`RCPT TO:<${ada.email}>`)).toMatch(/^452 4\.2\.2 /)
    expect(await client.say(`RCPT TO:<${bob.email}>`)).toMatch(/^250 /)
    await client.say('DATA')
    client.send(sized(1000))
    expect(await client.say('.')).toMatch(/^250 /)
    client.destroy()
    expect([await ada.count(), await bob.count()]).toEqual([1, 1])
  })
})

test('the operator has room for ten times as much, and no more', async () => {
  const box = await boxOf(1000)
  expect(await deliver(box.smtp, { to: 'postmaster', raw: sized(9000) })).toMatch(/^250 /)
  expect(await deliver(box.smtp, { to: 'abuse@pillarbox.test', raw: sized(1001) })).toMatch(/^452 4\.2\.2 /)
  expect(await deliver(box.smtp, { to: 'abuse@pillarbox.test', raw: sized(1000) })).toMatch(/^250 /)
  const client = await Dialogue.hello(box.smtp.port)
  await client.say('MAIL FROM:<sam@sender.test>')
  expect(await client.say('RCPT TO:<postmaster>')).toMatch(/^452 4\.2\.2 /)
  client.destroy()
})

test('no quota is no limit', async () => {
  const box = await boxOf(0)
  const ada = await identity(box, 'Ada')
  for (const to of [ada.email, 'postmaster']) expect(await deliver(box.smtp, { to, raw: sized(100_000) })).toMatch(/^250 /)
})
