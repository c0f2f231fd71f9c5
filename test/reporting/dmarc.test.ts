import { expect, test, vi } from 'vitest'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import type { Domain } from '../../src/domains/model.ts'
import { sql } from '../../src/store/database.ts'
import { field } from '../outbound/outgoing.ts'
import { appliance, deliver } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { sendingBox } from '../support/outgoing.ts'
import { rsaKey, sign } from '../support/signed-mail.ts'
import { publish } from '../support/verified-domain.ts'
import { expectValid, hour, plain, publishDomain, reporting, reportIn } from './box.ts'

const on = { PILLARBOX_REPORTS__DMARC: 'true' }

test('a domain that asks for it gets a report on a day of mail in its name, once', async () => {
  const box = await reporting({ ...on, PILLARBOX_REPORTS__ORGANIZATION: 'Smith & Sons <GmbH>' })
  publishDomain(box, 'shop.test', 'v=DMARC1; p=reject; sp=quarantine; adkim=s; fo=1:d; rua=mailto:dmarc@shop.test!1m')
  publishDomain(box, 'other.test', 'v=DMARC1; p=none')
  box.box.dns.txt('evil.test', 'v=spf1 ip4:127.0.0.1 -all')
  const key = rsaKey()
  box.box.dns.txt('one._domainkey.shop.test', key.record)

  for (let time = 0; time < 2; time++) expect(await box.receive('a@shop.test')).toMatch(/^250 /)
  const signed = await sign(plain('a@shop.test', 'ada@pillarbox.test'), 'shop.test', 'one', key)
  expect(await box.receive('a@shop.test', 'list@evil.test', signed)).toMatch(/^250 /)
  expect(await box.receive('a@shop.test', 'x@evil.test')).toMatch(/^550 5\.7\.26/)
  expect(await box.receive('a@news.shop.test', 'x@evil.test')).toMatch(/^250 /)
  expect(await box.receive('a@shop.test', '')).toMatch(/^550 /)
  expect(await box.receive('a@other.test')).toMatch(/^250 /)

  await box.nextDay()
  const [landed] = await box.arrived(1)
  const { report, filename, text } = await reportIn(landed!)
  const shape = { source_ip: '127.0.0.1', header_from: 'shop.test' }
  expect(report).toEqual({
    kind: 'dmarc',
    reporter: 'Smith & Sons <GmbH>',
    report_id: expect.stringMatching(/^2026-11-20\.[0-9a-f]{16}@pillarbox\.test$/),
    domain: 'shop.test',
    begins_at: '2026-11-20T00:00:00.000Z',
    ends_at: '2026-11-20T23:59:59.000Z',
    policy: { discovery_method: 'treewalk', p: 'reject', sp: 'quarantine', fo: '1:d', adkim: 's', aspf: 'r', testing: 'n' },
    rows: expect.arrayContaining([
      { ...shape, count: 2, disposition: 'pass', dkim: 'fail', spf: 'pass' },
      { ...shape, count: 1, disposition: 'pass', dkim: 'pass', spf: 'fail' },
      { ...shape, count: 1, disposition: 'reject', dkim: 'fail', spf: 'fail' },
      { ...shape, count: 1, disposition: 'reject', dkim: 'fail', spf: 'fail' },
      { ...shape, count: 1, disposition: 'quarantine', dkim: 'fail', spf: 'fail', header_from: 'news.shop.test' },
    ]),
    rows_left_out: 0,
    pass: 3,
    fail: 3,
  })
  expectValid(text)
  expect(text).toContain('<dkim>\n<domain>shop.test</domain>\n<selector>one</selector>\n<result>pass</result>\n</dkim>')
  expect(text).toContain('<envelope_from></envelope_from>')

  expect(landed!.to).toEqual(['dmarc@shop.test'])
  expect(landed!.from).toBe('dmarc@pillarbox.test')
  const unique = /\.([0-9a-f]{16})@/.exec((report as { report_id: string }).report_id)![1]
  expect(filename).toBe(`pillarbox.test!shop.test!1795132800!1795219199!${unique}.xml.gz`)
  const head = (name: string): string | undefined => field(landed!.raw, name)
  expect(head('subject')).toBe(
    `Report Domain: shop.test Submitter: pillarbox.test Report-ID: <${(report as { report_id: string }).report_id}>`,
  )
  expect(head('auto-submitted')).toBe('auto-generated')
  expect(head('reply-to')).toBe('<postmaster@pillarbox.test>')

  // neither again in five minutes, nor after a restart
  await box.job('send-reports')
  await box.box.restart()
  box.clock.advance(hour)
  await box.job('send-reports')
  await box.nextDay()
  expect(box.sink.messages).toHaveLength(1)
  expect(box.rows('SELECT * FROM outbound_report_messages')).toEqual([])
  expect(box.rows('SELECT * FROM outbound_report_counts')).toEqual([])
  expect(box.box.logged.filter((line) => line.includes('report sent'))).toHaveLength(1)
})

test('a report passes DMARC where it arrives: its signature holds', async () => {
  const box = await reporting(on)
  publishDomain(box, 'shop.test', 'v=DMARC1; p=none; rua=mailto:dmarc@shop.test')
  await box.receive('a@shop.test')
  await box.nextDay()
  const [landed] = await box.arrived(1)
  const { body } = await box.box.call<{ data: Domain[] }>('GET', '/v1/domains')
  publish(box.box.dns, body.data[0]!)
  const records = new Map(body.data[0]!.dns_records.map(({ name, value }) => [name, value]))
  const { results } = await dkimVerify(landed!.octets, { resolver: async (name: string) => [[records.get(name) ?? '']] })
  expect(results.map(({ status, signingDomain }) => [status.result, signingDomain])).toEqual([
    ['pass', 'pillarbox.test'],
    ['pass', 'pillarbox.test'],
  ])
})

test('a box that is told keeps the report under the name of who sent it', async () => {
  const shop = await appliance({ PILLARBOX_MAIL__DOMAIN: 'shop.test', PILLARBOX_HOSTNAME: 'mx.shop.test' })
  const clock = new HeldClock()
  const servers = { PILLARBOX_DNS__SERVERS: shop.dns.servers.join(',') }
  const box = await sendingBox(shop.smtp.port, { ...on, ...servers, PILLARBOX_REPORTS__TLS: 'true' }, { clock })
  shop.dns.txt('_dmarc.shop.test', 'v=DMARC1; p=none; rua=mailto:dmarc@shop.test').mx('shop.test', 'mx.shop.test')
  shop.dns.txt('_smtp._tls.shop.test', 'v=TLSRPTv1; rua=mailto:tlsrpt@shop.test').a('mx.shop.test', '127.0.0.1')
  const { body } = await box.box.call<{ data: Domain[] }>('GET', '/v1/domains')
  publish(shop.dns, body.data[0]!)
  const raw = plain('a@shop.test', 'ada@pillarbox.test')
  expect(await deliver(box.box.smtp, { from: 'a@shop.test', to: 'ada@pillarbox.test', raw })).toMatch(/^250 /)
  await box.until(await box.send('nobody@shop.test'), 'bounced')

  const job = (name: string): Promise<void> => box.box.app.jobs.find((one) => one.name === name)!.run()
  await job('write-report-results')
  clock.advance(19 * hour)
  await job('send-reports')
  const [domain] = (await shop.call('GET', '/v1/domains')).body.data
  const kept = await vi.waitFor(async () => {
    const { data } = (await shop.call('GET', `/v1/domains/${domain.id}/reports`)).body
    expect(data).toHaveLength(2)
    return data
  }, 100_000)
  const common = { reporter: 'pillarbox.test', begins_at: '2026-11-20T00:00:00.000Z' }
  expect(kept).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        ...common,
        kind: 'dmarc',
        data: expect.objectContaining({ verified_domain: 'pillarbox.test', rows: [expect.objectContaining({ count: 1 })] }),
      }),
      expect.objectContaining({
        ...common,
        kind: 'tls',
        data: expect.objectContaining({
          verified_domain: 'pillarbox.test',
          policies: [expect.objectContaining({ successful: 1 })],
        }),
      }),
    ]),
  )
})

test('what the policy asked for and was not done has its reason', async () => {
  const box = await reporting({ ...on, PILLARBOX_MAIL__DMARC: 'quarantine' })
  publishDomain(box, 'strict.test', 'v=DMARC1; p=reject; rua=mailto:d@strict.test')
  publishDomain(box, 'tries.test', 'v=DMARC1; p=quarantine; t=y; rua=mailto:d@tries.test')
  expect(await box.receive('a@strict.test', 'x@evil.test')).toMatch(/^250 /)
  expect(await box.receive('a@tries.test', 'x@evil.test')).toMatch(/^250 /)
  await box.nextDay()
  const texts = await Promise.all((await box.arrived(2)).map(async (landed) => (await reportIn(landed)).text))
  for (const text of texts) expectValid(text)
  const of = (domain: string): string => texts.find((text) => text.includes(`<header_from>${domain}`))!
  expect(of('strict.test')).toMatch(/<disposition>quarantine<[^]*<type>local_policy</)
  expect(of('tries.test')).toMatch(/<disposition>none<[^]*<type>policy_test_mode</)
})

test('reports on reports, and mail to return paths, are not counted', async () => {
  const box = await reporting(on)
  publishDomain(box, 'shop.test', 'v=DMARC1; p=none; rua=mailto:d@shop.test')
  for (const to of ['dmarc@pillarbox.test', 'tlsrpt@pillarbox.test']) {
    expect(await deliver(box.box.smtp, { from: 'a@shop.test', to, raw: plain('a@shop.test', to) })).toMatch(/^250 /)
  }
  await box.job('write-report-results')
  expect(box.rows('SELECT * FROM outbound_reports')).toEqual([])
})

test('off, nothing is counted and nothing sent; a reload puts it on, and off again forgets what was counted', async () => {
  const box = await reporting({})
  publishDomain(box, 'shop.test', 'v=DMARC1; p=none; rua=mailto:d@shop.test')
  await box.receive('a@shop.test')
  await box.nextDay()
  expect(box.rows('SELECT * FROM outbound_reports')).toEqual([])
  await box.reload(on)
  await box.receive('a@shop.test')
  await box.job('write-report-results')
  expect(box.rows('SELECT domain, rows FROM outbound_reports')).toEqual([{ domain: 'shop.test', rows: 1 }])
  await box.reload({})
  await box.nextDay()
  await box.job('clear-reports')
  expect(box.rows('SELECT * FROM outbound_reports')).toEqual([])
  expect(box.rows('SELECT * FROM outbound_report_counts')).toEqual([])
  expect(box.sink.messages).toEqual([])
})

test('what was counted outlives a restart, and is added to', async () => {
  const box = await reporting(on)
  publishDomain(box, 'shop.test', 'v=DMARC1; p=none; rua=mailto:d@shop.test')
  await box.receive('a@shop.test')
  await box.box.restart()
  await box.receive('b@shop.test')
  await box.nextDay()
  const { report } = await reportIn((await box.arrived(1))[0]!)
  expect(report).toMatchObject({ rows: [{ count: 2 }], pass: 2 })
})

test('a report that is put off is delivered after a restart, once and as it was', async () => {
  const box = await reporting(on)
  publishDomain(box, 'shop.test', 'v=DMARC1; p=none; rua=mailto:d@shop.test')
  box.sink.script = (line) => (line === '<end>' ? '451 4.3.0 Not now' : undefined)
  await box.receive('a@shop.test')
  await box.nextDay()
  const deferred = "SELECT 1 FROM deliveries_queue WHERE kind = 'report' AND state = 'waiting' AND attempts = 1"
  await vi.waitFor(() => expect(box.rows(deferred)).toHaveLength(1), 100_000)
  box.sink.script = undefined
  box.clock.advance(hour)
  await box.box.restart()
  const [landed] = await box.arrived(1)
  expect(landed!.raw).toBe(box.sink.rejected[0])
  await box.job('send-reports')
  expect(box.sink.messages).toHaveLength(1)
})

function record(to: string): string {
  return `v=DMARC1; p=none; rua=${to}`
}

test('somebody else gets reports on a domain only where they say so', async () => {
  const box = await reporting(on)
  publishDomain(box, 'asks.test', record('mailto:victim@victim.test, mailto:d@asks.test'))
  publishDomain(box, 'client.test', record('mailto:client@vendor.test'))
  publishDomain(box, 'moved.test', record('mailto:moved@vendor.test'))
  publishDomain(box, 'away.test', record('mailto:away@vendor.test'))
  publishDomain(box, 'parent.test', record('mailto:d@parent.test'))
  publishDomain(box, 'child.parent.test', record('mailto:child@parent.test'))
  for (const name of ['victim.test', 'vendor.test']) box.box.dns.mx(name, `mx.${name}`).a(`mx.${name}`, '127.0.0.1')
  box.box.dns
    .txt('client.test._report._dmarc.vendor.test', 'v=DMARC1;')
    .txt('moved.test._report._dmarc.vendor.test', 'v=DMARC1; rua=mailto:elsewhere@vendor.test')
    .txt('away.test._report._dmarc.vendor.test', 'v=DMARC1; rua=mailto:away@victim.test')
  for (const name of ['asks.test', 'client.test', 'moved.test', 'away.test', 'child.parent.test']) await box.receive(`a@${name}`)
  await box.nextDay()
  const landed = await box.arrived(4)
  expect(landed.flatMap(({ to }) => to).toSorted()).toEqual([
    'child@parent.test',
    'client@vendor.test',
    'd@asks.test',
    'elsewhere@vendor.test',
  ])
})

test('a domain whose DNS does not answer is asked again an hour later, and given up after two days', async () => {
  const box = await reporting(on)
  publishDomain(box, 'shop.test', 'v=DMARC1; p=none; rua=mailto:d@shop.test')
  await box.receive('a@shop.test')
  box.box.dns.fails('_dmarc.shop.test', 'servfail')
  await box.nextDay()
  expect(box.sink.messages).toEqual([])
  box.box.dns.fails('_dmarc.shop.test', null)
  await box.job('send-reports')
  expect(box.sink.messages).toEqual([])
  box.clock.advance(hour)
  await box.job('send-reports')
  await box.arrived(1)

  box.box.dns.fails('_dmarc.shop.test', null)
  await box.receive('a@shop.test')
  box.box.dns.fails('_dmarc.shop.test', 'servfail')
  await box.nextDay()
  box.clock.advance(48 * hour)
  await box.job('clear-reports')
  expect(box.rows('SELECT * FROM outbound_reports')).toEqual([])
})

test('a destination that refuses a report gets no other for two weeks', async () => {
  const box = await reporting(on)
  publishDomain(box, 'shop.test', 'v=DMARC1; p=none; rua=mailto:d@shop.test')
  box.sink.script = (line) => (line.startsWith('RCPT') ? '550 5.1.1 No such user' : undefined)
  const refused = () => box.sink.commands.filter((line) => line.startsWith('RCPT')).length
  await box.receive('a@shop.test')
  await box.nextDay()
  await vi.waitFor(() => expect(box.rows('SELECT * FROM outbound_report_refusals')).toHaveLength(1), 100_000)
  await box.receive('a@shop.test')
  await box.nextDay()
  expect(refused()).toBe(1)
  expect(await box.box.app.metrics.text()).toContain('pillarbox_reports_sent_total{kind="dmarc",result="failed"} 1')
  box.sink.script = undefined
  box.clock.advance(14 * 24 * hour)
  await box.receive('a@shop.test')
  await box.nextDay()
  await box.arrived(1)
})

test('while the disk is short of room no report is made; it leaves once there is room again', async () => {
  const box = await reporting(on)
  publishDomain(box, 'shop.test', 'v=DMARC1; p=none; rua=mailto:d@shop.test')
  await box.receive('a@shop.test')
  box.box.env['PILLARBOX_MIN_FREE'] = '900 TiB'
  await box.box.restart()
  await box.nextDay()
  expect(box.rows('SELECT * FROM outbound_report_messages')).toEqual([])
  expect(box.rows('SELECT domain, done_at FROM outbound_reports')).toEqual([{ domain: 'shop.test', done_at: null }])
  box.box.env['PILLARBOX_MIN_FREE'] = '0'
  await box.box.restart()
  await box.job('send-reports')
  expect((await box.arrived(1))[0]!.to).toEqual(['d@shop.test'])
})

test('a report that is larger than its destination takes is not sent there', async () => {
  const box = await reporting(on)
  publishDomain(box, 'shop.test', 'v=DMARC1; p=none; rua=mailto:small@shop.test!1k,mailto:large@shop.test!10m')
  await box.receive('a@shop.test')
  await box.nextDay()
  expect((await box.arrived(1))[0]!.to).toEqual(['large@shop.test'])
})

test('while its own domain is not verified the box sends no reports, and says why once', async () => {
  const box = await reporting(on)
  publishDomain(box, 'shop.test', 'v=DMARC1; p=none; rua=mailto:d@shop.test')
  await box.inside().database.transaction((tx) => tx.run(sql`UPDATE domains SET status = 'pending'`))
  await box.box.restart()
  await box.receive('a@shop.test')
  await box.nextDay()
  await box.job('send-reports')
  expect(box.sink.messages).toEqual([])
  const said = box.box.logged.filter((line) => line.includes('reports are enabled but cannot be sent'))
  expect(said.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ level: 'warn', why: 'They come from pillarbox.test, which is not verified.' }),
  ])
})
