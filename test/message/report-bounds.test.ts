import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { readXml } from '../../src/message/markup.ts'
import { parse } from '../../src/message/parse.ts'
import type { DmarcReport, Report, TlsReport } from '../../src/message/reports/reported.ts'

const metadata = '<report_metadata><org_name>o</org_name><report_id>i</report_id></report_metadata>'
const policy = '<policy_published><domain>d.test</domain></policy_published>'

interface Row {
  ip?: string
  count?: string
  disposition?: string
  dkim?: string
  spf?: string
  from?: string
}

const row = ({
  ip = '192.0.2.1',
  count = '1',
  disposition = 'none',
  dkim = 'pass',
  spf = 'pass',
  from = 'd.test',
}: Row): string =>
  `<record><row><source_ip>${ip}</source_ip><count>${count}</count><policy_evaluated><disposition>${disposition}</disposition>` +
  `<dkim>${dkim}</dkim><spf>${spf}</spf></policy_evaluated></row><identifiers><header_from>${from}</header_from></identifiers></record>`

const dmarc = (rows: string, head = ''): Promise<Report | null> =>
  reportIn(`<feedback>${head}${metadata}${policy}${rows}</feedback>`)

/** The report in a message with these texts as gzip files. */
async function reportIn(...texts: string[]): Promise<Report | null> {
  const head = 'From: r@reports.test\r\nSubject: Report domain: d.test\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n'
  const parts = texts.map((text) => {
    const base64 = gzipSync(text).toString('base64').replaceAll(/.{76}/g, '$&\r\n')
    return `--b\r\nContent-Type: application/gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64}\r\n`
  })
  return (await parse(Buffer.from(`${head}${parts.join('')}--b--\r\n`))).report
}

test('XML with a name of more than 64 characters is refused, wherever it is', async () => {
  const nothing = { open: () => {}, text: () => {}, close: () => {} }
  for (const name of ['a'.repeat(65), `n:${'a'.repeat(500_000)}`]) {
    for (const xml of [`<${name}/>`, `<a><b><${name}>`]) expect(() => readXml(xml, nothing)).toThrow('name')
    expect(await dmarc(row({}), `<${name}>x</${name}>`)).toBeNull()
  }
  expect(await dmarc(row({}), `<${'a'.repeat(64)}/>`)).toMatchObject({ kind: 'dmarc', pass: 1 })
})

test('elements that a DMARC report does not have hide nothing of it, and nothing of them is kept', async () => {
  const others = Array.from({ length: 300 }, (_, number) => `<x${number}>y</x${number}>`).join('')
  const report = await dmarc(row({}), `${others}<x><report_metadata><org_name>no</org_name></report_metadata></x>`)
  expect(report).toEqual({
    kind: 'dmarc',
    reporter: 'o',
    report_id: 'i',
    domain: 'd.test',
    begins_at: null,
    ends_at: null,
    policy: {},
    rows: [{ source_ip: '192.0.2.1', count: 1, disposition: 'none', dkim: 'pass', spf: 'pass', header_from: 'd.test' }],
    rows_left_out: 0,
    pass: 1,
    fail: 0,
  })
})

test('fields of a row are what RFC 9990 lets them be: addresses, results and domains', async () => {
  const long = 'x'.repeat(255)
  const report = await dmarc(
    row({ ip: long }) +
      row({ ip: `fe80::1%${long}` }) +
      row({ ip: '2001:DB8::1', disposition: long, dkim: long, spf: 'SoftFail', from: long }) +
      row({ ip: '192.0.2.2', disposition: 'Quarantine', dkim: 'temperror', spf: 'Pass', from: 'News.D.test.' }) +
      row({ ip: '192.0.2.3', disposition: 'pass', dkim: 'oh yes', spf: 'fail', from: 'a b.test' }),
  )
  expect((report as DmarcReport).rows).toEqual([
    { source_ip: '2001:DB8::1', count: 1, disposition: 'none', dkim: 'none', spf: 'softfail', header_from: 'none' },
    { source_ip: '192.0.2.2', count: 1, disposition: 'quarantine', dkim: 'temperror', spf: 'pass', header_from: 'news.d.test' },
    { source_ip: '192.0.2.3', count: 1, disposition: 'pass', dkim: 'none', spf: 'fail', header_from: 'none' },
  ])
})

test('rows of more than 64 KiB in all are left out and counted', async () => {
  const from = Array.from({ length: 4 }, () => 'x'.repeat(60)).join('.')
  const report = (await dmarc(row({ from }).repeat(500))) as DmarcReport
  expect(Buffer.byteLength(JSON.stringify(report.rows))).toBeLessThanOrEqual(64 * 1024)
  expect(report.rows.length).toBeGreaterThan(150)
  expect([report.rows.length + report.rows_left_out, report.pass]).toEqual([500, 500])
})

const other = (mebibytes: number): string => `<other>${' '.repeat(mebibytes * 1024 * 1024)}</other>`

test('the files of a message are decompressed to 10 MiB together', async () => {
  const report = `<feedback>${metadata}${policy}${row({})}</feedback>`
  expect(await reportIn(other(6), report + ' '.repeat(3 * 1024 * 1024))).toMatchObject({ kind: 'dmarc' })
  expect(await reportIn(other(6), report + ' '.repeat(5 * 1024 * 1024))).toBeNull()
})

test('a policy has words of a few letters', async () => {
  const report = await reportIn(
    `<feedback>${metadata}<policy_published><domain>d.test</domain><p>Reject</p><sp>${'x'.repeat(200)}</sp><fo>0:1:d:s</fo></policy_published></feedback>`,
  )
  expect(report).toMatchObject({ policy: { p: 'Reject', fo: '0:1:d:s' } })
  expect((report as DmarcReport).policy).not.toHaveProperty('sp')
})

const failure = (fields: object): object => ({
  'result-type': 'certificate-expired',
  'sending-mta-ip': '192.0.2.77',
  'receiving-mx-hostname': 'MX.d.test.',
  'failed-session-count': 3,
  'failure-reason-code': 'why',
  ...fields,
})
const tls = (policies: object[]): Promise<Report | null> =>
  reportIn(JSON.stringify({ 'organization-name': 'o', 'report-id': 'i', policies }))

test('fields of a TLS report are what RFC 8460 lets them be, and its failures 64 KiB in all', async () => {
  const long = 'x'.repeat(255)
  const odd = failure({ 'result-type': long, 'sending-mta-ip': long, 'receiving-mx-hostname': long })
  const few = (await tls([
    { policy: { 'policy-type': 'sts', 'policy-domain': 'd.test' }, 'failure-details': [failure({}), odd] },
    { policy: { 'policy-type': long, 'policy-domain': 'e.test' } },
    { policy: { 'policy-type': 'sts', 'policy-domain': long } },
  ])) as TlsReport
  expect(few.policies).toEqual([
    {
      type: 'sts',
      domain: 'd.test',
      successful: 0,
      failed: 0,
      failures: [
        { result: 'certificate-expired', count: 3, sending_ip: '192.0.2.77', receiving_mx: 'mx.d.test', reason: 'why' },
        { result: 'unknown', count: 3, sending_ip: null, receiving_mx: null, reason: 'why' },
      ],
    },
    { type: 'unknown', domain: 'e.test', successful: 0, failed: 0, failures: [] },
  ])
  const many = await tls(
    Array.from({ length: 100 }, () => ({
      policy: { 'policy-type': 'sts', 'policy-domain': 'd.test' },
      summary: { 'total-failure-session-count': 7 },
      'failure-details': Array.from({ length: 100 }, () => failure({ 'failure-reason-code': '\\'.repeat(255) })),
    })),
  )
  expect(Buffer.byteLength(JSON.stringify(many))).toBeLessThan(66 * 1024)
  expect((many as TlsReport).policies[0]).toMatchObject({ domain: 'd.test', failed: 7 })
  expect((many as TlsReport).policies[0]!.failures).toHaveLength(100)
})

test('a field that anybody may add makes no delivery report of a person’s message', async () => {
  const text =
    'X-Failed-Recipients: ada@bank.test\r\nSubject: Hello\r\nContent-Type: text/plain\r\n\r\nada@bank.test\r\n550 5.1.1 gone\r\n'
  expect((await parse(Buffer.from(`From: Lee <lee@bank.test>\r\n${text}`))).report).toBeNull()
  for (const from of ['MAILER-DAEMON@bank.test', 'Mail Delivery System <postmaster@bank.test>'])
    expect((await parse(Buffer.from(`From: ${from}\r\n${text}`))).report).toMatchObject({
      kind: 'delivery',
      recipients: [{ final_recipient: 'ada@bank.test' }],
    })
})
