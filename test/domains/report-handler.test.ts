import { readFileSync } from 'node:fs'
import { openStore } from '../support/open-store.ts'
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
  sender: string
  data: string
}

let box: Appliance
let close: () => Promise<void>

beforeAll(async () => {
  ;({ box, close } = await openAppliance())
  for (const name of ['googol.test', 'evil.test'])
    box.dns.txt(name, 'v=spf1 ip4:127.0.0.1 -all').txt(`_dmarc.${name}`, 'v=DMARC1; p=none')
})
afterAll(() => close())

const read = (name: string): string => readFileSync(new URL(`../fixtures/reports/${name}.eml`, import.meta.url), 'latin1')
const readFrom = (domain: string): string => read('dmarc-zip').replace('@googol.test', `@${domain}`)
const kept = (): Row[] => rows<Row>(box, 'SELECT * FROM domain_reports ORDER BY seq')
const send = (to: string, raw: string, from = 'noreply-dmarc@elsewhere.test'): Promise<string> =>
  deliver(box.smtp, { from, to, raw })

test('a DMARC report is kept once, and takes no place from one that another sent before under the same name and id', async () => {
  expect(await send('dmarc@pillarbox.test', readFrom('no-dmarc.test'))).toMatch(/^250 /)
  expect(await send('dmarc@pillarbox.test', readFrom('evil.test'), 'eve@evil.test')).toMatch(/^250 /)
  expect(kept()).toMatchObject([
    { kind: 'dmarc', reporter: 'Googol & Sons', sender: '' },
    { kind: 'dmarc', reporter: 'Googol & Sons', sender: 'evil.test' },
  ])
  for (let time = 0; time < 2; time++) await send('dmarc@pillarbox.test', read('dmarc-zip'), 'noreply-dmarc@googol.test')
  await send('dmarc@pillarbox.test', readFrom('no-dmarc.test'))
  const listed = await box.call('GET', `/v1/domains/${kept()[0]!.domain_id}/reports`)
  expect(listed.body.data.map(({ data }) => data.verified_domain)).toEqual(['googol.test', 'evil.test', null])

  const [domain] = rows<{ id: string }>(box, "SELECT id FROM domains WHERE name = 'pillarbox.test'")
  expect(kept().slice(2)).toMatchObject([
    {
      domain_id: domain!.id,
      kind: 'dmarc',
      reporter: 'Googol & Sons',
      report_id: '1234567890123456789',
      begins_at: '2026-11-19T00:00:00.000Z',
      ends_at: '2026-11-19T23:59:59.000Z',
      sender: 'googol.test',
    },
  ])
  expect(JSON.parse(kept()[2]!.data)).toEqual({
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
  const flaws = (): unknown[] =>
    box.logged.filter((line) => line.includes('report on a domain discarded')).map((line) => JSON.parse(line).flaw)
  await expect
    .poll(flaws)
    .toEqual([
      'it is about another domain',
      'its sender is forged',
      ...Array.from({ length: 5 }, () => 'it is not a readable report'),
    ])
  // nothing of it is mail of anybody's
  expect(rows(box, 'SELECT id FROM emails')).toEqual([])
})

/** Fills the table of a stopped box. */
async function fill(reports: { id: string; sender: string; received_at: string; octets: number }[]): Promise<void> {
  const [domain] = rows<{ id: string }>(box, "SELECT id FROM domains WHERE name = 'pillarbox.test'")
  await box.app.stop()
  const database = openStore(join(box.env['PILLARBOX_DATA_DIR']!, 'pillarbox.db'))
  database.exec('DELETE FROM domain_reports')
  const insert = database.prepare(
    `INSERT INTO domain_reports (domain_id, kind, reporter, report_id, sender, site, received_at, data)
      VALUES (?, 'dmarc', 'r', ?, ?, ?, ?, ?)`,
  )
  for (const { id, sender, received_at, octets } of reports) {
    const site = sender.split('.').slice(-2).join('.')
    insert.run(domain!.id, id, sender, site, received_at, JSON.stringify({ x: 'x'.repeat(octets - 8) }))
  }
  database.close()
  await box.restart()
}

/** Removes what exceeds the limits; a domain may exceed them by a tenth until then. */
async function trim(): Promise<void> {
  await box.app.jobs.find(({ name }) => name === 'forget-reports')!.run()
}

const ids = (): string[] => kept().map(({ report_id }) => report_id)

/** Sends one more report, and removes what exceeds the limits. */
async function fresh(): Promise<void> {
  await send('dmarc@pillarbox.test', read('dmarc-zip'), 'noreply-dmarc@googol.test')
  await trim()
}

const today = new Date().toISOString()
const longAgo = new Date(Date.now() - 366 * 86_400_000).toISOString()

test('of very many the oldest go, those first that nobody vouched for', async () => {
  await fill(
    Array.from({ length: 1000 }, (_, index) => ({
      id: String(index),
      sender: index === 5 ? '' : 'old.test',
      received_at: today,
      octets: 100,
    })),
  )
  await fresh()
  expect(ids().slice(0, 7)).toEqual(['0', '1', '2', '3', '4', '6', '7'])
  await send(
    'dmarc@pillarbox.test',
    read('dmarc-gzip-rfc9990').replace('dmarc@sofa.test', 'dmarc@googol.test'),
    'dmarc@googol.test',
  )
  await trim()
  expect(kept()).toHaveLength(1000)
  expect(kept()[0]!.report_id).toBe('1')
})

test('the reports of a domain take eight mebibytes at most: the oldest go, those first that nobody vouched for', async () => {
  const mebibyte = 1024 * 1024
  await fill(
    Array.from({ length: 8 }, (_, index) => ({
      id: String(index),
      sender: index === 6 ? '' : 'old.test',
      received_at: today,
      octets: mebibyte,
    })),
  )
  await fresh()
  expect(ids()).toEqual(['0', '1', '2', '3', '4', '5', '7', '1234567890123456789'])
  await send('dmarc@pillarbox.test', read('dmarc-gzip-rfc9990').replace('dmarc@sofa.test', 'dmarc@no-dmarc.test'))
  expect(ids()).toHaveLength(9)
})

test.each([
  ['many reports', 1000, 100, () => 'evil.test'],
  ['many reports under many names of its own', 1000, 100, (index: number) => `r${index}.evil.test`],
  ['large reports', 128, 65_536, () => 'evil.test'],
  ['large reports under many names of its own', 128, 65_536, (index: number) => `r${index}.evil.test`],
])('a sender of %s loses its oldest, and takes no place from others', async (_, number, octets, sender) => {
  const [few, rest] = [5, number - 5]
  const honest = Array.from({ length: few }, (_one, index) => ({
    id: `h${index}`,
    sender: 'honest.test',
    received_at: today,
    octets,
  }))
  const evil = Array.from({ length: rest }, (_one, index) => ({
    id: `e${index}`,
    sender: sender(index),
    received_at: today,
    octets,
  }))
  await fill([...honest, ...evil])
  await fresh()
  expect(ids().slice(0, few)).toEqual(['h0', 'h1', 'h2', 'h3', 'h4'])
  expect(ids().at(few)).not.toBe('e0')
  expect(kept().filter((one) => one.sender === 'googol.test')).toHaveLength(1)
  expect(kept().length).toBeLessThanOrEqual(1000)
})

test.each([
  ['reports', 1099, 100],
  ['bytes', 141, 65_536],
])('a domain has at most a tenth more %s than the limit, whenever they are removed', async (_, number, octets) => {
  await fill(Array.from({ length: number }, (_one, index) => ({ id: `e${index}`, sender: '', received_at: today, octets })))
  await send('dmarc@pillarbox.test', read('dmarc-zip'), 'noreply-dmarc@googol.test')
  expect(kept().length).toBeLessThanOrEqual(1000)
  expect(kept().reduce((sum, { data }) => sum + data.length, 0)).toBeLessThanOrEqual(8 * 1024 * 1024)
  expect(ids().at(-1)).toBe('1234567890123456789')
})

const small = (id: string, sender: string) => ({ id, sender, received_at: today, octets: 100 })

test('of one site the domain with most loses its oldest', async () => {
  await fill([
    small('h', 'dmarc.honest.test'),
    ...Array.from({ length: 999 }, (_, index) => small(`e${index}`, 'other.honest.test')),
  ])
  await fresh()
  expect(ids().slice(0, 2)).toEqual(['h', 'e1'])
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
      sender: index % 2 === 0 ? '' : 'old.test',
      received_at: index < 240 ? longAgo : today,
      octets: 100,
    })),
  )
  await trim()
  expect(ids()).toEqual(['240', '241', '242', '243', '244', '245', '246', '247', '248', '249'])
})
