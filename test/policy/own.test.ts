import { expect, test } from 'vitest'
import { hour, reporting } from '../reporting/box.ts'
import { addedDomain } from '../support/verified-domain.ts'

test('an e-mail that was let go to an address of the account goes nowhere else once the domain of that is deleted', async () => {
  const { box, ada, sink, clock, email } = await reporting({})
  const { body: agent } = await box.call('POST', '/v1/api-keys', { label: 'agent' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' }, { key: agent.key })
  const domain = await addedDomain(box, 'agent.example', agent.key)
  await box.call('PATCH', `/v1/domains/${domain.id}`, { catch_all: bob.id }, { key: agent.key })
  await box.call('PATCH', '/v1/policy', { preset: 'known' })
  const send_at = new Date(clock.now() + hour).toISOString()
  const input = { to: ['drop@agent.example', bob.email], subject: 'Out', body_text: 'Hello.', send_at }
  const { body: sent } = await box.call('POST', `/v1/identities/${ada}/emails`, input, { key: agent.key })
  expect(sent.status).toBe('scheduled')
  expect((await box.call('DELETE', `/v1/domains/${domain.id}`, undefined, { key: agent.key })).status).toBe(200)
  box.dns.mx('agent.example', 'mx.agent.example').a('mx.agent.example', '127.0.0.1')
  clock.advance(2 * hour)
  await box.settled()
  expect(sink.messages).toEqual([])
  const { deliveries } = await email(sent.id)
  expect(deliveries).toMatchObject([
    {
      recipient: 'drop@agent.example',
      status: 'failed',
      response: expect.stringMatching(/no longer an address of this account/),
    },
    { recipient: bob.email, status: 'delivered' },
  ])
})
