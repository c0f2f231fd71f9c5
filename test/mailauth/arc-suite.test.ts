import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { isMap, parseAllDocuments, type Scalar } from 'yaml'
import type { Lookup } from '../../src/net/dns.ts'
import { checkMessage } from '../../src/mailauth/verdict.ts'
import type { Authentication } from '../../src/mail/model.ts'
import { envelope } from '../support/signed-mail.ts'

interface Case {
  message: string
  /** The state of the chain. */
  cv: string
}
interface Scenario {
  description: string
  /** A name may be there twice. */
  cases: [string, Case][]
  records: Record<string, string>
}

const settings = { hostname: 'mx.test', dmarc: 'none' as const, deadline: 100_000, trusted_sealers: [] }
const suite = new URL('../fixtures/arc/arc-draft-validation-tests.yml', import.meta.url)
const scenarios = parseAllDocuments(readFileSync(suite, 'utf8'), { uniqueKeys: false }).flatMap((document): Scenario[] => {
  const tests = document.get('tests')
  if (!isMap<Scalar<string>, { toJSON(): Case }>(tests)) return []
  const { description, 'txt-records': records } = document.toJSON() as { description: string; 'txt-records': Scenario['records'] }
  return [{ description, records, cases: tests.items.map(({ key, value }) => [key.value, value!.toJSON()]) }]
})

const failed = 'RFC 8617 5.2 says fail of a chain that fails; the suite, of a draft before it, says none'
const sha1 = 'RFC 8301 3.1: rsa-sha1 must not be used for verifying'

/** Tests whose chain fails where the suite says otherwise, and why. */
const stricter: Record<string, string> = {
  cv_fail_i1_as_cv_fail: failed,
  cv_fail_i2_as2_fail: failed,
  cv_fail_i2_as1_fail: failed,
  ams_fields_a_sha1: sha1,
  as_fields_a_sha1: sha1,
  ams_fields_h_empty: 'RFC 6376 5.4: a signature must cover From',
}

test('the suite is whole, and the box is stricter in six of its tests', () => {
  const names = scenarios.flatMap(({ cases }) => cases.map(([name]) => name))
  expect(names).toHaveLength(174)
  expect(names.filter((name) => name in stricter)).toHaveLength(6)
})

describe.each(scenarios)('ARC: $description', ({ cases, records }) => {
  const lookup: Lookup = async (name) => {
    const record = records[name.toLowerCase()]
    if (record === undefined) throw Object.assign(new Error('ENOTFOUND'), { code: 'ENOTFOUND' })
    return [[record]]
  }
  const chainOf = async (message: string): Promise<Authentication['arc']> =>
    (await checkMessage(Buffer.from(message), envelope(), lookup, settings)).authentication.arc

  test.each(cases)('%s', async (name, { message, cv }) => {
    const expected = name in stricter ? 'fail' : cv === '' ? 'none' : cv.toLowerCase()
    const raw = message.replaceAll('\n', '\r\n')
    const arc = await chainOf(raw)
    if (arc.reason !== 'there is more than one MIME-Version') return expect(arc.result).toBe(expected)
    // some have a second MIME-Version, which the signatures do not cover: the chain counts without it
    expect(arc.result).toBe('fail')
    return expect((await chainOf(raw.replace(/^MIME-Version: 1\.0\r\n/m, ''))).result).toBe(expected)
  })
})
