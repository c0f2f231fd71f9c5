import { expect, test } from 'vitest'
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
