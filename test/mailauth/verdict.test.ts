import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { Dns, type Lookup } from '../../src/net/dns.ts'
import type { Envelope, Verdict } from '../../src/mail/model.ts'
import { confirmAuthor, checkMessage, type VerdictSettings } from '../../src/mailauth/verdict.ts'
import { DnsStub } from '../support/dns-stub.ts'
import { runs } from '../support/runs.ts'
import { ed25519Key, envelope, plainMail, rsaKey, seal, sign } from '../support/signed-mail.ts'

const settings: VerdictSettings = { hostname: 'mx.test', dmarc: 'reject', deadline: 100_000, trusted_sealers: ['list.test'] }
const rsa = rsaKey()
const ed25519 = ed25519Key()
const weak = rsaKey(768)
const stranger = '203.0.113.9'

let stub: DnsStub
beforeAll(async () => {
  stub = await DnsStub.start()
})
afterAll(() => stub.close())
beforeEach(() => {
  stub.clear()
  stub
    .txt('evil.test', 'v=spf1 ip4:192.0.2.1 -all')
    .txt('_dmarc.evil.test', 'v=DMARC1; p=reject')
    .txt('rsa._domainkey.evil.test', rsa.record)
    .txt('ed._domainkey.evil.test', ed25519.record)
    .txt('weak._domainkey.evil.test', weak.record)
    .txt('_dmarc.bank.test', 'v=DMARC1; p=reject')
    .txt('_dmarc.shop.test', 'v=DMARC1; p=quarantine')
    .txt('_dmarc.lax.test', 'v=DMARC1; p=none')
    .txt('s._domainkey.list.test', rsa.record)
})

interface Options {
  from?: Partial<Envelope>
  settings?: Partial<VerdictSettings>
  lookup?: Lookup
}

function verdictOn(raw: Buffer | string, options: Options = {}) {
  const lookup = options.lookup ?? new Dns({ servers: stub.servers, timeout: 60_000 }).lookup
  return checkMessage(Buffer.from(raw), envelope(options.from), lookup, { ...settings, ...options.settings })
}

const unauthenticated = { remote_address: stranger, mail_from: 'eve@elsewhere.test', helo: 'elsewhere.test' }

describe('signatures', () => {
  test.each([
    ['RSA-2048', 'rsa', rsa],
    ['Ed25519', 'ed', ed25519],
  ])('an honest %s signature passes, and verifies the From domain', async (_, selector, key) => {
    const raw = await sign(plainMail('Eve <eve@evil.test>'), 'evil.test', selector, key)
    const verdict = await verdictOn(raw, { from: unauthenticated })
    expect(verdict).toMatchObject({ verified_domain: 'evil.test', action: 'keep', reply: null })
    expect(verdict.authentication.dkim).toMatchObject([{ result: 'pass', domain: 'evil.test', selector, aligned: true }])
    expect(verdict.authentication.dmarc).toMatchObject({
      result: 'pass',
      domain: 'evil.test',
      policy: 'reject',
      aligned_by: ['dkim'],
    })
  })

  test('a changed body fails, and with p=reject is refused', async () => {
    const raw = await sign(plainMail('eve@evil.test'), 'evil.test', 'rsa', rsa)
    const verdict = await verdictOn(raw.toString().replace('hello', 'hellO'), { from: unauthenticated })
    expect(verdict.authentication.dkim).toMatchObject([{ result: 'fail', aligned: false }])
    expect(verdict).toMatchObject({ verified_domain: null, action: 'reject', reply: { code: 550 } })
    expect(verdict.reply).toMatchObject({ enhanced: '5.7.26', text: expect.stringContaining('evil.test') })
  })

  test('a key below 1024 bits, an expired signature and a missing key do not pass', async () => {
    const message = plainMail('eve@evil.test')
    const old = { signTime: new Date('2020-01-01'), expires: new Date('2020-01-02') }
    for (const raw of [
      await sign(message, 'evil.test', 'weak', weak),
      await sign(message, 'evil.test', 'rsa', rsa, old),
      await sign(message, 'evil.test', 'absent', rsa),
    ]) {
      const verdict = await verdictOn(raw, { from: unauthenticated })
      expect(verdict.authentication.dkim[0]!.result).not.toBe('pass')
      expect(verdict.authentication.dmarc.result).toBe('fail')
    }
  })

  test('a signature over part of the body (l=) counts for nothing', async () => {
    const raw = await sign(plainMail('eve@evil.test'), 'evil.test', 'rsa', rsa, { maxBodyLength: 7 })
    const appended = Buffer.concat([raw, Buffer.from('APPENDED BY ATTACKER\r\n')])
    for (const message of [raw, appended]) {
      const verdict = await verdictOn(message, { from: unauthenticated })
      expect(verdict.authentication.dkim).toMatchObject([
        { result: 'policy', aligned: false, reason: 'l= leaves the rest of the body unsigned' },
      ])
      expect(verdict.authentication.dmarc).toMatchObject({ result: 'fail', aligned_by: [] })
      expect(verdict.verified_domain).toBeNull()
    }
  })

  test('of a thousand signatures ten are looked at', async () => {
    const bogus = Array.from(
      { length: 1000 },
      (_, index) =>
        `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=d${index}.test; s=s; h=from; bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=AAAA\r\n`,
    ).join('')
    const verdict = await verdictOn(bogus + plainMail('eve@evil.test'))
    expect(verdict.authentication.dkim).toHaveLength(10)
    expect(stub.queries.filter((query) => query.includes('_domainkey')).length).toBeLessThanOrEqual(10)
  })

  test('of the signatures with l= one is looked at, as each has the body hashed anew', async () => {
    const bogus = Array.from(
      { length: 5 },
      (_, index) =>
        `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;\r\n\tl = ${index}; d=d${index}.test; s=s; h=from; bh=AAAA; b=AAAA\r\n`,
    ).join('')
    const honest = await sign(plainMail('eve@evil.test'), 'evil.test', 'rsa', rsa)
    const verdict = await verdictOn(Buffer.concat([Buffer.from(bogus), honest]))
    expect(verdict.authentication.dkim.map(({ domain, result }) => `${domain} ${result}`)).toEqual([
      'd0.test fail',
      'evil.test pass',
    ])
  })

  test('a signature of another domain does not vouch for the author', async () => {
    const verdict = await verdictOn(await sign(plainMail('ceo@bank.test'), 'evil.test', 'rsa', rsa))
    expect(verdict.authentication.dkim).toMatchObject([{ result: 'pass', aligned: false }])
    expect(verdict).toMatchObject({ action: 'reject', verified_domain: null })
    expect(verdict.reply?.text).toContain('bank.test')
  })
})

describe('who the author is', () => {
  // Signed by evil.test and sent from its address: a pass for anything but evil.test is a bypass.
  test.each([
    ['honest', 'eve@evil.test', 'pass'],
    ['display name that looks like an address', '"ceo@bank.test" <eve@evil.test>', 'pass'],
    ['encoded display name', '=?utf-8?Q?=22ceo=40bank.test=22?= <eve@evil.test>', 'pass'],
    ['folded', '\r\n Eve\r\n <eve@evil.test>', 'pass'],
    ['upper case and a final dot', 'eve@EVIL.TEST.', 'pass'],
    ['plain spoof', 'ceo@bank.test', 'fail'],
    ['nested comment', '(a(b)<eve@evil.test>) ceo@bank.test', 'fail'],
    ['group with a quoted semicolon', '"a;" <x@y>, g: "q;z" <eve@evil.test>;', 'fail'],
    ['space before the dot, a subdomain of the signer', 'ceo@bank.test .evil.test', 'pass', 'bank.test.evil.test'],
    ['two mailboxes', 'ceo@bank.test, eve@evil.test', 'fail'],
    ['two mailboxes of one domain', 'a@evil.test, b@evil.test', 'fail'],
    ['two From fields', 'eve@evil.test\r\nFrom: ceo@bank.test', 'fail'],
    ['a From field with a space in its name', 'eve@evil.test\r\nFrom : ceo@bank.test', 'fail'],
    ['a From field folded before its colon', 'eve@evil.test\r\nFrom\r\n : ceo@bank.test', 'fail'],
    ['source route', '<@evil.test:ceo@bank.test>', 'fail'],
    ['two at signs', '<eve@evil.test@bank.test>', 'fail'],
    ['quoted local part', '"eve@evil.test"@bank.test', 'fail'],
    ['nothing', '', 'fail'],
    ['no address', 'just a name', 'fail'],
  ] as [string, string, string, string?][])('%s', async (_, from, expected, domain = 'evil.test') => {
    const verdict = await verdictOn(await sign(plainMail(from), 'evil.test', 'rsa', rsa))
    expect(verdict.authentication.dmarc.result).toBe(expected)
    expect(verdict.verified_domain).toBe(expected === 'pass' ? domain : null)
  })

  test('an author that is shown otherwise than it was checked is not verified', async () => {
    const verdict = await verdictOn(plainMail('eve@evil.test'))
    expect(verdict.verified_domain).toBe('evil.test')
    expect(confirmAuthor(verdict, { address: 'Eve@EVIL.test', name: '' }, envelope(), settings)).toBe(verdict)
    for (const shown of [null, { address: 'ceo@bank.test', name: '' }, { address: 'eve@sub.evil.test', name: '' }]) {
      const changed = confirmAuthor(verdict, shown, envelope(), settings)
      expect(changed).toMatchObject({ verified_domain: null, authentication: { dmarc: { result: 'fail', aligned_by: [] } } })
      expect(changed.authentication_results).toContain('dmarc=fail')
    }
  })

  test('several authors are suspect', async () => {
    expect((await verdictOn(plainMail('eve@evil.test, ceo@bank.test'))).action).toBe('spam')
    expect((await verdictOn(plainMail('eve@evil.test, ceo@bank.test'), { settings: { dmarc: 'none' } })).action).toBe('keep')
  })

  test('a header beyond reason is not verified', async () => {
    const verdict = await verdictOn(`X-Pad: ${'x'.repeat(300_000)}\r\n${plainMail('eve@evil.test')}`)
    expect(verdict.verified_domain).toBeNull()
  })
})

describe('policy', () => {
  test.each([
    ['bank.test', 'reject', 'reject'],
    ['bank.test', 'quarantine', 'spam'],
    ['bank.test', 'none', 'keep'],
    ['shop.test', 'reject', 'spam'],
    ['shop.test', 'quarantine', 'spam'],
    ['shop.test', 'none', 'keep'],
    ['lax.test', 'reject', 'keep'],
    ['silent.test', 'reject', 'keep'],
  ] as const)('a forged %s under the setting %s: %s', async (domain, dmarc, action) => {
    const verdict = await verdictOn(plainMail(`ceo@${domain}`), { settings: { dmarc } })
    expect(verdict.action).toBe(action)
    expect(verdict.reply === null).toBe(action !== 'reject')
    expect(verdict.verified_domain).toBeNull()
  })

  test('a subdomain falls under its organization, and may be aligned with it', async () => {
    expect((await verdictOn(plainMail('ceo@sub.bank.test'))).action).toBe('reject')
    expect((await verdictOn(plainMail('eve@sub.evil.test'))).verified_domain).toBe('sub.evil.test')
  })

  test.each([
    ['neighbours', 'eve.github.io', 'ada.github.io', '_dmarc.github.io', null],
    ['a suffix and a name in it', 'eve.github.io', 'github.io', '_dmarc.github.io', null],
    ['neighbours under a top-level domain', 'eve.test', 'ada.test', '_dmarc.test', null],
    ['neighbours under a second-level domain', 'eve.co.uk', 'ada.co.uk', '_dmarc.co.uk', null],
    ['a public suffix with itself', 'github.io', 'github.io', '_dmarc.github.io', 'github.io'],
    ['names of one registrant', 'mail.ada.github.io', 'ada.github.io', '_dmarc.github.io', 'ada.github.io'],
  ])('across a public suffix: %s', async (_, sender, author, name, verified) => {
    stub.txt(name, 'v=DMARC1; p=reject').txt(sender, 'v=spf1 ip4:192.0.2.1 -all').txt(`s._domainkey.${sender}`, rsa.record)
    const from = { mail_from: `eve@${sender}`, helo: sender }
    const message = plainMail(`ada@${author}`)
    const signed = await sign(message, sender, 's', rsa)
    const action = verified === null ? 'reject' : 'keep'
    expect(await verdictOn(message, { from })).toMatchObject({ verified_domain: verified, action })
    expect(await verdictOn(signed, { from: unauthenticated })).toMatchObject({ verified_domain: verified, action })
  })

  test('what a trusted forwarder saw pass is kept; a stranger vouches for nothing', async () => {
    const forged = Buffer.from(plainMail('ceo@bank.test'))
    const trusted = await seal(forged, 'list.test', 's', rsa, 'list.test; dmarc=pass header.from=bank.test')
    const verdict = await verdictOn(trusted)
    expect(verdict).toMatchObject({
      action: 'keep',
      verified_domain: null,
      authentication: { arc: { result: 'pass', chain: 1 } },
    })
    expect(verdict.authentication.dmarc.result).toBe('fail')
    const doubtful = await seal(forged, 'list.test', 's', rsa, 'list.test; dmarc=fail header.from=bank.test')
    const foreign = await seal(forged, 'evil.test', 'rsa', rsa, 'evil.test; dmarc=pass header.from=bank.test')
    for (const raw of [doubtful, foreign, trusted.toString().replace('hello', 'hellO')])
      expect((await verdictOn(raw)).action).toBe('reject')
  })

  test.each([
    ['for another author', 'dmarc=pass header.from=evil.test'],
    ['for nobody', 'dmarc=pass'],
    ['beside another', 'dmarc=fail header.from=bank.test; dmarc=pass header.from=bank.test'],
    ['beside another, behind a comment', 'dmarc=fail header.from=bank.test; (x) dmarc (y) =pass header.from=bank.test'],
  ])('a pass that a trusted forwarder saw %s does not count', async (_, results) => {
    const sealed = await seal(Buffer.from(plainMail('ceo@bank.test')), 'list.test', 's', rsa, `list.test; ${results}`)
    expect(await verdictOn(sealed)).toMatchObject({
      action: 'reject',
      forwarder: null,
      authentication: { arc: { result: 'pass' } },
    })
  })

  test('a pass that a trusted forwarder saw counts in any case and with a comment', async () => {
    const results = 'list.test; spf=none; dmarc=pass (p=REJECT) header.from=Bank.Test policy.dmarc=reject'
    const sealed = await seal(Buffer.from(plainMail('ceo@bank.test')), 'list.test', 's', rsa, results)
    expect(await verdictOn(sealed)).toMatchObject({ action: 'keep', forwarder: 'list.test' })
  })

  test('more than five ARC sets are not followed', async () => {
    let raw = Buffer.from(plainMail('eve@evil.test'))
    for (let set = 1; set <= 6; set++)
      raw = Buffer.from(await seal(raw, 'list.test', 's', rsa, 'list.test; dmarc=pass', set === 1 ? 'none' : 'pass'))
    const verdict = await verdictOn(raw)
    expect(verdict.authentication.arc).toMatchObject({ result: 'fail', chain: 0 })
    expect(stub.queries.filter((query) => query.includes('_domainkey'))).toEqual([])
  })
})

describe('SPF', () => {
  test('passes and aligns for the address of the domain, and fails for another', async () => {
    expect((await verdictOn(plainMail('eve@evil.test'))).authentication).toMatchObject({
      spf: { result: 'pass', domain: 'evil.test' },
      dmarc: { result: 'pass', aligned_by: ['spf'] },
    })
    const other = await verdictOn(plainMail('eve@evil.test'), { from: { remote_address: stranger } })
    expect(other.authentication.spf.result).toBe('fail')
    expect(other.action).toBe('reject')
  })

  test('reads an IPv4 client in IPv6 clothes, and loopback as any other', async () => {
    const mapped = await verdictOn(plainMail('eve@evil.test'), { from: { remote_address: '::ffff:192.0.2.1' } })
    expect(mapped.authentication.spf.result).toBe('pass')
    for (const remote_address of ['127.0.0.1', '::1'])
      expect((await verdictOn(plainMail('eve@evil.test'), { from: { remote_address } })).authentication.spf.result).toBe('fail')
  })

  test('judges the null sender by its HELO name', async () => {
    stub.txt('mail.evil.test', 'v=spf1 ip4:192.0.2.1 -all')
    const verdict = await verdictOn(plainMail('mailer-daemon@evil.test'), { from: { mail_from: '' } })
    expect(verdict.authentication.spf).toMatchObject({ result: 'pass', domain: 'mail.evil.test' })
    expect(verdict.authentication_results).toContain('smtp.helo=mail.evil.test')
    expect(verdict.authentication_results).not.toContain('smtp.mailfrom')
  })

  test('stops at ten includes', async () => {
    for (let index = 0; index < 12; index++) stub.txt(`i${index}.test`, `v=spf1 include:i${index + 1}.test -all`)
    const verdict = await verdictOn(plainMail('a@i0.test'), { from: { mail_from: 'a@i0.test' } })
    expect(verdict.authentication.spf.result).toBe('permerror')
    expect(stub.queries.filter((query) => /^TXT i\d/.test(query)).length).toBeLessThanOrEqual(11)
  })

  test('asks at most fifty questions', async () => {
    wasteful('many.test')
    const verdict = await verdictOn(plainMail('ceo@bank.test'), { from: { mail_from: 'a@many.test' } })
    expect(verdict.authentication.spf.result).toBe('permerror')
    expect(verdict.action).toBe('reject')
    expect(stub.queries.filter((query) => query.endsWith('many.test'))).toHaveLength(50)
  })

  test('takes no lookups from the policy of the author, nor from keys', async () => {
    wasteful('many.test')
    const names = ['s._domainkey.bank.test']
    for (let labels = 'a.b.c.d.e.bank.test'.split('.'); labels.length > 0; labels = labels.slice(1))
      names.push(`_dmarc.${labels.join('.')}`)
    const { lookup } = new Dns({ servers: stub.servers, timeout: 60_000 })
    // the answers of the author's name servers come after those of the sender's
    const late = Promise.withResolvers<void>()
    const ordered: Lookup = async (name, type) => {
      if (names.includes(name)) await late.promise
      return lookup(name, type)
    }
    const raw = await sign(plainMail('ceo@a.b.c.d.e.bank.test'), 'bank.test', 's', rsa)
    const pending = verdictOn(raw.toString().replace('d=bank', 'd =\r\n bank'), {
      from: { mail_from: 'a@many.test' },
      lookup: ordered,
    })
    await vi.waitUntil(() => stub.queries.filter((query) => query.startsWith('A ')).length >= 40, 20_000)
    late.resolve()
    const { authentication, action } = await pending
    expect(authentication).toMatchObject({
      spf: { result: 'permerror' },
      dkim: [{ result: 'neutral' }],
      dmarc: { result: 'fail' },
    })
    expect(action).toBe('reject')
  })
})

/** Publishes an SPF record that takes a hundred lookups. */
function wasteful(domain: string) {
  stub.txt(domain, `v=spf1 ${Array.from({ length: 9 }, (_, index) => `mx:m${index}.${domain}`).join(' ')} -all`)
  for (let index = 0; index < 9; index++) {
    const hosts = Array.from({ length: 10 }, (_, host) => `h${index}x${host}.${domain}`)
    stub.mx(`m${index}.${domain}`, ...hosts)
    for (const host of hosts) stub.a(host, '198.51.100.1')
  }
}

describe('trouble with the DNS', () => {
  test.each(['servfail', 'refused', 'silence'] as const)('%s everywhere: temperror everywhere, and kept', async (trouble) => {
    stub.trouble = trouble
    const raw = await sign(plainMail('eve@evil.test'), 'evil.test', 'rsa', rsa)
    const verdict = await verdictOn(raw, { lookup: new Dns({ servers: stub.servers, timeout: 200 }).lookup })
    expect(verdict).toMatchObject({ action: 'keep', reply: null, verified_domain: null })
    expect(verdict.authentication).toMatchObject({
      spf: { result: 'temperror' },
      dkim: [{ result: 'temperror' }],
      dmarc: { result: 'temperror' },
    })
  })

  test('a name server that does not answer at all is left alone after two queries', async () => {
    let asked = 0
    const lookup: Lookup = async () => {
      asked += 1
      throw Object.assign(new Error('late'), { code: 'ETIMEOUT' })
    }
    const raw = await sign(plainMail('eve@evil.test'), 'evil.test', 'rsa', rsa)
    expect((await verdictOn(raw, { lookup })).authentication.dmarc.result).toBe('temperror')
    // The queries of the three checks leave together.
    expect(asked).toBeLessThanOrEqual(4)
  })

  test('no one is refused because their own key could not be looked up', async () => {
    stub.fails('rsa._domainkey.evil.test', 'servfail')
    const verdict = await verdictOn(await sign(plainMail('eve@evil.test'), 'evil.test', 'rsa', rsa), { from: unauthenticated })
    expect(verdict).toMatchObject({ action: 'keep', verified_domain: null, authentication: { dmarc: { result: 'temperror' } } })
  })

  const longLabel = 'a'.repeat(50)
  test.each([
    ['too long a name', Array.from({ length: 5 }, () => longLabel).join('.'), 'bank.test'],
    ['too long a domain', 's', `${Array.from({ length: 4 }, () => longLabel).join('.')}.${'b'.repeat(30)}.bank.test`],
    ['too long a label', 'a'.repeat(64), 'bank.test'],
    ['an empty label', 'a..b', 'bank.test'],
    ['a letter that is not ASCII', 'ä', 'bank.test'],
    ['a space', 'a b', 'bank.test'],
    ['a backslash', 'a\\\\b', 'bank.test'],
  ])('a forger gains nothing by the name of a key that cannot exist: %s', async (_, selector, domain) => {
    const raw = await sign(plainMail('ceo@bank.test'), 'bank.test', 'selector', rsa)
    const forged = raw
      .toString('latin1')
      .replace(/\bs=selector;/, `s=${Buffer.from(selector).toString('latin1')};`)
      .replace(/\bd=bank\.test;/, `d=${domain};`)
    expect(forged).not.toBe(raw.toString('latin1'))
    const verdict = await verdictOn(Buffer.from(forged, 'latin1'), { from: unauthenticated })
    expect(verdict).toMatchObject({ action: 'reject', authentication: { dmarc: { result: 'fail' } } })
  })

  test('a forger gains nothing by name servers of his own that do not answer', async () => {
    const dns = new Dns({ servers: stub.servers, timeout: 60_000 })
    const raw = await sign(plainMail('ceo@bank.test'), 'a.slow.test', 'x', rsa)
    const from = { mail_from: 'eve@slow.test', remote_address: stranger }
    const verdict = await verdictOn(raw, {
      lookup: (name, type) => (name.endsWith('slow.test') ? new Promise(() => undefined) : dns.lookup(name, type)),
      from,
      settings: { deadline: 3000 },
    })
    expect(verdict.authentication.spf.result).toBe('temperror')
    expect(verdict.action).toBe('reject')
  })

  test('slow answers end at the deadline', async () => {
    for (const name of ['evil.test', '_dmarc.evil.test', 'rsa._domainkey.evil.test']) stub.slow(name, 20_000)
    const raw = await sign(plainMail('eve@evil.test'), 'evil.test', 'rsa', rsa)
    const lookup = new Dns({ servers: stub.servers, timeout: 30_000 }).lookup
    const verdict = await verdictOn(raw, { lookup, settings: { deadline: 200 } })
    expect(verdict.authentication).toMatchObject({
      spf: { result: 'temperror' },
      dkim: [{ result: 'temperror' }],
      dmarc: { result: 'temperror' },
    })
    expect(verdict.action).toBe('keep')
  })

  test('no such domain is an answer', async () => {
    const verdict = await verdictOn(plainMail('a@nowhere.test'), { from: { mail_from: 'a@nowhere.test' } })
    expect(verdict.authentication).toMatchObject({ spf: { result: 'none' }, dkim: [], dmarc: { result: 'none', policy: null } })
    expect(verdict.action).toBe('keep')
  })
})

describe('our Authentication-Results', () => {
  test('carry the four results under our name', async () => {
    const verdict = await verdictOn(await sign(plainMail('eve@evil.test'), 'evil.test', 'rsa', rsa))
    expect(verdict.authentication_results.replace(/\r\n +/g, ' ')).toBe(
      'mx.test; spf=pass smtp.mailfrom=evil.test; dkim=pass header.d=evil.test header.s=rsa header.a=rsa-sha256; dmarc=pass (p=reject) header.from=evil.test',
    )
  })

  test('hold nothing a sender could end them with', async () => {
    const nasty = 'evil.test";\r\n\tdmarc=pass header.from=bank.test\r\n\r\nX: y(\\'
    const forged = `Authentication-Results: mx.test; dmarc=pass header.from=bank.test; spf=pass (canary)\r\n`
    const signature = `DKIM-Signature: v=1; a=rsa-sha256; d=evil.test)(; s=x\r\n\ty"; dmarc=pass; h=from; bh=AA==; b=AA==\r\n`
    for (const [mail_from, helo] of [
      [nasty, nasty],
      ['', nasty],
      [`a@${nasty}`, 'x'],
      [`"\r\nX: y"@${'a.'.repeat(200)}test`, '\u{202e}\0'],
    ] as const) {
      const verdict = await verdictOn(signature + forged + plainMail(`"x\r\n y" <a@b;c"d.test>`), { from: { mail_from, helo } })
      const lines = verdict.authentication_results.split('\r\n')
      expect(lines.slice(1).every((line) => /^ [\x20-\x7e]+$/.test(line) && line.length <= 998)).toBe(true)
      expect(verdict.authentication_results).not.toContain('canary')
      const outsideQuotes = verdict.authentication_results.replace(/"(?:[^"\\]|\\.)*"/g, '""')
      expect(outsideQuotes.match(/dmarc=/g)).toHaveLength(1)
      expect(outsideQuotes).not.toContain('dmarc=pass')
    }
  })

  test('are folded', async () => {
    const domain = `${'long.'.repeat(9)}test`
    stub.txt(`rsa._domainkey.${domain}`, rsa.record)
    const verdict = await verdictOn(await sign(plainMail(`a@${domain}`), domain, 'rsa', rsa))
    expect(Math.max(...verdict.authentication_results.split('\r\n').map((line) => line.length))).toBeLessThan(78)
  })
})

test('no mutation of a signed message makes the checks throw', async () => {
  const seed = 20261120
  let state = seed
  const random = (below: number) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return state % below
  }
  const texts = [
    rsa.record,
    'v=DKIM1; p=',
    'garbage',
    'v=spf1 include:a.test -all',
    'v=DMARC1; p=reject; adkim=s',
    'v=DMARC1; p=none; np=reject',
  ]
  const codes = ['ETIMEOUT', 'ENOTFOUND', 'ESERVFAIL', 'ENODATA', 'EBADRESP']
  const lookup: Lookup = async (_, type) => {
    const code = codes[random(9)]
    if (code) throw Object.assign(new Error(code), { code })
    if (type === 'MX') return [{ priority: 1, exchange: 'm.test' }]
    return type === 'TXT' ? [[texts[random(texts.length)]!]] : ['192.0.2.1']
  }
  const pieces = [
    'DKIM-Signature: v=1; a=rsa-sha256; d=a.test; s=s; h=from; bh=; b=\r\n',
    'ARC-Seal: i=1; cv=none; a=rsa-sha256; d=a.test; s=s; b=A\r\n',
  ]
  pieces.push(
    'From: a@b.test\r\n',
    'From: =?x?q?',
    ' l=0;',
    'l=-1;',
    'i=51;',
    '\r\n\t',
    '\r\n\r\n',
    '\0',
    'bh=',
    't=99999999999999',
    'x=1;',
  )
  pieces.push(`h=${'from:'.repeat(500)};`, '__proto__', `d=${'a.'.repeat(200)}test;`, '\n', '\r', '@', '<', '"', '(', ',')
  const signed = await sign(plainMail('Eve <eve@evil.test>'), 'evil.test', 'rsa', rsa)
  const seeds = [signed, await seal(signed, 'list.test', 's', rsa, 'list.test; dmarc=pass')]
  const complaints: string[] = []
  for (let round = 0; round < runs(1000); round++) {
    let raw = Buffer.from(seeds[random(2)]!)
    for (let change = random(6); change >= 0; change--) {
      const at = random(raw.length + 1)
      const piece = random(3) === 0 ? Buffer.from([random(256)]) : Buffer.from(pieces[random(pieces.length)]!)
      raw = Buffer.concat([raw.subarray(0, at), piece, raw.subarray(Math.min(raw.length, at + random(20)))])
    }
    const from = {
      mail_from: ['a@b.test', '', 'x', '"a b"@c', `a@${'b.'.repeat(150)}`][random(5)]!,
      remote_address: ['192.0.2.1', '2001:db8::1', 'x'][random(3)]!,
    }
    const verdict = await verdictOn(raw, { lookup, from })
    const complaint = complaintAbout(verdict)
    if (complaint) complaints.push(`${complaint}: seed ${seed}, round ${round}: ${raw.toString('base64')}`)
  }
  expect(complaints).toEqual([])
})

function complaintAbout({ authentication, authentication_results, verified_domain }: Verdict): string | null {
  if (authentication.spf.reason?.includes('did not finish')) return authentication.spf.reason
  if (/[^\r\n\x20-\x7e]|\r\n[^ ]|[^\r]\n/.test(authentication_results)) return 'a field that can be broken'
  return verified_domain !== null && authentication.dmarc.result !== 'pass' ? 'verified without a pass' : null
}
