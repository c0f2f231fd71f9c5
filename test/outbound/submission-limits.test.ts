import { expect, test } from 'vitest'
import { accountKey } from '../support/account-key.ts'
import { loggedIn, office, submit } from '../support/submission.ts'

test('what an identity may not send just now is put off with the reason, and counts beside what came by the API', async () => {
  const here = await office({ PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: '2' })
  const client = await loggedIn(here)
  const raw = 'From: ada@pillarbox.test\r\n\r\nHi.\r\n'
  expect(await submit(client, { raw })).toMatch(/^250 /)
  const sent = await here.box.call('POST', `/v1/identities/${here.ada}/emails`, { to: 'bob@elsewhere.test' })
  expect(sent.status).toBe(201)
  expect(await submit(client, { raw })).toMatch(/^451 4\.7\.1 .*2 recipients an hour/)
  expect(await client.say('NOOP')).toMatch(/^250 /)
  client.destroy()
})

test('the memory for messages is shared by account, also behind one address', async () => {
  const here = await office({ PILLARBOX_SMTP__SIZE: '1 MB', PILLARBOX_SMTP__MAX_MEMORY: '0' })
  const { box } = here
  const key = accountKey(box)
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' }, { key })
  const smaller = await loggedIn(here)
  const larger = await loggedIn(here)
  for (const [client, octets] of [
    [smaller, 900_000],
    [larger, 940_000],
  ] as const) {
    await client.say('MAIL FROM:<ada@pillarbox.test>')
    await client.say(`RCPT TO:<${bob.email}>`)
    await client.say('DATA')
    client.send(`From: ada@pillarbox.test\r\n\r\n${bodyOf(octets)}`)
  }
  const held = (): Promise<number> => box.app.metrics.total('pillarbox_smtp_held_bytes', () => true)
  await expect.poll(held).toBeGreaterThan(1_840_000)
  const client = await loggedIn(here, { user: bob.email, key })
  const raw = `From: ${bob.email}\r\n\r\n${bodyOf(300_000)}`
  expect(await submit(client, { from: bob.email, to: ['ada@pillarbox.test'], raw })).toMatch(/^250 /)
  expect(await smaller.say('.')).toMatch(/^250 /)
  expect(await larger.say('.')).toMatch(/^452 4\.3\.1 /)
  for (const one of [smaller, larger, client]) one.destroy()
})

function bodyOf(octets: number): string {
  return `${'y'.repeat(98)}\r\n`.repeat(octets / 100)
}
