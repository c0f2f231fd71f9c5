import { expect, test } from 'vitest'
import { isAbsent, recordsOf } from '../../src/net/resolve.ts'
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

function failure(servers: readonly string[], name: string): Promise<unknown> {
  return recordsOf({ servers, timeout: 2000 })(name, 'TXT').catch((error: unknown) => error)
}
