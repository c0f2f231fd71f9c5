import { expect, test } from 'vitest'
import { requireFewHops } from '../../src/sending/hops.ts'
import { message } from '../support/appliance.ts'

test('a message that passed more than 25 servers is not sent on', () => {
  expect(() => requireFewHops(through(25), 'id')).not.toThrow()
  expect(() => requireFewHops(through(26), 'id')).toThrow(
    'The message has passed 26 servers, more than 25: it goes in a circle and is not sent on.',
  )
})

test('Received in the body, or in the name of another field, is no hop', () => {
  const raw = message({ 'X-Received': 'from a.test', 'Received-SPF': 'pass' }, 'Received: from a.test\n'.repeat(40))
  expect(() => requireFewHops(Buffer.from(raw), 'id')).not.toThrow()
})

function through(hops: number): Buffer {
  const received = 'Received: from a.test\r\n\tby b.test; Fri, 20 Nov 2026 10:00:00 +0000\r\n'
  return Buffer.from(`${received.repeat(hops)}${message({}, 'Received: x\nHello\n')}`)
}
