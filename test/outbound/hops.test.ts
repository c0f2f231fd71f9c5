import { expect, test } from 'vitest'
import { requireFewHops } from '../../src/outbound/compose/prepare-raw.ts'
import { deliver, message } from '../support/appliance.ts'
import { loggedIn, office, outbound, submit } from '../support/submission.ts'

test('a message that passed more than 25 servers is not sent on', () => {
  expect(() => requireFewHops(through(25), 'id')).not.toThrow()
  expect(() => requireFewHops(through(26), 'id')).toThrow(
    'The message has passed 26 servers, more than 25: this is a mail loop, and it is not relayed.',
  )
})

test('Received in the body, or in the name of another field, is no hop', () => {
  const raw = message({ 'X-Received': 'from a.test', 'Received-SPF': 'pass' }, 'Received: from a.test\n'.repeat(40))
  expect(() => requireFewHops(Buffer.from(raw), 'id')).not.toThrow()
})

test('neither a forward, nor a program that hands it in, nor the operator’s forwarding sends it on', async () => {
  const here = await office({ PILLARBOX_MAIL__POSTMASTER: 'admin@elsewhere.test' })
  const { box, ada } = here
  for (const to of ['ada@pillarbox.test', 'abuse@pillarbox.test'])
    expect(await deliver(box.smtp, { to, raw: through(26, { Subject: 'Round' }) })).toMatch(/^250 /)
  const { body } = await box.call('GET', `/v1/identities/${ada}/emails`)
  for (const as_attachment of [false, true]) {
    const input = { to: 'bob@elsewhere.test', as_attachment }
    const forward = await box.call('POST', `/v1/identities/${ada}/emails/${body.data[0].id}/forward`, input)
    expect([forward.status, forward.body.error]).toMatchObject([400, { code: 'too_many_hops' }])
  }
  const client = await loggedIn(here)
  const own = { From: 'ada@pillarbox.test', To: 'bob@pillarbox.test' }
  expect(await submit(client, { to: ['bob@pillarbox.test'], raw: through(26, own) })).toMatch(/^554 5\.4\.6 /)
  expect(await outbound(here)).toEqual([])
  expect(await submit(client, { raw: through(24, own) })).toMatch(/^250 /)
  client.destroy()
  await box.settled()
  expect(box.logged.some((line) => line.includes('could not be forwarded'))).toBe(true)
  const { body: all } = await box.call('GET', '/v1/identities')
  const operator = all.data.find(({ email }) => email === 'postmaster@pillarbox.test')
  expect((await box.call('GET', `/v1/identities/${operator.id}/emails?direction=outbound`)).body.data).toEqual([])
})

function through(hops: number, fields: Record<string, string> = {}): Buffer {
  const received = 'Received: from a.test\r\n\tby b.test; Fri, 20 Nov 2026 10:00:00 +0000\r\n'
  return Buffer.from(`${received.repeat(hops)}${message(fields, 'Received: x\nHello\n')}`)
}
