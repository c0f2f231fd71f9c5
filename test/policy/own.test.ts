import { expect, test } from 'vitest'
import { hour, type Reporting, reporting } from '../reporting/box.ts'
import { addedDomain } from '../support/verified-domain.ts'

type Any = ReturnType<typeof JSON.parse>

/** A message of Ada to an address of an agent's own domain and to Bob, accepted under `known` as both are of the account, and due in an hour. */
async function lettingGo(): Promise<
  Reporting & { sent: Any; setStatus: (status: string) => Promise<void>; endDomain: () => Promise<void> }
> {
  const world = await reporting({})
  const { box, ada, clock } = world
  const { body: agent } = await box.call('POST', '/v1/api-keys', { label: 'agent' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' }, { key: agent.key })
  const domain = await addedDomain(box, 'agent.example', agent.key)
  await box.call('PATCH', `/v1/domains/${domain.id}`, { catch_all: bob.id }, { key: agent.key })
  await box.call('PATCH', '/v1/policy', { preset: 'known' })
  const send_at = new Date(clock.now() + hour).toISOString()
  const input = { to: ['drop@agent.example', bob.email], subject: 'Out', body_text: 'Hello.', send_at }
  const { body: sent } = await box.call('POST', `/v1/identities/${ada}/emails`, input, { key: agent.key })
  expect(sent.status).toBe('scheduled')
  return {
    ...world,
    sent,
    setStatus: async (status) => {
      expect((await box.call('PATCH', `/v1/identities/${ada}`, { status })).status).toBe(200)
    },
    endDomain: async () => {
      expect((await box.call('DELETE', `/v1/domains/${domain.id}`, undefined, { key: agent.key })).status).toBe(200)
      box.dns.mx('agent.example', 'mx.agent.example').a('mx.agent.example', '127.0.0.1')
    },
  }
}

test('a scheduled e-mail to an address of the account is held when that is of another by then', async () => {
  const { box, clock, sink, email, sent, endDomain } = await lettingGo()
  await endDomain()
  clock.advance(2 * hour)
  await box.settled()
  expect(sink.messages).toEqual([])
  expect(await email(sent.id)).toMatchObject({ status: 'held', hold: { status: 'open' } })
})

test('an e-mail that was let go to an address of the account goes nowhere else once the domain of that is deleted', async () => {
  const { box, clock, sink, email, until, sent, setStatus, endDomain } = await lettingGo()
  await setStatus('suspended')
  clock.advance(2 * hour)
  await box.settled()
  expect((await email(sent.id)).status).toBe('deferred')
  await endDomain()
  await setStatus('active')
  const { response } = await until(sent.id, 'failed', 'drop@agent.example')
  expect(response).toMatch(/no longer an address of this account/)
  await until(sent.id, 'delivered', 'bob@pillarbox.test')
  expect(sink.messages).toEqual([])
})
