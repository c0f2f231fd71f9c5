import { readdirSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { zipSync } from 'fflate'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { parse } from '../../src/message/parse.ts'
import type { Report } from '../../src/message/reports/reported.ts'
import { randomFrom } from '../support/random.ts'

const folder = new URL('../fixtures/reports/', import.meta.url)
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.eml'))
  .map((name) => name.slice(0, -4))
const read = (name: string): Buffer => readFileSync(new URL(name, folder))

test('there are reports of every kind to read', () => {
  expect(names.length).toBeGreaterThan(30)
})

test.each(names)('%s', async (name) => {
  const expected = z.looseObject({}).parse(JSON.parse(read(`${name}.json`).toString()))
  expect(await parse(read(`${name}.eml`))).toMatchObject(expected)
})

test('of a report with very many rows five hundred are shown and all are counted', async () => {
  const { report } = await parse(read('dmarc-many-rows.eml'))
  expect(report).toMatchObject({ kind: 'dmarc', rows_left_out: 100, pass: 4200 })
  expect((report as Extract<Report, { kind: 'dmarc' }>).rows).toHaveLength(500)
})

const row = '<record><row><source_ip>192.0.2.1</source_ip><count>1</count></row></record>'
const metadata = '<report_metadata><org_name>o</org_name><report_id>i</report_id></report_metadata>'
const start = `<feedback>${metadata}<policy_published><domain>d.test</domain></policy_published>`

test('what would be larger than 10 MiB, or is nested like no report, is not unpacked', async () => {
  const fine = `${start}${row}${' '.repeat(9 * 1024 * 1024)}</feedback>`
  const large = `${start}${row}${' '.repeat(11 * 1024 * 1024)}</feedback>`
  for (const pack of [(text: string) => gzipSync(text), (text: string) => Buffer.from(zipSync({ 'a.xml': Buffer.from(text) }))]) {
    expect((await parse(attached(pack(fine)))).report).toMatchObject({ kind: 'dmarc', domain: 'd.test' })
    expect((await parse(attached(pack(large)))).report).toBeNull()
    expect((await parse(attached(pack(start + '<a>'.repeat(20) + row)))).report).toBeNull()
    expect((await parse(attached(pack(start + '<a/>'.repeat(500_000) + row)))).report).toBeNull()
  }
})

test('a document type declares nothing', async () => {
  const bomb = `<!DOCTYPE f [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;"><!ENTITY x SYSTEM "file:///etc/passwd">]>`
  const { report } = await parse(attached(gzipSync(`${bomb}${start.replace('>o<', '>&b;&x;<')}${row}</feedback>`)))
  expect(report).toMatchObject({ reporter: '&b;&x;' })
})

const seed = Number(process.env['FUZZ_SEED'] ?? 20261121)

test.each([0, 1, 2, 3])('500 broken reports are read without harm (round %i)', async (round) => {
  const roll = randomFrom(seed + round)
  const whole = names.map((name) => read(`${name}.eml`)).filter((raw) => raw.length < 10_000)
  const pick = (): Buffer => whole[roll(whole.length)]!
  for (let count = 0; count < 500; count++) {
    let raw = pick()
    for (let times = roll(4); times >= 0; times--) raw = mutated(raw, pick(), roll)
    const { report } = await parse(raw)
    const faults = report === null ? [] : faultsOf(report)
    expect(faults, `FUZZ_SEED=${seed + round}, message ${count}:\n${raw.toString('latin1')}`).toEqual([])
  }
  expect('polluted' in {}).toBe(false)
})

/** Whatever came in, what comes out is short, in one line and of its kind. */
function faultsOf(report: Report): string[] {
  const texts: string[] = []
  const walk = (value: unknown): void => {
    if (typeof value === 'string') texts.push(value)
    else if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) walk(one)
  }
  walk(report)
  const long = texts.filter((text) => text.length > 1000 || /[\r\n\0]/.test(text))
  if (report.kind !== 'delivery') return long
  const odd = report.recipients.filter(({ smtp_code, status }) => {
    const isCode = smtp_code === null || (smtp_code >= 200 && smtp_code < 600)
    return !isCode || (status !== null && !/^[245]\.\d{1,3}\.\d{1,3}$/.test(status))
  })
  return [...long, ...odd.map((one) => JSON.stringify(one))]
}

const pieces = [
  '\r\n\r\n',
  '\r\n',
  ':',
  ';',
  '\0',
  '<',
  '>',
  '--=_b1\r\n',
  'Content-Type: message/delivery-status\r\n\r\n',
  'Content-Type: message/feedback-report\r\n\r\n',
  'Final-Recipient: utf-8; \\x{D800}\\x{110000}a@b.test\r\n',
  'Action: failed\r\n',
  'Status: 5.1\r\n',
  'X-Failed-Recipients: a@b.test,,<>\r\n',
  '__proto__: {"polluted":1}\r\n',
  'Diagnostic-Code: smtp; 999 9.9.9\r\n',
]

function mutated(raw: Buffer, other: Buffer, roll: (sides: number) => number): Buffer {
  const at = roll(raw.length + 1)
  const before = raw.subarray(0, at)
  switch (roll(5)) {
    case 0:
      return Buffer.concat([before, Buffer.from([roll(256), roll(256)]), raw.subarray(at + 2)])
    case 1:
      return Buffer.concat([before, raw.subarray(at + roll(100))])
    case 2:
      return Buffer.concat([before, Buffer.from(pieces[roll(pieces.length)]!), raw.subarray(at)])
    case 3:
      return Buffer.concat([before, other.subarray(roll(other.length)), raw.subarray(at)])
    default:
      return before
  }
}

function attached(octets: Buffer): Buffer {
  const head = 'From: r@reports.test\r\nSubject: Report domain: d.test\r\nContent-Type: application/octet-stream; name=r.bin'
  return Buffer.from(
    `${head}\r\nContent-Transfer-Encoding: base64\r\n\r\n${octets.toString('base64').replace(/.{76}/g, '$&\r\n')}\r\n`,
  )
}
