import { expect, test } from 'vitest'
import { isAbsent, recordsOf, resolver } from '../../src/net/resolve.ts'
import { DnsStub } from '../support/dns-stub.ts'

test('a record is absent when the DNS says so, and where its name can be none; not when nobody answers', async () => {
  const dns = await DnsStub.start()
  const none = await failure(dns.servers, 'none.test')
  const impossible = await failure(dns.servers, `_mta-sts.${'a.'.repeat(125)}test`)
  await dns.close()
  const unanswered = await failure(['127.0.0.1:9'], 'none.test')
  expect(impossible).toMatchObject({ code: 'EBADNAME' })
  expect([none, impossible, unanswered].map(isAbsent)).toEqual([true, true, false])
})

test('of two hundred MX the fifty of the lowest preference are read', async () => {
  const dns = await DnsStub.start()
  dns.mx('many.test', ...Array.from({ length: 200 }, (_, index) => `${200 - index} n${index}.test`))
  const found = await recordsOf({ servers: dns.servers, timeout: 60_000 })('many.test', 'MX')
  await dns.close()
  expect(found.map(({ priority }) => priority)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1))
})

test('of two hundred addresses fifty are read', async () => {
  const dns = await DnsStub.start()
  dns.a('many.test', ...Array.from({ length: 200 }, (_, index) => `192.0.2.${index}`))
  const settings = { servers: dns.servers, timeout: 60_000 }
  const counts = [(await recordsOf(settings)('many.test', 'A')).length, (await resolver(settings)('many.test')).length]
  await dns.close()
  expect(counts).toEqual([50, 50])
})

test.each<[string, (string | string[])[]]>([
  ['more text than 32 KiB', Array.from({ length: 5 }, () => 'x'.repeat(7000))],
  ['a record of more than 8 KiB', ['x'.repeat(8200)]],
  ['a record of very many empty strings', [['v=STSv1; id=one;', ...Array.from({ length: 60_000 }, () => '')]]],
  ['very many records of an empty string', Array.from({ length: 2000 }, () => '')],
])('an answer of %s is no answer', async (_what, records) => {
  const dns = await DnsStub.start()
  dns.txt('long.test', ...records)
  const error = await failure(dns.servers, 'long.test')
  await dns.close()
  expect(error).toMatchObject({ code: 'EBADRESP' })
  expect(isAbsent(error)).toBe(false)
})

function failure(servers: readonly string[], name: string): Promise<unknown> {
  return recordsOf({ servers, timeout: 60_000 })(name, 'TXT').then(
    () => undefined,
    (error: unknown) => error,
  )
}
