import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Dns, Inquiry, type Lookup } from '../../src/net/dns.ts'
import { DnsStub } from '../support/dns-stub.ts'

let stub: DnsStub
beforeAll(async () => {
  stub = await DnsStub.start()
})
afterAll(() => stub.close())
beforeEach(() => stub.clear())

// long, for answers that must come on a machine that has much else to do
const dns = (timeout = 60_000) => new Dns({ servers: stub.servers, timeout })

describe('the resolver', () => {
  test('answers TXT, A, AAAA and MX from the name server', async () => {
    stub.txt('t.test', 'one', 'x'.repeat(300)).a('t.test', '192.0.2.7').aaaa('t.test', '2001:db8::7').mx('t.test', 'mx.t.test')
    const { lookup } = dns()
    expect(await lookup('t.test', 'TXT')).toEqual([['one'], ['x'.repeat(255), 'x'.repeat(45)]])
    expect(await lookup('t.test', 'A')).toEqual(['192.0.2.7'])
    expect(await lookup('t.test', 'AAAA')).toEqual(['2001:db8::7'])
    expect(await lookup('t.test', 'MX')).toMatchObject([{ exchange: 'mx.t.test', priority: 10 }])
  })

  test('turns to TCP for a long answer, and refuses one that is absurd', async () => {
    stub
      .txt('long.test', 'y'.repeat(5000))
      .txt('record.test', 'y'.repeat(10_000))
      .txt('absurd.test', ...Array.from({ length: 140 }, (_, index) => `${index} ${'z'.repeat(280)}`))
    const { lookup } = dns()
    expect(await lookup('long.test', 'TXT')).toEqual(['y'.repeat(5000).match(/.{1,255}/g)])
    for (const name of ['record.test', 'absurd.test']) {
      await expect(lookup(name, 'TXT')).rejects.toMatchObject({ code: 'EBADRESP' })
    }
  })

  test('refuses a record of very many strings and very many records, however short, and takes a hundred', async () => {
    stub
      .txt('strings.test', ['v=spf1 ?all', ...Array.from({ length: 60_000 }, () => '')])
      .txt('records.test', ...Array.from({ length: 2000 }, () => ''))
      .txt('hundred.test', ...Array.from({ length: 100 }, (_, index) => `verification=${index}`))
    const { lookup } = dns()
    for (const name of ['strings.test', 'records.test']) {
      await expect(lookup(name, 'TXT')).rejects.toMatchObject({ code: 'EBADRESP' })
    }
    expect(await lookup('hundred.test', 'TXT')).toHaveLength(100)
  })

  test('reads fifty of two hundred MX, those of the lowest preference, and as many addresses', async () => {
    stub.mx('many.test', ...Array.from({ length: 200 }, (_, index) => `${200 - index} n${index}.test`))
    stub.a('many.test', ...Array.from({ length: 200 }, (_, index) => `192.0.2.${index}`))
    const { lookup } = dns()
    const exchanges = (await lookup('many.test', 'MX')) as { priority: number }[]
    expect(exchanges.map(({ priority }) => priority)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1))
    expect(await lookup('many.test', 'A')).toHaveLength(50)
  })

  test('asks once for what it knows, whatever the case, and for equal queries at one time', async () => {
    stub.txt('t.test', 'one')
    const { lookup } = dns()
    await Promise.all([lookup('t.test', 'TXT'), lookup('T.test', 'TXT'), lookup('t.TEST', 'TXT')])
    await lookup('t.test', 'TXT')
    await expect(lookup('none.test', 'TXT')).rejects.toMatchObject({ code: 'ENOTFOUND' })
    await expect(lookup('none.test', 'TXT')).rejects.toMatchObject({ code: 'ENOTFOUND' })
    await expect(lookup('t.test', 'MX')).rejects.toMatchObject({ code: 'ENODATA' })
    expect(stub.queries).toEqual(['TXT t.test', 'TXT none.test', 'MX t.test'])
  })

  test('does not remember trouble', async () => {
    stub.txt('t.test', 'one').fails('t.test', 'servfail')
    const { lookup } = dns()
    await expect(lookup('t.test', 'TXT')).rejects.toMatchObject({ code: 'ESERVFAIL' })
    stub.fails('t.test', null)
    expect(await lookup('t.test', 'TXT')).toEqual([['one']])
  })

  test('gives up on silence', async () => {
    stub.fails('t.test', 'silence')
    await expect(dns(300).lookup('t.test', 'TXT')).rejects.toMatchObject({ code: 'ETIMEOUT' })
  })

  test.each(['', 'a\0.test', 'a\n.test', 'a\\000.test', `${'a'.repeat(60)}.`.repeat(5) + 'test'])(
    'never asks for %j',
    async (name) => {
      await expect(dns().lookup(name, 'TXT')).rejects.toMatchObject({ code: 'EBADNAME' })
      expect(stub.queries).toEqual([])
    },
  )

  test('stays small, however many names are asked for', async () => {
    let asked = 0
    const counting: Lookup = async (name) => {
      asked += 1
      return [[name.repeat(50)]]
    }
    const { lookup } = new Dns({ servers: [], timeout: 1000 }, counting)
    for (let index = 0; index < 12_000; index++) await lookup(`n${index}.test`, 'TXT')
    await lookup('n11999.test', 'TXT')
    expect(asked).toBe(12_000)
    await lookup('n0.test', 'TXT')
    expect(asked).toBe(12_001)
  })

  test.each([
    ['empty strings', [Array.from({ length: 400 }, () => '')], 4000],
    ['records of an empty string', Array.from({ length: 400 }, () => ['']), 1000],
  ])('stays small, whatever number of %s the answers have', async (_what, answer, names) => {
    let asked = 0
    const counting: Lookup = async () => {
      asked += 1
      return answer
    }
    const { lookup } = new Dns({ servers: [], timeout: 1000 }, counting)
    for (let index = 0; index < names; index++) await lookup(`n${index}.test`, 'TXT')
    await lookup(`n${names - 1}.test`, 'TXT')
    expect(asked).toBe(names)
    await lookup('n0.test', 'TXT')
    expect(asked).toBe(names + 1)
  })
})

describe('the queries of one message', () => {
  test('are asked once each and at most so many', async () => {
    let asked = 0
    const inquiry = new Inquiry(
      async (name) => {
        asked += 1
        return [[name]]
      },
      { deadline: 60_000, limit: 3 },
    )
    for (const name of ['a', 'b', 'a', 'c']) await inquiry.lookup(name, 'TXT')
    await expect(inquiry.lookup('d', 'TXT')).rejects.toMatchObject({ code: 'EQUERYLIMIT' })
    expect(await inquiry.lookup('a', 'TXT')).toEqual([['a']])
    expect(asked).toBe(3)
    inquiry.close()
  })

  test('fail when the deadline passes, but keep what was answered', async () => {
    const inquiry = new Inquiry((name) => (name === 'a' ? Promise.resolve([['a']]) : new Promise(() => undefined)), {
      deadline: 50,
    })
    await inquiry.lookup('a', 'TXT')
    await expect(inquiry.lookup('b', 'TXT')).rejects.toMatchObject({ code: 'ETIMEOUT' })
    await expect(inquiry.lookup('c', 'TXT')).rejects.toMatchObject({ code: 'ETIMEOUT' })
    expect(await inquiry.lookup('a', 'TXT')).toEqual([['a']])
    expect(inquiry.troubled).toBe(true)
    inquiry.close()
  })

  test('stop after two time-outs when nothing answers, and go on when something does', async () => {
    const asked: string[] = []
    const lookup: Lookup = async (name) => {
      asked.push(name)
      if (name === 'good') return [['here']]
      throw Object.assign(new Error('late'), { code: 'ETIMEOUT' })
    }
    const offline = new Inquiry(lookup, { deadline: 60_000 })
    for (const name of ['a', 'b', 'c', 'd']) await expect(offline.lookup(name, 'TXT')).rejects.toMatchObject({ code: 'ETIMEOUT' })
    expect(asked).toEqual(['a', 'b'])
    const online = new Inquiry(lookup, { deadline: 60_000 })
    for (const name of ['good', 'a', 'b', 'c']) await online.lookup(name, 'TXT').catch(() => undefined)
    expect(asked).toEqual(['a', 'b', 'good', 'a', 'b', 'c'])
    offline.close()
    online.close()
  })
})
