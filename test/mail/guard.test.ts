import { expect, test } from 'vitest'
import { Guard, neighbourhoodOf } from '../../src/mail/guard.ts'

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
])('a connection from %s counts for %s', (address, neighbourhood) => {
  expect(neighbourhoodOf(address)).toBe(neighbourhood)
})

test('one /64 cannot take the places of another', () => {
  const guard = new Guard()
  const limits = { max_connections: 5, max_connections_per_address: 2 }
  expect(['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8:0:1::1'].map((address) => guard.admit(address, limits))).toEqual(
    ['welcome', 'welcome', 'crowded', 'welcome'],
  )
  guard.release('2001:db8::1')
  expect(guard.admit('2001:db8::3', limits)).toBe('welcome')
  expect(['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((address) => guard.admit(address, limits))).toEqual([
    'welcome',
    'welcome',
    'full',
  ])
  expect(guard.open).toBe(5)
})
