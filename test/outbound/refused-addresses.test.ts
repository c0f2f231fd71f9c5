import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test, vi } from 'vitest'
import type { Appliance } from '../support/appliance.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'

type Zone = Appliance['dns']

/** What a domain's DNS must not lead us to; each is refused, and nothing is connected to. */
const wrong: [what: string, dns: (stub: Zone) => unknown, status: string, reason: RegExp][] = [
  [
    'loopback',
    (dns) => dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1'),
    'failed',
    /127\.0\.0\.1, which is not a public/,
  ],
  [
    'loopback of another number',
    (dns) => dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.9.9.9'),
    'failed',
    /127\.9\.9\.9/,
  ],
  ['a private network', (dns) => dns.mx('far.test', 'mx.far.test').a('mx.far.test', '10.1.2.3'), 'failed', /10\.1\.2\.3/],
  ['another private network', (dns) => dns.mx('far.test', 'mx.far.test').a('mx.far.test', '192.168.1.1'), 'failed', /192\.168/],
  ['cloud metadata', (dns) => dns.mx('far.test', 'mx.far.test').a('mx.far.test', '169.254.169.254'), 'failed', /169\.254/],
  ['carrier-grade NAT', (dns) => dns.mx('far.test', 'mx.far.test').a('mx.far.test', '100.64.0.1'), 'failed', /100\.64/],
  ['nowhere', (dns) => dns.mx('far.test', 'mx.far.test').a('mx.far.test', '0.0.0.0'), 'failed', /0\.0\.0\.0/],
  ['multicast', (dns) => dns.mx('far.test', 'mx.far.test').a('mx.far.test', '224.0.0.1'), 'failed', /224\.0\.0\.1/],
  ['IPv6 loopback', (dns) => dns.mx('far.test', 'mx.far.test').aaaa('mx.far.test', '::1'), 'failed', /::1/],
  ['mapped IPv4', (dns) => dns.mx('far.test', 'mx.far.test').aaaa('mx.far.test', '::ffff:a00:1'), 'failed', /10\.0\.0\.1/],
  ['a unique local address', (dns) => dns.mx('far.test', 'mx.far.test').aaaa('mx.far.test', 'fd00::1'), 'failed', /fd00::1/],
  ['a link-local address', (dns) => dns.mx('far.test', 'mx.far.test').aaaa('mx.far.test', 'fe80::1'), 'failed', /fe80::1/],
  [
    'NAT64 to a private address',
    (dns) => dns.mx('far.test', 'mx.far.test').aaaa('mx.far.test', '64:ff9b::a00:1'),
    'failed',
    /64:ff9b/,
  ],
  ['no MX, and a private address of its own', (dns) => dns.a('far.test', '10.0.0.5'), 'failed', /10\.0\.0\.5/],
  ['an MX that is an address', (dns) => dns.mx('far.test', '192.0.2.1'), 'bounced', /must be a host name/],
  ['an MX that is a loopback address', (dns) => dns.mx('far.test', '127.0.0.1'), 'bounced', /must be a host name/],
  ['null MX', (dns) => dns.mx('far.test', '.').a('far.test', '127.0.0.1'), 'bounced', /accepts no mail \(null MX/],
  ['no such domain', (dns) => dns.a('near.test', '127.0.0.1'), 'bounced', /no mail server and no address/],
  ['our own name', (dns) => dns.mx('far.test', 'pillarbox.test').a('pillarbox.test', '203.0.113.9'), 'bounced', /would loop/],
]

test('what must not be reached is refused at once, and nothing is connected to', async () => {
  const dial = vi.fn<() => Promise<Socket>>(() => Promise.reject(new Error('it was dialled')))
  const { box, send, until } = await sendingBox(25, { PILLARBOX_OUTBOUND__ALLOW_NETWORKS: '' }, { testing: { dial } })
  for (const [what, records, status, reason] of wrong) {
    box.dns.clear()
    records(box.dns)
    const delivery = await until(await send('bob@far.test'), /bounced|failed|deferred/)
    expect([what, delivery.status, delivery.response]).toEqual([what, status, expect.stringMatching(reason)])
  }
  for (const to of ['bob@9.9.9.9', 'bob@[9.9.9.9]', 'bob@[IPv6:2620:fe::fe]']) {
    expect(await until(await send(to), 'bounced')).toMatchObject({ enhanced_code: '5.1.3' })
  }
  expect(dial).not.toHaveBeenCalled()
})

test('the address that was connected to is looked at too', async () => {
  const sink = await MailSink.start()
  // a name service, or a router, that leads elsewhere than it said
  const dial = async (): Promise<Socket> => {
    const socket = connect(sink.port, '127.0.0.1')
    await once(socket, 'connect')
    return socket
  }
  const { box, send, until } = await sendingBox(25, { PILLARBOX_OUTBOUND__ALLOW_NETWORKS: '' }, { testing: { dial } })
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '9.9.9.9')
  expect(await until(await send('bob@far.test'), /failed/)).toMatchObject({
    response: expect.stringContaining('127.0.0.1, which is not'),
  })
  expect(sink.commands).toEqual([])
})

test('a server that turns out to be this box is a loop, unless a better one only does not answer', async () => {
  const before = await MailSink.start()
  const { port } = before
  await before.stop()
  const { box, send, until } = await sendingBox(port, { PILLARBOX_SMTP__LISTEN: `127.0.0.1:${port}` })
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  expect(await until(await send('bob@far.test'), 'bounced')).toMatchObject({
    enhanced_code: '5.4.6',
    response: expect.stringContaining('would loop'),
  })
  box.dns.mx('backed.test', 'mx.backed.test', 'mx.far.test').a('mx.backed.test', '127.0.0.2')
  expect(await until(await send('bob@backed.test'), 'deferred')).toMatchObject({
    enhanced_code: '4.4.1',
    response: '127.0.0.2: the connection was refused',
  })
})

test('allowed networks are reached, also in place of servers that are not', async () => {
  const sink = await MailSink.start()
  const { box, send, until } = await sendingBox(sink.port)
  box.dns.mx('far.test', 'bad.far.test', 'mx.far.test').a('bad.far.test', '10.0.0.1').a('mx.far.test', '127.0.0.1')
  expect(await until(await send('bob@far.test'), 'delivered')).toMatchObject({ mx: 'mx.far.test' })
  box.dns.a('implicit.test', '127.0.0.1')
  expect(await until(await send('bob@implicit.test'), 'delivered')).toMatchObject({ mx: 'implicit.test' })
})
