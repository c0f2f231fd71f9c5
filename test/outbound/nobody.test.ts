import { expect, test } from 'vitest'
import { loggedIn, office, submit } from '../support/submission.ts'

test('an answer to a message that names nobody needs somebody', async () => {
  const here = await office()
  const client = await loggedIn(here)
  const raw = 'From: ada@pillarbox.test\r\nTo: undisclosed-recipients:;\r\nSubject: x\r\n\r\nx\r\n'
  const id = (await submit(client, { raw, to: ['ada@pillarbox.test'] })).split(' ').at(-1)!
  const reply = (input: object) => here.box.call('POST', `/v1/identities/${here.ada}/emails/${id}/reply`, { body: 'x', ...input })
  for (const input of [{}, { reply_all: true }]) {
    const { status, body } = await reply(input)
    expect([status, body.error]).toMatchObject([409, { code: 'no_reply_address' }])
  }
  const named = await reply({ bcc: 'ada@pillarbox.test' })
  expect([named.status, named.body['deliveries'].length]).toEqual([201, 1])
})
