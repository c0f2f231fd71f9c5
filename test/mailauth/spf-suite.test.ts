import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { DnsAnswer, Lookup } from '../../src/net/dns.ts'
import { checkMessage } from '../../src/mailauth/verdict.ts'
import { envelope } from '../support/signed-mail.ts'

interface Case {
  helo: string
  host: string
  mailfrom: string
  result: string | string[]
}
interface Scenario {
  description: string
  tests: Record<string, Case>
  zonedata: Zone
}
type RecordValue = string | string[] | [number, string]
type Zone = Record<string, ('TIMEOUT' | Record<string, RecordValue>)[]>

const settings = { hostname: 'mx.test', dmarc: 'none' as const, deadline: 100_000, trusted_sealers: [] }
const scenarios = parseAllDocuments(readFileSync(new URL('../fixtures/spf/rfc7208-tests.yml', import.meta.url), 'utf8'), {
  uniqueKeys: false,
})
  .map((document): Scenario | null => document.toJSON())
  .filter((scenario) => scenario !== null)

test('the suite is whole', () => {
  expect(scenarios.reduce((sum, scenario) => sum + Object.keys(scenario.tests).length, 0)).toBe(203)
})

describe.each(scenarios)('RFC 7208: $description', ({ tests, zonedata }) => {
  const lookup = zoneLookup(zonedata)
  test.each(Object.entries(tests))('%s', async (_, { helo, host, mailfrom, result }) => {
    const raw = Buffer.from('Subject: x\r\n\r\nx\r\n')
    const verdict = await checkMessage(raw, envelope({ helo, remote_address: host, mail_from: mailfrom }), lookup, settings)
    expect([result].flat()).toContain(verdict.authentication.spf.result)
  })
})

function zoneLookup(zone: Zone): Lookup {
  const names = new Map(Object.entries(zone).map(([name, records]) => [name.toLowerCase(), records]))
  const resolve = (name: string, type: string, depth = 0): DnsAnswer => {
    const wanted = name.toLowerCase().replace(/\.$/, '')
    if (wanted.split('.').some((label) => label === '' || label.length > 63)) throw failure('EBADNAME')
    const records = names.get(wanted)
    if (!records) throw failure('ENOTFOUND')
    const alias = records.find((record) => typeof record === 'object' && record['CNAME'])
    if (typeof alias === 'object' && depth < 8) return resolve(String(alias['CNAME']), type, depth + 1)
    const found = valuesOf(records, type)
    if (found.length > 0) return answerOf(found, type)
    throw failure(timesOut(records, type) ? 'ETIMEOUT' : 'ENODATA')
  }
  return async (name, type) => resolve(name, type)
}

function valuesOf(records: Zone[string], type: string): RecordValue[] {
  // Records of type SPF stand for TXT where there is no TXT (the suite's own rule).
  const hasText = records.some((record) => typeof record === 'object' && 'TXT' in record)
  return records
    .flatMap((record) => Object.entries(record === 'TIMEOUT' ? {} : record))
    .filter(([key, value]) => (key === 'SPF' && !hasText ? 'TXT' : key) === type && value !== 'NONE' && value !== 'TIMEOUT')
    .map(([, value]) => value)
}

function answerOf(values: RecordValue[], type: string): DnsAnswer {
  if (type === 'TXT') return values.map((value) => [value].flat().map(String))
  if (type === 'MX') return values.map((value) => ({ priority: Number(value[0]), exchange: value[1] }))
  return values.map((value) => String(value).replace(/\.$/, ''))
}

function timesOut(records: Zone[string], type: string): boolean {
  return records.some((record) => record === 'TIMEOUT' || record[type] === 'TIMEOUT')
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code })
}
