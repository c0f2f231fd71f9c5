import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Appliance, deliver, message, openAppliance } from '../support/appliance.ts'
import { rows } from '../support/sent.ts'

interface Row {
  domain_id: string
  kind: string
  reporter: string
  report_id: string
  begins_at: string
  ends_at: string
  verified: number
  data: string
}

let box: Appliance
let close: () => Promise<void>

beforeAll(async () => {
  ;({ box, close } = await openAppliance())
  box.dns.txt('googol.test', 'v=spf1 ip4:127.0.0.1 -all').txt('_dmarc.googol.test', 'v=DMARC1; p=none')
})
afterAll(() => close())

const read = (name: string): string => readFileSync(new URL(`../fixtures/reports/${name}.eml`, import.meta.url), 'latin1')
const kept = (): Row[] => rows<Row>(box, 'SELECT * FROM domain_reports ORDER BY seq')
const send = (to: string, raw: string, from = 'noreply-dmarc@elsewhere.test'): Promise<string> =>
  deliver(box.smtp, { from, to, raw })

test('a DMARC report is kept once, and the true sender outranks a stranger who was first', async () => {
  expect(await send('dmarc@pillarbox.test', read('dmarc-zip').replace('@googol.test', '@no-dmarc.test'))).toMatch(/^250 /)
  expect(kept()).toMatchObject([{ kind: 'dmarc', reporter: 'Googol & Sons', verified: 0 }])
  for (let time = 0; time < 2; time++) await send('dmarc@pillarbox.test', read('dmarc-zip'), 'noreply-dmarc@googol.test')
  await send('dmarc@pillarbox.test', read('dmarc-zip').replace('@googol.test', '@no-dmarc.test'))

  const [domain] = rows<{ id: string }>(box, "SELECT id FROM domains WHERE name = 'pillarbox.test'")
  expect(kept()).toMatchObject([
    {
      domain_id: domain!.id,
      kind: 'dmarc',
      reporter: 'Googol & Sons',
      report_id: '1234567890123456789',
      begins_at: '2026-11-19T00:00:00.000Z',
      ends_at: '2026-11-19T23:59:59.000Z',
      verified: 1,
    },
  ])
  expect(JSON.parse(kept()[0]!.data)).toEqual({
    policy: { adkim: 'r', aspf: 'r', p: 'reject', sp: 'reject', pct: '100' },
    rows: [
      { source_ip: '192.0.2.10', count: 7, disposition: 'none', dkim: 'pass', spf: 'fail', header_from: 'pillarbox.test' },
      { source_ip: '203.0.113.9', count: 2, disposition: 'reject', dkim: 'fail', spf: 'fail', header_from: 'pillarbox.test' },
    ],
    pass: 7,
    fail: 2,
    verified_domain: 'googol.test',
  })
})

test('a TLS report is kept with the policies of the domain it came to, and no others', async () => {
  await send('tlsrpt@pillarbox.test', read('tls-gzip'), 'tls@googol.test')
  const row = kept().find(({ kind }) => kind === 'tls')
  expect(row).toMatchObject({ reporter: 'Googol Inc.', report_id: '2026-11-19T00:00:00Z_pillarbox.test' })
  const [one] = JSON.parse(row!.data).policies
  expect(JSON.parse(row!.data).policies).toHaveLength(1)
  expect(one).toMatchObject({ type: 'sts', domain: 'pillarbox.test', successful: 41, failed: 3, failures: [{ count: 3 }] })
})

test('what is of another domain, forged, broken or no report is taken and let go', async () => {
  const before = kept()
  const wrong = [
    read('tls-json').replaceAll(/[A-Za-z0-9+/=]{60,}(?:\r\n[A-Za-z0-9+/=]+)*/g, (base64) =>
      Buffer.from(Buffer.from(base64, 'base64').toString().replaceAll('pillarbox.test', 'others.test')).toString('base64'),
    ),
    // whose From says googol.test, which it is not
    read('dmarc-gzip-rfc9990').replace('dmarc@sofa.test', 'dmarc@googol.test'),
    read('bomb-gzip'),
    read('bomb-zip'),
    read('broken-zip'),
    read('postfix-unknown-user'),
    message({ Subject: 'Hello' }, 'Hello\n'),
  ]
  for (const raw of wrong) expect(await send('dmarc@pillarbox.test', raw)).toMatch(/^250 /)
  expect(kept()).toEqual(before)
  const flaws = box.logged.filter((line) => line.includes('report on a domain discarded')).map((line) => JSON.parse(line).flaw)
  expect(flaws).toEqual([
    'it is about another domain',
    'its sender is forged',
    ...Array.from({ length: 5 }, () => 'it is not a readable report'),
  ])
  // nothing of it is mail of anybody's
  expect(rows(box, 'SELECT id FROM emails')).toEqual([])
})

/** Fills the table of a stopped box. */
async function fill(reports: { id: string; verified: number; received_at: string; octets: number }[]): Promise<void> {
  const [domain] = rows<{ id: string }>(box, "SELECT id FROM domains WHERE name = 'pillarbox.test'")
  await box.app.stop()
  const database = new DatabaseSync(join(box.env['PILLARBOX_DATA_DIR']!, 'pillarbox.db'))
  database.exec('DELETE FROM domain_reports')
  const insert = database.prepare(
    "INSERT INTO domain_reports (domain_id, kind, reporter, report_id, verified, received_at, data) VALUES (?, 'dmarc', 'r', ?, ?, ?, ?)",
  )
  for (const { id, verified, received_at, octets } of reports)
    insert.run(domain!.id, id, verified, received_at, JSON.stringify({ x: 'x'.repeat(octets - 8) }))
  database.close()
  await box.restart()
}

const ids = (): string[] => kept().map(({ report_id }) => report_id)
const today = new Date().toISOString()
const longAgo = new Date(Date.now() - 366 * 86_400_000).toISOString()

test('of very many the oldest go, those first that nobody vouched for', async () => {
  await fill(
    Array.from({ length: 1000 }, (_, index) => ({
      id: String(index),
      verified: index === 5 ? 0 : 1,
      received_at: today,
      octets: 100,
    })),
  )
  await send('dmarc@pillarbox.test', read('dmarc-zip'), 'noreply-dmarc@googol.test')
  expect(ids().slice(0, 7)).toEqual(['0', '1', '2', '3', '4', '6', '7'])
  await send(
    'dmarc@pillarbox.test',
    read('dmarc-gzip-rfc9990').replace('dmarc@sofa.test', 'dmarc@googol.test'),
    'dmarc@googol.test',
  )
  expect(kept()).toHaveLength(1000)
  expect(kept()[0]!.report_id).toBe('1')
})

test('the reports of a domain take eight mebibytes at most: the oldest go, those first that nobody vouched for', async () => {
  const mebibyte = 1024 * 1024
  await fill(
    Array.from({ length: 8 }, (_, index) => ({
      id: String(index),
      verified: index === 6 ? 0 : 1,
      received_at: today,
      octets: mebibyte,
    })),
  )
  await send('dmarc@pillarbox.test', read('dmarc-zip'), 'noreply-dmarc@googol.test')
  expect(ids()).toEqual(['0', '1', '2', '3', '4', '5', '7', '1234567890123456789'])
  await send('dmarc@pillarbox.test', read('dmarc-gzip-rfc9990').replace('dmarc@sofa.test', 'dmarc@no-dmarc.test'))
  expect(ids()).toHaveLength(9)
})

test('what a stranger reports is kept in some kilobytes', async () => {
  await fill([])
  const long = 'x'.repeat(255)
  const row = `<record><row><source_ip>2001:db8::1</source_ip><count>1</count><policy_evaluated><disposition>${long}</disposition><dkim>${long}</dkim><spf>${long}</spf></policy_evaluated></row><identifiers><header_from>${long}</header_from></identifiers></record>`
  const xml = `<feedback><report_metadata><org_name>o</org_name><report_id>i</report_id></report_metadata><policy_published><domain>pillarbox.test</domain></policy_published>${row.repeat(500)}</feedback>`
  const base64 = gzipSync(xml).toString('base64').replaceAll(/.{76}/g, '$&\r\n')
  const head = {
    Subject: 'Report Domain: pillarbox.test',
    'Content-Type': 'application/gzip',
    'Content-Transfer-Encoding': 'base64',
  }
  await send('dmarc@pillarbox.test', message(head, `${base64}\n`))
  expect(kept()).toHaveLength(1)
  expect(kept()[0]!.data.length).toBeLessThan(65 * 1024)
})

test('reports are removed a year after they came, those of a verified sender too', async () => {
  await fill(
    Array.from({ length: 250 }, (_, index) => ({
      id: String(index),
      verified: index % 2,
      received_at: index < 240 ? longAgo : today,
      octets: 100,
    })),
  )
  const job = box.app.jobs.find(({ name }) => name === 'forget-reports')
  await job!.run()
  expect(ids()).toEqual(['240', '241', '242', '243', '244', '245', '246', '247', '248', '249'])
})
