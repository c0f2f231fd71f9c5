import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { certificate } from '../../src/certificates/self-signed.ts'
import type { Pair } from '../../src/certificates/pair.ts'
import { sql } from '../../src/store/database.ts'
import { finiteField } from '../support/finite-field.ts'
import { HeldClock } from '../support/held-clock.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'
import { PolicyHost } from '../support/policy-host.ts'

/** Certificates of `mx.far.test`, of its policy host, and of somebody else; all but the last are trusted. */
let trusted: Pair
let host: Pair
let strange: Pair
const before = getCACertificates('default')

const directory = mkdtempSync(join(tmpdir(), 'pillarbox-tls-'))

beforeAll(async () => {
  trusted = await certificate(`${directory}/mx`, 'mx.far.test')
  host = await certificate(`${directory}/host`, 'mta-sts.far.test')
  strange = await certificate(`${directory}/strange`, 'mx.far.test')
  setDefaultCACertificates([...before, trusted.cert, host.cert])
})
afterAll(() => {
  setDefaultCACertificates(before)
  rmSync(directory, { recursive: true })
})

function start(mode: string, mx = 'mx.far.test', age = 86_400, pair = host): Promise<PolicyHost> {
  return PolicyHost.start(pair, { mode, mx, age })
}

async function far(pair: Pair | undefined, policyHost?: PolicyHost, clock?: HeldClock) {
  const sink = await MailSink.start(pair ? { tls: pair } : {})
  const testing = policyHost ? { outsideDial: policyHost.dial } : {}
  const sending = await sendingBox(sink.port, {}, { testing, ...(clock ? { clock } : {}) })
  const { dns } = sending.box
  dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1').a('mta-sts.far.test', '127.0.0.1')
  if (policyHost) dns.txt('_mta-sts.far.test', 'v=STSv1; id=one;')
  return { sink, ...sending }
}

test('TLS is taken where it is offered, whoever signed the certificate', async () => {
  const good = await far(trusted)
  expect((await good.until(await good.send('bob@far.test'), 'delivered')).tls).toMatch(/^TLSv1\.3 TLS_\S+, certificate checked$/)
  expect(good.sink.messages[0]!.secure).toBe(true)
  const bad = await far(strange)
  expect((await bad.until(await bad.send('bob@far.test'), 'delivered')).tls).toMatch(/, certificate not checked$/)
  expect(await bad.box.app.metrics.text()).toContain('pillarbox_mail_deliveries_total{result="delivered",tls="unchecked"} 1')
})

test('where nothing asks for TLS, a server whose TLS is broken is spoken to in the clear', async () => {
  const { sink, send, until } = await far(trusted)
  sink.script = (line, { socket }) => {
    if (line !== 'STARTTLS') return undefined
    socket.write('220 Go on\r\n')
    socket.end('no handshake at all')
    return null
  }
  expect((await until(await send('bob@far.test'), 'delivered')).tls).toBeNull()
  expect(sink.connections).toBe(2)
  sink.script = (line) => (line === 'STARTTLS' ? '454 4.7.0 Not now' : undefined)
  await until(await send('bob@far.test'), 'delivered')
  expect(sink.messages.map(({ secure }) => secure)).toEqual([false, false])
})

test.each([
  ['a key exchange of a finite field', finiteField],
  [
    'a chain of a hundred certificates',
    async () => ({ ...trusted, cert: `${trusted.cert}\n${`${strange.cert}\n`.repeat(100)}` }),
  ],
])('TLS with %s is none', async (_what, tls) => {
  const { send, until } = await far(await tls())
  expect((await until(await send('bob@far.test'), 'delivered')).tls).toBeNull()
  const guarded = await far(await tls(), await start('enforce'))
  const delivery = await guarded.until(await guarded.send('bob@far.test'), 'deferred')
  expect(delivery).toMatchObject({ enhanced_code: '4.7.5', response: expect.stringContaining('TLS failed: ') })
})

test('a mail server cannot send other certificates once its handshake is over', async () => {
  const { sink, send, until } = await far({ ...trusted, maxVersion: 'TLSv1.2' } as Pair)
  sink.script = (line, { secure, socket, write }) => {
    if (!secure || !line.startsWith('EHLO')) return undefined
    // it goes on when it could
    ;(socket as TLSSocket).renegotiate({}, (error) => error === null && write('250 far.test\r\n'))
    return null
  }
  const { response } = await until(await send('bob@far.test'), 'deferred')
  expect(response).toContain('handshake failure')
  expect(sink.messages).toEqual([])
})

test('a server that was known for its TLS gets nothing in the clear for a day, also after a restart; then it is believed', async () => {
  const clock = new HeldClock()
  const { sink, box, send, until, inside } = await far(trusted, undefined, clock)
  await until(await send('bob@far.test'), 'delivered')
  await box.restart()
  sink.script = (line) => (line === 'STARTTLS' ? '454 4.7.0 Not now' : undefined)
  expect(await until(await send('bob@far.test'), 'deferred')).toMatchObject({
    enhanced_code: '4.7.5',
    response: expect.stringContaining('had TLS with a valid certificate before'),
    mx: 'mx.far.test',
    tls: null,
  })
  clock.advance(23 * 3_600_000)
  await until(await send('eve@far.test'), 'deferred')
  expect(sink.messages).toHaveLength(1)
  clock.advance(2 * 3_600_000)
  inside().queue.wake()
  expect((await until(await send('bob@far.test'), 'delivered')).tls).toBeNull()
  expect(box.logged.filter((line) => line.includes('mail server without TLS for a day'))).toHaveLength(1)
  // what it offers again counts again
  await box.restart()
  sink.script = undefined
  expect((await until(await send('bob@far.test'), 'delivered')).tls).toMatch(/, certificate checked$/)
})

test('a policy in force is followed: checked TLS, or no octet of the message', async () => {
  const policyHost = await start('enforce')
  const { sink, send, until } = await far(trusted, policyHost)
  expect((await until(await send('bob@far.test'), 'delivered')).tls).toMatch(/, certificate checked$/)
  expect(sink.messages).toHaveLength(1)
  expect(policyHost.asked).toEqual(['GET https://mta-sts.far.test/.well-known/mta-sts.txt'])
})

test.each([
  ['a server that hides STARTTLS', () => undefined, /TLS failed/],
  ['a server with a certificate of nobody knows whom', () => strange, /TLS failed: .*self-signed/i],
])('%s gets nothing under a policy', async (_what, pair, said) => {
  const { sink, send, until } = await far(pair(), await start('enforce'))
  const delivery = await until(await send('bob@far.test'), 'deferred')
  expect(delivery).toMatchObject({ enhanced_code: '4.7.5', response: expect.stringMatching(said), mx: 'mx.far.test' })
  expect(sink.commands.filter((line) => /^(?:MAIL|RCPT|DATA)/.test(line))).toEqual([])
})

test('a server that refuses STARTTLS gets nothing under a policy', async () => {
  const { sink, send, until } = await far(trusted, await start('enforce'))
  sink.script = (line) => (line === 'STARTTLS' ? '454 4.7.0 Not now' : undefined)
  expect(await until(await send('bob@far.test'), 'deferred')).toMatchObject({ enhanced_code: '4.7.5' })
  expect(sink.commands.filter((line) => /^(?:MAIL|RCPT|DATA)/.test(line))).toEqual([])
})

test('a policy with capitals and a dot at the end of a name is in force', async () => {
  const policyHost = await start('enforce', 'MX.far.test.')
  const { send, until } = await far(trusted, policyHost)
  expect((await until(await send('bob@far.test'), 'delivered')).tls).toMatch(/, certificate checked$/)
  const { sink, ...other } = await far(strange, await start('enforce', 'MX.far.test.'))
  await other.until(await other.send('bob@far.test'), 'deferred')
  expect(sink.messages).toEqual([])
})

test('a server that the policy does not name is not spoken to', async () => {
  const { sink, send, until } = await far(trusted, await start('enforce', '*.other.test'))
  expect(await until(await send('bob@far.test'), 'deferred')).toMatchObject({
    response: expect.stringContaining('matches its MTA-STS policy'),
  })
  expect(sink.connections).toBe(0)
})

test.each([
  ['the hundredth', 99, 'delivered'],
  ['the hundred-and-first', 100, 'deferred'],
])('a server that only %s pattern of a policy names', async (_which, count, status) => {
  const others = Array.from({ length: count }, (_, index) => `n${index}.far.test\r\nmx: `)
  const { send, until } = await far(trusted, await start('enforce', `${others.join('')}mx.far.test`))
  expect(await until(await send('bob@far.test'), status)).toMatchObject({ status })
})

test.each([
  ['fiftieth', 49, 'delivered'],
  ['fifty-first', 50, 'deferred'],
])('a policy that names only the %s MX', async (_which, count, status) => {
  const { box, send, until } = await far(trusted, await start('enforce'))
  const others = Array.from({ length: count }, (_, index) => `n${index}.far.test`)
  box.dns.mx('far.test', ...others, 'mx.far.test')
  expect(await until(await send('bob@far.test'), status)).toMatchObject({ status })
})

test.each([['testing'], ['none']])('a policy of mode %s hinders nothing', async (mode) => {
  const { sink, send, until } = await far(undefined, await start(mode, '*.other.test'))
  await until(await send('bob@far.test'), 'delivered')
  expect(sink.messages).toHaveLength(1)
})

test('a policy that was seen holds until it runs out, though its host and its record say no more of it', async () => {
  const clock = new HeldClock()
  const policyHost = await start('enforce', 'mx.far.test', 7 * 86_400)
  const { box, send, until, sink } = await far(trusted, policyHost, clock)
  await until(await send('bob@far.test'), 'delivered')
  await until(await send('bob@far.test'), 'delivered')
  expect(policyHost.asked).toHaveLength(1)
  policyHost.status = 503
  // half a week later, under a new id that cannot be fetched, and then without any
  clock.advance(3.5 * 86_400_000)
  box.dns.txt('_mta-sts.far.test', 'v=STSv1; id=two;')
  expect((await until(await send('bob@far.test'), 'delivered')).tls).toMatch(/, certificate checked$/)
  box.dns.txt('_mta-sts.far.test', 'nothing')
  await box.restart()
  sink.script = (line) => (line === 'STARTTLS' ? '454 4.7.0 Not now' : undefined)
  expect(await until(await send('bob@far.test'), 'deferred')).toMatchObject({ enhanced_code: '4.7.5' })
  // and when it has run out, nothing holds but for the day that a server known for its TLS is waited for
  clock.advance(4 * 86_400_000)
  await until(await send('eve@far.test'), 'deferred')
  clock.advance(86_400_000)
  await until(await send('zoe@far.test'), 'delivered')
  expect(sink.messages.at(-1)!.secure).toBe(false)
})

test('a stored policy is deleted when it has expired, and when no mail went to its domain for a month', async () => {
  const clock = new HeldClock()
  const policyHost = await start('enforce', 'mx.far.test', 90 * 86_400)
  const { box, inside, send, until } = await far(trusted, policyHost, clock)
  const forget = async () => {
    await box.app.jobs.find(({ name }) => name === 'forget-mta-sts-policies')!.run()
    return (await inside().database.all<{ domain: string }>(sql`SELECT domain FROM mta_sts_policies`)).length
  }
  await until(await send('bob@far.test'), 'delivered')
  // mail in between is a use, also while the host of the policy does not answer
  policyHost.status = 503
  clock.advance(29 * 86_400_000)
  await until(await send('bob@far.test'), 'delivered')
  clock.advance(29 * 86_400_000)
  expect(await forget()).toBe(1)
  clock.advance(2 * 86_400_000)
  expect(await forget()).toBe(0)
  policyHost.status = 200
  policyHost.policy = policyHost.policy.replace(/max_age: \d+/, 'max_age: 3600')
  await until(await send('bob@far.test'), 'delivered')
  expect(await forget()).toBe(1)
  clock.advance(3_600_000)
  expect(await forget()).toBe(0)
})

test('ten thousand policies are stored, and one more takes the place of the one that was not used for the longest time', async () => {
  const { inside, send, until } = await far(trusted, await start('enforce'))
  await inside().database.transaction((tx) =>
    tx.run(sql`WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 10000)
      INSERT INTO mta_sts_policies (domain, policy_id, policy, expires_at, used_at)
      SELECT n || '.test', 'one', '{}', '2100-01-01T00:00:00.000Z', CASE WHEN n > 1 THEN '2020-01-01T00:00:01.000Z' ELSE '2020-01-01T00:00:00.000Z' END
      FROM counted`),
  )
  await until(await send('bob@far.test'), 'delivered')
  const first = sql`SELECT domain FROM mta_sts_policies WHERE domain IN ('1.test', 'far.test')`
  const count = sql`SELECT count(*) AS n FROM mta_sts_policies`
  expect([await inside().database.all(first), await inside().database.get(count)]).toEqual([
    [{ domain: 'far.test' }],
    { n: 10_000 },
  ])
})

test('fifty policies of one organizational domain are stored: one more takes the place of one of its own', async () => {
  const { inside, send, until } = await far(trusted, await start('enforce'))
  await inside().database.transaction((tx) =>
    tx.run(sql`WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 50)
      INSERT INTO mta_sts_policies (domain, organizational_domain, policy_id, policy, expires_at, used_at)
      SELECT n || '.far.test', 'far.test', 'one', '{}', '2100-01-01T00:00:00.000Z', printf('2020-01-01T00:00:%02d.000Z', n) FROM counted
      UNION ALL SELECT 'near.test', 'near.test', 'one', '{}', '2100-01-01T00:00:00.000Z', '2019-01-01T00:00:00.000Z'`),
  )
  await until(await send('bob@far.test'), 'delivered')
  const kept = sql`SELECT domain FROM mta_sts_policies WHERE domain IN ('1.far.test', '2.far.test', 'far.test', 'near.test') ORDER BY domain`
  const names = (await inside().database.all<{ domain: string }>(kept)).map(({ domain }) => domain)
  expect(names).toEqual(['2.far.test', 'far.test', 'near.test'])
})

test.each([
  ['redirects', (one: PolicyHost) => (one.status = 302)],
  ['is no text', (one: PolicyHost) => (one.type = 'text/html')],
  ['is too large', (one: PolicyHost) => (one.policy += 'x'.repeat(70_000))],
  ['names more servers than any domain has', (one: PolicyHost) => (one.policy += 'mx: a.test\r\n'.repeat(1000))],
  ['says nothing of a version', (one: PolicyHost) => (one.policy = 'mode: enforce\nmx: mx.far.test\nmax_age: 100\n')],
])('a policy that %s is none', async (_what, spoil) => {
  const policyHost = await start('enforce', 'nobody.test')
  spoil(policyHost)
  const { sink, send, until } = await far(undefined, policyHost)
  await until(await send('bob@far.test'), 'delivered')
  expect([policyHost.asked.length, sink.messages.length]).toEqual([1, 1])
})

test('a policy from a host with a strange certificate is none', async () => {
  const policyHost = await start('enforce', 'nobody.test', 100, strange)
  const { send, until } = await far(undefined, policyHost)
  await until(await send('bob@far.test'), 'delivered')
  expect(policyHost.asked).toEqual([])
})

test('REQUIRETLS goes only where the server is vouched for and keeps the promise', async () => {
  const none = await far(trusted)
  expect(await none.until(await none.send('bob@far.test', { require_tls: true }), 'bounced')).toMatchObject({
    enhanced_code: '5.7.30',
  })
  const without = await far(trusted, await start('enforce'))
  expect(await without.until(await without.send('bob@far.test', { require_tls: true }), 'bounced')).toMatchObject({
    enhanced_code: '5.7.30',
    response: expect.stringContaining('does not offer REQUIRETLS'),
  })
  const stripped = await far(undefined, await start('enforce'))
  expect(await stripped.until(await stripped.send('bob@far.test', { require_tls: true }), 'bounced')).toMatchObject({
    enhanced_code: '5.7.30',
  })
  for (const { sink } of [none, without, stripped])
    expect(sink.commands.filter((line) => /^(?:MAIL|DATA)/.test(line))).toEqual([])
  const sink = await MailSink.start({ tls: trusted, extensions: ['REQUIRETLS'] })
  const whole = await sendingBox(sink.port, {}, { testing: { outsideDial: (await start('enforce')).dial } })
  whole.box.dns
    .mx('far.test', 'mx.far.test')
    .a('mx.far.test', '127.0.0.1')
    .a('mta-sts.far.test', '127.0.0.1')
    .txt('_mta-sts.far.test', 'v=STSv1; id=one;')
  await whole.until(await whole.send('bob@far.test', { require_tls: true }), 'delivered')
  expect(sink.messages[0]!.parameters).toContain('REQUIRETLS')
})
