import type { Testing } from '../../src/assembly.ts'
import { join } from 'node:path'
import { openStore, type Store } from '../support/open-store.ts'
import { describe, expect, test } from 'vitest'
import { keyHash, newKey } from '../../src/accounts/secret.ts'
import { newId } from '../../src/core/ids.ts'
import { scopes } from '../../src/core/scopes.ts'
import type { DnsRecord, Domain } from '../../src/domains/model.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { addedDomain, publish, publishRecord } from '../support/verified-domain.ts'

const hour = 3_600_000
const name = 'shop.example'

describe('a record', () => {
  test('turns valid one by one, and with the last that is required the domain is verified', async () => {
    const { box, domain } = await scene()
    const before = await verify(box, domain)
    expect(
      before.dns_records.every(({ status, found, reason }) => status === 'missing' && found.length === 0 && reason !== null),
    ).toBe(true)
    const required = domain.dns_records.filter((record) => record.required)
    // the last first: the order does not matter
    for (const [index, record] of required.toReversed().entries()) {
      publishRecord(box.dns, record)
      const { status, dns_records, verified_at } = await verify(box, domain)
      const seen = dns_records.find(({ type, name: at }) => type === record.type && at === record.name)!
      // SPF by mx needs the MX record
      if (record.purpose === 'spf') expect(seen).toMatchObject({ status: 'invalid', found: ['v=spf1 mx ~all'] })
      else expect(seen).toMatchObject({ status: 'valid', reason: null })
      expect([status, verified_at === null]).toEqual(index === required.length - 1 ? ['verified', false] : ['pending', true])
    }
  })

  const cases: [
    what: string,
    purpose: DnsRecord['purpose'],
    change: (box: Appliance, record: DnsRecord) => void,
    expected: object,
  ][] = [
    ['another MX alone', 'mx', ({ dns }) => dns.mx(name, 'mx.other.test'), { status: 'invalid', reason: /goes elsewhere/ }],
    [
      'a better MX',
      'mx',
      ({ dns }) => dns.mx(name, '5 mx.other.test', '10 mx.box.test'),
      { status: 'invalid', reason: /mx\.other\.test first/ },
    ],
    [
      'an equal MX',
      'mx',
      ({ dns }) => dns.mx(name, '10 mx.other.test', '10 mx.box.test'),
      { status: 'invalid', reason: /as often/ },
    ],
    ['a worse MX', 'mx', ({ dns }) => dns.mx(name, '10 mx.box.test', '20 mx.other.test'), { status: 'valid', reason: null }],
    ['any priority', 'mx', ({ dns }) => dns.mx(name, '0 MX.Box.test'), { status: 'valid', reason: null }],
    ['the null MX', 'mx', ({ dns }) => dns.mx(name, '0 '), { status: 'invalid', reason: /null MX/ }],
    ['no MX', 'mx', ({ dns }) => dns.drop(name, 'MX'), { status: 'missing', found: [] }],
    [
      'an MX without an address',
      'mx',
      ({ dns }) => dns.drop('mx.box.test', 'A'),
      { status: 'invalid', reason: /has no address/ },
    ],

    ['no SPF', 'spf', ({ dns }) => dns.txt(name, 'google-site-verification=1'), { status: 'missing', found: [] }],
    [
      'SPF beside other texts',
      'spf',
      ({ dns }) => dns.txt(name, 'x=1', 'v=spf1 mx -all', 'v=spf10'),
      { status: 'valid', found: ['v=spf1 mx -all'] },
    ],
    ['SPF by address', 'spf', ({ dns }) => dns.txt(name, 'v=spf1 ip4:127.0.0.0/8 -all'), { status: 'valid' }],
    [
      'SPF by include',
      'spf',
      ({ dns }) => dns.txt(name, 'v=spf1 include:spf.shop.example -all').txt('spf.shop.example', 'v=spf1 a:mx.box.test'),
      { status: 'valid' },
    ],
    [
      'SPF without us',
      'spf',
      ({ dns }) => dns.txt(name, 'v=spf1 ip4:192.0.2.1 -all'),
      { status: 'invalid', reason: /127\.0\.0\.1 .*fail/ },
    ],
    ['SPF that is neutral', 'spf', ({ dns }) => dns.txt(name, 'v=spf1 ?mx ~all'), { status: 'invalid', reason: /neutral/ }],
    ['SPF with a slip', 'spf', ({ dns }) => dns.txt(name, 'v=spf1 mxx ~all'), { status: 'invalid', reason: /permerror/ }],
    ['SPF after all', 'spf', ({ dns }) => dns.txt(name, 'v=spf1 -all mx'), { status: 'invalid', reason: /fail/ }],
    [
      'SPF twice',
      'spf',
      ({ dns }) => dns.txt(name, 'v=spf1 mx ~all', 'v=spf1 -all'),
      { status: 'invalid', reason: /There are 2 SPF/ },
    ],
    ['SPF in quotes', 'spf', ({ dns }) => dns.txt(name, '"v=spf1 mx ~all"'), { status: 'invalid', reason: /quotes/ }],
    [
      'SPF that lets IPv4 in only',
      'spf',
      ({ dns }) => dns.aaaa('mx.box.test', '2001:db8::1').txt(name, 'v=spf1 ip4:127.0.0.1 -all'),
      { status: 'invalid', reason: /2001:db8::1/ },
    ],

    ['DKIM in several strings', 'dkim', ({ dns }, { name: at, value }) => dns.txt(at, value), { status: 'valid' }],
    [
      'DKIM spaced',
      'dkim',
      ({ dns }, { name: at, value }) => dns.txt(at, ` ${value.replaceAll(';', ' ; ').replace('p=MII', 'p= MII ')} ;`),
      { status: 'valid' },
    ],
    [
      'DKIM with the key alone',
      'dkim',
      ({ dns }, { name: at, value }) => dns.txt(at, value.replace(/^.*(?=p=)/, '')),
      { status: 'valid' },
    ],
    [
      'DKIM by an alias',
      'dkim',
      ({ dns }, { name: at, value }) =>
        dns.drop(at, 'TXT').cname(at, 'k1.box.test').cname('k1.box.test', 'k2.box.test').txt('k2.box.test', value),
      { status: 'valid' },
    ],
    [
      'DKIM by an alias to nowhere',
      'dkim',
      ({ dns }, { name: at }) => dns.drop(at, 'TXT').cname(at, 'k1.box.test'),
      { status: 'missing', reason: /alias of k1\.box\.test/ },
    ],
    [
      'DKIM by aliases in a circle',
      'dkim',
      ({ dns }, { name: at }) => dns.drop(at, 'TXT').cname(at, 'k1.box.test').cname('k1.box.test', at),
      { status: 'missing', reason: /alias of k1/ },
    ],
    [
      'DKIM of another',
      'dkim',
      ({ dns }, { name: at, value }) => dns.txt(at, value.replace(/p=.{20}/, `p=${'A'.repeat(20)}`)),
      { status: 'invalid', reason: /not the key/ },
    ],
    [
      'DKIM cut',
      'dkim',
      ({ dns }, { name: at, value }) => dns.txt(at, value.slice(0, 255)),
      { status: 'invalid', reason: /Only \d+ of the 392/ },
    ],
    [
      'DKIM in quotes',
      'dkim',
      ({ dns }, { name: at, value }) => dns.txt(at, `"${value}"`),
      { status: 'invalid', reason: /quotes or backslashes/ },
    ],
    [
      'DKIM with backslashes',
      'dkim',
      ({ dns }, { name: at, value }) => dns.txt(at, value.replaceAll(';', '\\;')),
      { status: 'invalid', reason: /quotes or backslashes/ },
    ],
    [
      'DKIM revoked',
      'dkim',
      ({ dns }, { name: at }) => dns.txt(at, 'v=DKIM1; k=rsa; p='),
      { status: 'invalid', reason: /revoked/ },
    ],
    [
      'DKIM without a key',
      'dkim',
      ({ dns }, { name: at }) => dns.txt(at, 'v=DKIM1; k=rsa'),
      { status: 'invalid', reason: /no key/ },
    ],
    [
      'DKIM of another kind',
      'dkim',
      ({ dns }, { name: at, value }) => dns.txt(at, value.replace('k=rsa', 'k=ed25519')),
      { status: 'invalid', reason: /k=rsa/ },
    ],
    [
      'DKIM for SHA-1',
      'dkim',
      ({ dns }, { name: at, value }) => dns.txt(at, value.replace('h=sha256', 'h=sha1')),
      { status: 'invalid', reason: /sha256/ },
    ],
    [
      'DKIM for tests',
      'dkim',
      ({ dns }, { name: at, value }) => dns.txt(at, `${value}; t=s:y`),
      { status: 'invalid', reason: /t=y/ },
    ],
    [
      'DKIM for other services',
      'dkim',
      ({ dns }, { name: at, value }) => dns.txt(at, `${value}; s=tlsrpt`),
      { status: 'invalid', reason: /email/ },
    ],
    [
      'DKIM of a later version',
      'dkim',
      ({ dns }, { name: at, value }) => dns.txt(at, value.replace('DKIM1', 'DKIM2')),
      { status: 'invalid', reason: /v=DKIM1/ },
    ],
    [
      'DKIM twice',
      'dkim',
      ({ dns }, { name: at, value }) => dns.txt(at, value, 'v=DKIM1; p='),
      { status: 'invalid', reason: /There are 2/ },
    ],
    [
      'no DKIM at all',
      'dkim',
      ({ dns }, { name: at }) => dns.txt(at, 'hello'),
      { status: 'invalid', reason: /not a DKIM record/ },
    ],
    [
      'DKIM under the domain twice',
      'dkim',
      ({ dns }, { name: at, value }) => dns.drop(at, 'TXT').txt(`${at}.${name}`, value),
      { status: 'missing', reason: /adds the domain itself/ },
    ],

    ['a stricter DMARC', 'dmarc', ({ dns }, { name: at }) => dns.txt(at, 'v=DMARC1;p=reject'), { status: 'valid' }],
    [
      'DMARC without a policy',
      'dmarc',
      ({ dns }, { name: at }) => dns.txt(at, 'v=DMARC1; rua=mailto:x@y.test'),
      { status: 'invalid', reason: /no policy/ },
    ],
    [
      'DMARC twice',
      'dmarc',
      ({ dns }, { name: at, value }) => dns.txt(at, value, value),
      { status: 'invalid', reason: /There are 2/ },
    ],
    [
      'an older MTA-STS',
      'mta_sts',
      ({ dns }, { name: at }) => dns.txt(at, 'v=STSv1; id=20200101;'),
      { status: 'invalid', reason: /id belongs to another policy/ },
    ],
    [
      'TLS reports elsewhere',
      'tls_rpt',
      ({ dns }, { name: at }) => dns.txt(at, 'v=TLSRPTv1;rua=https://tls.other.test/r'),
      { status: 'valid' },
    ],
    [
      'TLS reports to nobody',
      'tls_rpt',
      ({ dns }, { name: at }) => dns.txt(at, 'v=TLSRPTv1;'),
      { status: 'invalid', reason: /no address for reports/ },
    ],
  ]

  test('is judged as those read it who depend on it', async () => {
    const { box, domain } = await scene()
    for (const [what, purpose, change, expected] of cases) {
      box.dns.clear()
      publish(box.dns, domain)
      const record = domain.dns_records.find((one) => one.purpose === purpose)!
      change(box, record)
      const seen = (await verify(box, domain)).dns_records.find((one) => one.name === record.name && one.type === record.type)!
      const { reason, ...rest } = expected as { reason?: RegExp | null }
      expect([what, seen]).toMatchObject([what, rest])
      if (reason instanceof RegExp) expect([what, seen.reason]).toEqual([what, expect.stringMatching(reason)])
      else expect([what, seen.reason === null]).toEqual([what, seen.status === 'valid'])
    }
  })

  test('of the policy host may be an address, and must lead to the box', async () => {
    const { box, domain } = await scene({ PILLARBOX_PUBLIC_URL: 'https://api.box.test' })
    publish(box.dns, domain)
    const host = async () => (await verify(box, domain)).dns_records.find(({ type }) => type === 'CNAME')!
    expect(await host()).toMatchObject({ value: 'api.box.test', status: 'valid' })
    box.dns.drop('mta-sts.shop.example', 'CNAME').a('mta-sts.shop.example', '192.0.2.7')
    expect(await host()).toMatchObject({ status: 'invalid', found: ['192.0.2.7'] })
    box.dns.a('api.box.test', '192.0.2.8', '192.0.2.7')
    expect(await host()).toMatchObject({ status: 'valid', found: ['192.0.2.7'] })
  })

  test('of SPF may be any one when mail leaves through a relay', async () => {
    const { box, domain } = await scene({
      PILLARBOX_OUTBOUND__MODE: 'relay',
      PILLARBOX_OUTBOUND__RELAY__HOST: 'relay.test',
    })
    publish(box.dns, domain)
    box.dns.txt(name, 'v=spf1 include:relay.test -all')
    expect((await verify(box, domain)).status).toBe('verified')
    box.dns.txt(name, 'v=spf1 include:relay.test -all', 'v=spf1 mx')
    expect(spfOf(await verify(box, domain)).status).toBe('invalid')
  })

  test('that changed in the DNS is seen at once, though its answer was kept a moment ago', async () => {
    const { box, domain } = await scene()
    publish(box.dns, domain)
    for (const [text, status] of [
      ['v=spf1 -all', 'invalid'],
      ['v=spf1 mx', 'valid'],
      ['v=spf1 -all', 'invalid'],
    ] as const) {
      box.dns.txt(name, text)
      expect(spfOf(await verify(box, domain))).toMatchObject({ status, found: [text] })
    }
  })

  test('is not said to hold more than can be read', async () => {
    const { box, domain } = await scene()
    box.dns.txt(domain.dns_records[2]!.name, ...Array.from({ length: 20 }, (_, index) => `${index}${'x'.repeat(1400)}`))
    const { found } = (await verify(box, domain)).dns_records[2]!
    expect(found.length).toBe(10)
    expect(found[0]!.length).toBeLessThan(1100)
  })

  test('is shown in a few kilobytes, whatever the DNS answers', async () => {
    const { box, domain } = await scene()
    const texts = Array.from({ length: 10 }, (_, index) => `v=spf1 ${index} \u0001\n"${'\u0001'.repeat(1000)}`)
    for (const { type, name: at } of domain.dns_records) if (type === 'TXT') box.dns.txt(at, ...texts)
    const { dns_records } = await verify(box, domain)
    const [spf] = dns_records.filter(({ purpose }) => purpose === 'spf')
    expect(spf!.found).toHaveLength(10)
    expect(spf!.found[0]).toMatch(/^v=spf1 0 \\001\\010"\\001/)
    for (const { found, reason } of dns_records) expect(JSON.stringify({ found, reason }).length).toBeLessThan(4500)
  })

  test('of one long text is shown up to its end', async () => {
    const { box, domain } = await scene()
    const text = `v=spf1 ${Array.from({ length: 20 }, (_, index) => `ip4:192.0.2.${index}`).join(' ')} -all`
    box.dns.txt(name, text)
    expect(spfOf(await verify(box, domain)).found).toEqual([text])
  })
})

describe('a DNS that does not answer', () => {
  test.each(['servfail', 'refused', 'silence'] as const)('(%s) changes nothing, and the reason says so', async (trouble) => {
    const clock = new HeldClock()
    const { box, domain } = await scene({ PILLARBOX_DNS__TIMEOUT: trouble === 'silence' ? '1 s' : '5 s' }, clock)
    box.dns.trouble = trouble
    const never = await verify(box, domain)
    expect(never.status).toBe('pending')
    expect(never.dns_records[0]).toMatchObject({ status: 'missing', found: [], reason: expect.stringMatching(/lookup failed/) })

    box.dns.trouble = null
    publish(box.dns, domain)
    expect((await verify(box, domain)).status).toBe('verified')
    box.dns.trouble = trouble
    for (let look = 0; look < 3; look += 1) {
      clock.advance(100 * hour)
      const kept = await verify(box, domain)
      expect(kept).toMatchObject({ status: 'verified', last_checked_at: new Date(clock.now()).toISOString() })
      for (const record of kept.dns_records.slice(0, 4)) {
        expect(record).toMatchObject({ status: 'valid', reason: expect.stringMatching(/this is the previous result/) })
      }
    }
    box.dns.trouble = null
    expect((await verify(box, domain)).dns_records[0]).toMatchObject({ status: 'valid', reason: null })
  })

  test('for one record neither verifies nor fails a domain; what is known to be wrong still does', async () => {
    const clock = new HeldClock()
    const { box, domain } = await scene({}, clock)
    publish(box.dns, domain)
    const key = domain.dns_records[3]!
    box.dns.fails(key.name, 'servfail')
    expect((await verify(box, domain)).status).toBe('pending')
    box.dns.fails(key.name, null)
    expect((await verify(box, domain)).status).toBe('verified')

    box.dns.fails(key.name, 'servfail').mx(name, 'mx.other.test')
    await verify(box, domain)
    clock.advance(73 * hour)
    expect((await verify(box, domain)).status).toBe('pending')
  })

  test('while SPF is evaluated is no failure either', async () => {
    const { box, domain } = await scene()
    publish(box.dns, domain)
    box.dns.txt(name, 'v=spf1 include:spf.shop.example -all').fails('spf.shop.example', 'servfail')
    expect(spfOf(await verify(box, domain))).toMatchObject({ status: 'missing', reason: expect.stringMatching(/lookup failed/) })
  })
})

describe('a verified domain', () => {
  test('that is wrong for 72 hours is pending again: it still receives, and no address is given out', async () => {
    const clock = new HeldClock()
    const { box, domain } = await scene({}, clock)
    publish(box.dns, domain)
    const verified = await verify(box, domain)
    await verify(box, domain)
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', email_domain: name })
    box.dns.drop(name, 'MX')
    expect((await verify(box, domain)).status).toBe('verified')
    clock.advance(71 * hour)
    expect((await verify(box, domain)).status).toBe('verified')
    // right once, and the time begins anew
    publish(box.dns, domain)
    expect((await verify(box, domain)).status).toBe('verified')
    box.dns.drop(name, 'MX')
    clock.advance(2 * hour)
    expect((await verify(box, domain)).status).toBe('verified')
    clock.advance(72 * hour)
    const failed = await verify(box, domain)
    expect(failed).toMatchObject({ status: 'pending', verified_at: verified.verified_at })
    await verify(box, domain)

    expect((await box.call('POST', '/v1/identities', { email_domain: name })).status).toBe(400)
    const to = ada.email as string
    expect(await deliver(box.smtp, { to, raw: message({ To: to }, 'Hello') })).toMatch(/^250 /)
    await box.restart()
    expect((await box.call('POST', '/v1/identities', { email_domain: name })).status).toBe(400)
    expect(await deliver(box.smtp, { to, raw: message({ To: to }, 'Hello again') })).toMatch(/^250 /)
    box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
    publish(box.dns, domain)
    expect((await verify(box, domain)).verified_at).toBe(new Date(clock.now()).toISOString())
    expect((await box.call('POST', '/v1/identities', { email_domain: name })).status).toBe(201)

    const told = eventsOf(box)
    expect(told.map(({ event }) => event)).toEqual(['domain.verified', 'domain.failed', 'domain.verified'])
    expect(told[1]!.data).toMatchObject({ id: domain.id, status: 'pending' })
    expect(told[1]!.data.dns_records[0]).toMatchObject({ purpose: 'mx', status: 'missing' })
  })

  test('is held by one account: for another verify is a conflict, until the first deletes it', async () => {
    const { box, domain } = await scene()
    const key = otherAccount(box)
    const theirs = (await box.call('POST', '/v1/domains', { name }, { key })).body as unknown as Domain
    publish(box.dns, domain)
    expect((await verify(box, domain)).status).toBe('verified')
    publish(box.dns, theirs)
    const refused = await box.call('POST', `/v1/domains/${theirs.id}/verify`, undefined, { key })
    expect(refused.body.error).toMatchObject({ status: 409, code: 'domain_held' })
    const shown = (await box.call('GET', `/v1/domains/${theirs.id}`, undefined, { key })).body as unknown as Domain
    expect(shown).toMatchObject({ status: 'pending', dns_records: [{ status: 'valid' }, {}, {}, {}, {}, {}, {}, {}, {}, {}] })
    expect((await box.call('POST', '/v1/identities', { email_domain: name }, { key })).status).toBe(400)
    // theirs, which was never verified, goes without touching ours
    const spare = (await box.call('POST', '/v1/domains', { name: 'pillarbox.test' }, { key })).body
    expect((await box.call('DELETE', `/v1/domains/${spare.id}`, undefined, { key })).status).toBe(200)
    expect((await box.call('POST', '/v1/identities', { email_domain: name })).status).toBe(201)
    const { body: identities } = await box.call('GET', '/v1/identities')
    await box.call('DELETE', `/v1/identities/${identities.data[0].id}`)
    await box.call('DELETE', `/v1/domains/${domain.id}`)
    const now = await box.call('POST', `/v1/domains/${theirs.id}/verify`, undefined, { key })
    expect(now.body['status']).toBe('verified')
    expect((await box.call('POST', '/v1/identities', { email_domain: name }, { key })).status).toBe(201)
  })
})

test('a pending domain is verified by itself, and its account hears of it once', async () => {
  const { box, domain } = await scene({}, undefined, { schedule: {} })
  publish(box.dns, domain)
  await expect.poll(async () => (await get(box, domain)).status, { interval: 200 }).toBe('verified')
  expect(eventsOf(box).map(({ event, data }) => [event, data.id])).toEqual([['domain.verified', domain.id]])
  expect(box.logged.filter((line) => line.includes('domain verified'))).toHaveLength(1)
})

describe('a clock that was ahead, and is right again,', () => {
  const ahead = 365 * 24 * hour

  test('does not keep a domain from being verified when asked', async () => {
    const clock = new HeldClock(Date.now() + ahead)
    const { box, domain } = await scene({}, clock)
    expect((await verify(box, domain)).status).toBe('pending')
    clock.advance(-ahead)
    publish(box.dns, domain)
    const now = new Date(clock.now()).toISOString()
    expect(await verify(box, domain)).toMatchObject({ status: 'verified', last_checked_at: now, verified_at: now })
  })

  test.each(['now', 'after a restart'])('does not keep the box from checking by itself (%s)', async (when) => {
    const clock = new HeldClock(Date.now() + ahead)
    const { box, domain } = await scene({}, clock)
    const checkDue = () => box.app.jobs.find(({ name: job }) => job === 'check-domains')!.run()
    await checkDue()
    publish(box.dns, domain)
    await checkDue()
    expect((await get(box, domain)).status).toBe('pending')
    clock.advance(-ahead)
    if (when !== 'now') {
      await box.restart()
      box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
    }
    await checkDue()
    expect((await get(box, domain)).status).toBe('verified')
    box.dns.drop(name, 'MX')
    clock.advance(2 * hour)
    await checkDue()
    expect((await get(box, domain)).dns_records[0]).toMatchObject({ purpose: 'mx', status: 'missing' })
  })

  test('does not keep a domain verified whose DNS is wrong', async () => {
    const clock = new HeldClock(Date.now() + ahead)
    const { box, domain } = await scene({}, clock)
    publish(box.dns, domain)
    await verify(box, domain)
    box.dns.drop(name, 'MX')
    await verify(box, domain)
    clock.advance(-ahead)
    expect((await verify(box, domain)).status).toBe('verified')
    clock.advance(71 * hour)
    expect((await verify(box, domain)).status).toBe('verified')
    clock.advance(hour)
    expect((await verify(box, domain)).status).toBe('pending')
  })
})

describe('rotating the keys', () => {
  test('needs the spares in the DNS, then no change of it; the old selectors stay for seven days', async () => {
    const clock = new HeldClock()
    const { box, domain } = await scene({}, clock)
    const rotate = () => box.call('POST', `/v1/domains/${domain.id}/dkim/rotate`)
    const [active, spare] = [keysOf(domain).slice(0, 2), keysOf(domain).slice(2)]
    for (const record of domain.dns_records.filter(({ required }) => required)) publishRecord(box.dns, record)
    expect((await verify(box, domain)).status).toBe('verified')

    publishRecord(box.dns, spare[0]!)
    const refused = (await rotate()).body.error
    expect(refused).toMatchObject({ status: 409, code: 'spares_not_published' })
    expect(refused['message']).toContain(spare[1]!.name)
    expect(refused['message']).not.toContain(spare[0]!.name)

    publishRecord(box.dns, spare[1]!)
    const rotated = (await rotate()).body as unknown as Domain
    expect(rotated.status).toBe('verified')
    const after = keysOf(rotated)
    expect(after.map((record) => [record.name, record.required, record.status])).toEqual([
      ...spare.map((record) => [record.name, true, 'valid']),
      [after[2]!.name, false, 'missing'],
      [after[3]!.name, false, 'missing'],
      ...active.map((record) => [record.name, false, 'valid']),
    ])
    expect((await verify(box, domain)).status).toBe('verified')
    expect((await rotate()).body.error).toMatchObject({ code: 'spares_not_published' })

    clock.advance(7 * 24 * hour - 1)
    expect(keysOf(await get(box, domain)).map((record) => record.name)).toContain(active[0]!.name)
    clock.advance(1)
    expect(keysOf(await get(box, domain)).map((record) => record.name)).toEqual(after.slice(0, 4).map((record) => record.name))
  })

  test('at once by two callers happens once', async () => {
    const { box } = await scene()
    const domain = await addedDomain(box, 'twice.example')
    const rotate = () => box.call('POST', `/v1/domains/${domain.id}/dkim/rotate`)
    const answers = await Promise.all([rotate(), rotate(), rotate()])
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 409, 409])
    expect((await get(box, domain)).dns_records.filter(({ purpose }) => purpose === 'dkim')).toHaveLength(6)
  })
})

async function scene(
  env: Record<string, string> = {},
  clock?: HeldClock,
  testing?: Testing,
): Promise<{ box: Appliance; domain: Domain }> {
  const box = await appliance({ PILLARBOX_HOSTNAME: 'mx.box.test', ...env }, clock, testing)
  box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
  const { body } = await box.call<Domain>('POST', '/v1/domains', { name })
  return { box, domain: body }
}

async function verify(box: Appliance, { id }: Domain): Promise<Domain> {
  return (await box.call<Domain>('POST', `/v1/domains/${id}/verify`)).body
}

async function get(box: Appliance, { id }: Domain): Promise<Domain> {
  return (await box.call<Domain>('GET', `/v1/domains/${id}`)).body
}

function keysOf({ dns_records }: Pick<Domain, 'dns_records'>): DnsRecord[] {
  return dns_records.filter(({ purpose }) => purpose === 'dkim')
}

function spfOf({ dns_records }: Domain): DnsRecord {
  return dns_records.find(({ purpose }) => purpose === 'spf')!
}

/** What was told of domains, oldest first. */
function eventsOf(box: Appliance): { event: string; data: Domain }[] {
  const rows = open(box, (database) =>
    database.prepare(`SELECT type, data FROM events WHERE type LIKE 'domain.%' ORDER BY seq`).all(),
  )
  return (rows as { type: string; data: string }[]).map(({ type, data }) => ({ event: type, data: JSON.parse(data) as Domain }))
}

/** A key of an account beside the operator's, which only the operator could make. */
function otherAccount(box: Appliance): string {
  const key = newKey()
  open(box, (database) =>
    database
      .prepare(
        `INSERT INTO api_keys (id, account_id, label, scopes, key_prefix, hash, rate_limit, created_at)
          VALUES (?, ?, 'other', ?, ?, ?, 0, ?)`,
      )
      .run(newId('key'), newId('acct'), JSON.stringify(scopes), key.slice(0, 12), keyHash(key), new Date().toISOString()),
  )
  return key
}

function open<T>(box: Appliance, work: (database: Store) => T): T {
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  try {
    return work(database)
  } finally {
    database.close()
  }
}
