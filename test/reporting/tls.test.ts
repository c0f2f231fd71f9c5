import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { certificate } from '../../src/certificates/self-signed.ts'
import type { Pair } from '../../src/certificates/pair.ts'
import type { OutsideDial } from '../../src/net/outside.ts'
import { tlsReport } from '../../src/message/reports/tls-report.ts'
import { tlsJson, type TlsRecord } from '../../src/reporting/tls-json.ts'
import { field } from '../outbound/outgoing.ts'
import { PolicyHost } from '../support/policy-host.ts'
import { reportIn, reporting, type Reporting } from './box.ts'

const on = { PILLARBOX_REPORTS__TLS: 'true' }
const before = getCACertificates('default')

/** Certificates of `mx.far.test`, its policy host and where it takes reports; and one of `mx.far.test` that nobody trusts. */
let trusted: Pair
let host: Pair
let strange: Pair

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

/** A box, and far.test with a server of this certificate, which wants reports at this URI. */
async function far(
  pair: Pair | undefined,
  { policy, dial, rua = 'mailto:tls@far.test' }: { policy?: PolicyHost; dial?: OutsideDial; rua?: string } = {},
): Promise<Reporting> {
  const outsideDial = dial ?? policy?.dial
  const box = await reporting(on, {
    sink: pair ? { tls: pair } : {},
    testing: outsideDial ? { outsideDial } : {},
  })
  const { dns } = box.box
  dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1').a('mta-sts.far.test', '127.0.0.1')
  dns.txt('_smtp._tls.far.test', `v=TLSRPTv1; rua=${rua}`)
  if (policy) dns.txt('_mta-sts.far.test', 'v=STSv1; id=one;')
  return box
}

async function policiesOf(box: Reporting, mail: number): Promise<unknown> {
  await box.nextDay()
  const landed = (await box.arrived(mail)).at(-1)!
  return (JSON.parse((await reportIn(landed)).text) as { policies: unknown }).policies
}

const sts = (mode: string): object => ({
  'policy-type': 'sts',
  'policy-string': ['version: STSv1', `mode: ${mode}`, 'mx: mx.far.test', 'max_age: 86400'],
  'policy-domain': 'far.test',
  'mx-host': ['mx.far.test'],
})
const none = { 'policy-type': 'no-policy-found', 'policy-domain': 'far.test' }
const summary = (good: number, bad: number): object => ({
  'total-successful-session-count': good,
  'total-failure-session-count': bad,
})
const server = { 'sending-mta-ip': '127.0.0.1', 'receiving-mx-hostname': 'mx.far.test', 'receiving-ip': '127.0.0.1' }

test('the format is that of RFC 8460 appendix B', () => {
  const policy: TlsRecord['policy'] = {
    type: 'sts',
    domain: 'company-y.example',
    strings: ['version: STSv1', 'mode: testing', 'mx: *.mail.company-y.example', 'max_age: 86400'],
    mx_hosts: ['*.mail.company-y.example'],
  }
  const failure = { reason: null, sending_ip: null, receiving_ip: null, receiving_mx: null }
  const text = tlsJson({
    organization: 'Company-X',
    contact: 'sts-reporting@company-x.example',
    report_id: '5065427c-23d3-47ca-b6e0-946ea0e8c4be',
    begin: Date.UTC(2016, 3, 1),
    end: Date.UTC(2016, 3, 1, 23, 59, 59),
    rows: [
      { count: 5326, record: { policy, failure: null } },
      {
        count: 100,
        record: {
          policy,
          failure: {
            ...failure,
            type: 'certificate-expired',
            sending_ip: '2001:db8:abcd:0012::1',
            receiving_mx: 'mx1.mail.company-y.example',
          },
        },
      },
      {
        count: 3,
        record: {
          policy,
          failure: {
            type: 'validation-failure',
            reason: 'X509_V_ERR_PROXY_PATH_LENGTH_EXCEEDED',
            sending_ip: '198.51.100.62',
            receiving_ip: '203.0.113.58',
            receiving_mx: 'mx-backup.mail.company-y.example',
          },
        },
      },
    ],
  })
  expect(JSON.parse(text)).toEqual({
    'organization-name': 'Company-X',
    'date-range': { 'start-datetime': '2016-04-01T00:00:00Z', 'end-datetime': '2016-04-01T23:59:59Z' },
    'contact-info': 'sts-reporting@company-x.example',
    'report-id': '5065427c-23d3-47ca-b6e0-946ea0e8c4be',
    policies: [
      {
        policy: {
          'policy-type': 'sts',
          'policy-string': ['version: STSv1', 'mode: testing', 'mx: *.mail.company-y.example', 'max_age: 86400'],
          'policy-domain': 'company-y.example',
          'mx-host': ['*.mail.company-y.example'],
        },
        summary: { 'total-successful-session-count': 5326, 'total-failure-session-count': 103 },
        'failure-details': [
          {
            'result-type': 'certificate-expired',
            'sending-mta-ip': '2001:db8:abcd:0012::1',
            'receiving-mx-hostname': 'mx1.mail.company-y.example',
            'failed-session-count': 100,
          },
          {
            'result-type': 'validation-failure',
            'sending-mta-ip': '198.51.100.62',
            'receiving-ip': '203.0.113.58',
            'receiving-mx-hostname': 'mx-backup.mail.company-y.example',
            'failed-session-count': 3,
            'failure-reason-code': 'X509_V_ERR_PROXY_PATH_LENGTH_EXCEEDED',
          },
        ],
      },
    ],
  })
  expect(tlsReport(text)).toMatchObject({ policies: [{ domain: 'company-y.example', successful: 5326, failed: 103 }] })
})

test('sessions under a policy are reported by mail to the domain', async () => {
  const box = await far(trusted, { policy: await PolicyHost.start(host, { mode: 'enforce', mx: 'mx.far.test' }) })
  await box.until(await box.send('bob@far.test'), 'delivered')
  await box.nextDay()
  const landed = (await box.arrived(2))[1]!
  const { report, filename, text } = await reportIn(landed)
  expect(report).toEqual({
    kind: 'tls',
    reporter: 'pillarbox.test',
    report_id: expect.stringMatching(/^2026-11-20\.[0-9a-f]{16}@pillarbox\.test$/),
    begins_at: '2026-11-20T00:00:00.000Z',
    ends_at: '2026-11-20T23:59:59.000Z',
    policies: [{ type: 'sts', domain: 'far.test', successful: 1, failed: 0, failures: [] }],
  })
  expect(JSON.parse(text)).toMatchObject({
    'contact-info': 'postmaster@pillarbox.test',
    policies: [{ policy: sts('enforce'), summary: summary(1, 0) }],
  })
  expect(filename).toMatch(/^pillarbox\.test!far\.test!1795132800!1795219199![0-9a-f]{16}\.json\.gz$/)
  expect(landed.from).toBe('tlsrpt@pillarbox.test')
  expect(landed.to).toEqual(['tls@far.test'])
  const head = (name: string): string | undefined => field(landed.raw, name)
  expect(head('tls-report-domain')).toBe('far.test')
  expect(head('tls-report-submitter')).toBe('pillarbox.test')
  expect(head('content-type')).toMatch(/^multipart\/report; report-type="tlsrpt"; boundary=/)
  expect(head('subject')).toMatch(/^Report Domain: far\.test Submitter: pillarbox\.test Report-ID: <2026-11-20\./)
  expect(landed.raw).toContain('Content-Type: application/tlsrpt+gzip')
  expect(head('dkim-signature')).toContain('d=pillarbox.test')
  // it is not itself counted
  await box.job('write-report-results')
  expect(box.rows("SELECT day FROM outbound_reports WHERE day > '2026-11-20'")).toEqual([])
})

test('a certificate that a policy in testing would not take is reported, though the mail went', async () => {
  const box = await far(strange, { policy: await PolicyHost.start(host, { mode: 'testing', mx: 'mx.far.test' }) })
  await box.until(await box.send('bob@far.test'), 'delivered')
  expect(await policiesOf(box, 2)).toEqual([
    {
      policy: sts('testing'),
      summary: summary(0, 1),
      'failure-details': [
        {
          'result-type': 'certificate-not-trusted',
          ...server,
          'failed-session-count': 1,
          'failure-reason-code': 'DEPTH_ZERO_SELF_SIGNED_CERT',
        },
      ],
    },
  ])
})

test('without a policy TLS is enough, whoever signed; a server without it is a failure', async () => {
  const box = await far(strange)
  await box.until(await box.send('bob@far.test'), 'delivered')
  box.sink.script = (line) => (line === 'STARTTLS' ? '454 4.7.0 Not now' : undefined)
  // the next message has a connection of its own
  await box.reload({})
  await box.until(await box.send('bob@far.test'), 'delivered')
  expect(await policiesOf(box, 3)).toEqual([
    {
      policy: none,
      summary: summary(1, 1),
      'failure-details': [{ 'result-type': 'starttls-not-supported', ...server, 'failed-session-count': 1 }],
    },
  ])
})

test('what hinders all other mail does not hinder the report', async () => {
  const box = await far(strange, { policy: await PolicyHost.start(host, { mode: 'enforce', mx: 'mx.far.test' }) })
  await box.until(await box.send('bob@far.test'), 'deferred')
  expect(await policiesOf(box, 1)).toEqual([
    {
      policy: sts('enforce'),
      summary: summary(0, 1),
      'failure-details': [
        {
          'result-type': 'certificate-not-trusted',
          ...server,
          'failed-session-count': 1,
          'failure-reason-code': 'DEPTH_ZERO_SELF_SIGNED_CERT',
        },
      ],
    },
  ])
})

test('a server that the policy does not name is reported', async () => {
  const box = await far(trusted, { policy: await PolicyHost.start(host, { mode: 'enforce', mx: 'other.far.test' }) })
  await box.until(await box.send('bob@far.test'), 'deferred')
  expect(await policiesOf(box, 1)).toMatchObject([
    {
      summary: summary(0, 1),
      'failure-details': [
        { 'result-type': 'validation-failure', 'failed-session-count': 1, 'failure-reason-code': 'mx-not-in-policy' },
      ],
    },
  ])
})

test.each([
  ['that is not there', 'sts-policy-fetch-error', (policy: PolicyHost) => void (policy.status = 404)],
  ['that cannot be read', 'sts-policy-invalid', (policy: PolicyHost) => void (policy.policy = 'version: STSv1\r\n')],
])('a policy %s is reported beside the session', async (_what, type, spoil) => {
  const policy = await PolicyHost.start(host, { mode: 'enforce', mx: 'mx.far.test' })
  spoil(policy)
  const box = await far(trusted, { policy })
  await box.until(await box.send('bob@far.test'), 'delivered')
  expect(await policiesOf(box, 2)).toEqual(
    expect.arrayContaining([
      { policy: none, summary: summary(1, 0) },
      {
        policy: { 'policy-type': 'sts', 'policy-domain': 'far.test' },
        summary: summary(0, 1),
        'failure-details': [expect.objectContaining({ 'result-type': type, 'failed-session-count': 1 })],
      },
    ]),
  )
})

test('a policy host whose certificate is no good is reported as such', async () => {
  const box = await far(trusted, { policy: await PolicyHost.start(strange, { mode: 'enforce', mx: 'mx.far.test' }) })
  await box.until(await box.send('bob@far.test'), 'delivered')
  expect(JSON.stringify(await policiesOf(box, 2))).toContain('"result-type":"sts-webpki-invalid"')
})

test('a report is posted where the domain asks for that; nowhere that is private', async () => {
  const posted: { type: string | undefined; body: Buffer }[] = []
  let status = 503
  const taker = createServer({ cert: host.cert, key: host.key }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      posted.push({ type: request.headers['content-type'], body: Buffer.concat(chunks) })
      response.writeHead(status).end()
    })
  })
  taker.listen(0, '127.0.0.1')
  await once(taker, 'listening')
  onTestFinished(() => void taker.close())
  const { port } = taker.address() as AddressInfo
  const dial: OutsideDial = ({ hostname }, done) => {
    const socket = connect({ host: '127.0.0.1', port, servername: hostname })
    socket.once('error', (error) => done(error, null))
    socket.once('secureConnect', () => done(null, socket))
  }
  const rua = 'https://mta-sts.far.test/reports,https://10.1.2.3/reports,http://mta-sts.far.test/clear'
  const box = await far(trusted, { dial, rua })
  await box.until(await box.send('bob@far.test'), 'delivered')
  await box.nextDay()
  await vi.waitFor(() => expect(posted).toHaveLength(1), 100_000)
  // deferred, and tried again
  const deferred =
    "SELECT 1 FROM deliveries_queue WHERE load LIKE '%//mta-sts.far.test/reports%' AND state = 'waiting' AND attempts = 1"
  await vi.waitFor(() => expect(box.rows(deferred)).toHaveLength(1), 100_000)
  status = 201
  box.clock.advance(10 * 60_000)
  box.inside().queue.wake()
  await vi.waitFor(() => expect(posted).toHaveLength(2), 100_000)
  expect(posted[0]).toEqual(posted[1])
  expect(posted[1]!.type).toBe('application/tlsrpt+gzip')
  expect(tlsReport(gunzipSync(posted[1]!.body).toString())).toMatchObject({ kind: 'tls', policies: [{ domain: 'far.test' }] })
  expect(box.box.logged.join('')).not.toContain('mta-sts.far.test/clear')
  const waiting = box.rows<{ load: string; state: string }>("SELECT load, state FROM deliveries_queue WHERE kind = 'report'")
  expect(waiting.filter(({ load }) => load.includes('10.1.2.3')).map(({ state }) => state)).not.toEqual(['done'])
})

test('off, no session is counted; a domain that asks for nothing gets nothing', async () => {
  const box = await reporting({})
  box.box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  await box.until(await box.send('bob@far.test'), 'delivered')
  await box.job('write-report-results')
  expect(box.rows('SELECT * FROM outbound_reports')).toEqual([])
  await box.reload(on)
  await box.until(await box.send('bob@far.test'), 'delivered')
  await box.nextDay()
  expect(box.rows('SELECT * FROM outbound_report_messages')).toEqual([])
  expect(box.sink.messages).toHaveLength(2)
})
