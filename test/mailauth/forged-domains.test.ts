import { createHash, createSign } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Dns } from '../../src/net/dns.ts'
import type { Envelope, Verdict } from '../../src/mail/model.ts'
import { parse } from '../../src/message/parse.ts'
import type { Parsed } from '../../src/message/parsed.ts'
import { confirmAuthor, checkMessage, type VerdictSettings } from '../../src/mailauth/verdict.ts'
import { DnsStub } from '../support/dns-stub.ts'
import { envelope, rsaKey, seal, sign } from '../support/signed-mail.ts'

const settings: VerdictSettings = { hostname: 'mx.test', dmarc: 'reject', deadline: 100_000, trusted_sealers: ['list.test'] }
const theirs = rsaKey()
const eves = rsaKey()

let stub: DnsStub
beforeAll(async () => {
  stub = await DnsStub.start()
})
afterAll(() => stub.close())
beforeEach(() => {
  stub.clear()
  stub
    .txt('bank.test', 'v=spf1 ip4:192.0.2.1 -all')
    .txt('_dmarc.bank.test', 'v=DMARC1; p=reject')
    .txt('_dmarc.shop.test', 'v=DMARC1; p=quarantine')
    .txt('_dmarc.lax.test', 'v=DMARC1; p=none')
    .txt('evil.test', 'v=spf1 ip4:203.0.113.9 -all')
    .txt('_dmarc.evil.test', 'v=DMARC1; p=none')
    .txt('s._domainkey.evil.test', eves.record)
})

/** By somebody else than the bank, from an address that SPF knows. */
const eve = { remote_address: '203.0.113.9', mail_from: 'eve@evil.test', helo: 'evil.test' }
const all = 'from:to:subject:date:message-id'
const body = 'See you at the branch.\r\n'

function mailFrom(from: string): string {
  const fields = [`From: ${from}`, 'To: u@mx.test', 'Subject: Your sign-in code is 493817']
  return [...fields, 'Date: Thu, 19 Nov 2026 10:00:00 +0000', 'Message-ID: <1@bank.test>', '', body].join('\r\n')
}

async function received(raw: Buffer | string, from: Partial<Envelope> = eve): Promise<{ verdict: Verdict; parsed: Parsed }> {
  const octets = Buffer.from(raw)
  const lookup = new Dns({ servers: stub.servers, timeout: 60_000 }).lookup
  const parsed = await parse(octets)
  return {
    verdict: confirmAuthor(await checkMessage(octets, envelope(from), lookup, settings), parsed.from, envelope(from), settings),
    parsed,
  }
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1)
}

/** Signed by Eve, with `d=` in whatever letters; the library that signs for the other tests maps them. */
function signedAs(d: string, message: string, c = 'relaxed/relaxed'): string {
  const header = message.slice(0, message.indexOf('\r\n\r\n')).split('\r\n')
  const lines = all.split(':').map((name) => {
    const line = header.find((one) => one.toLowerCase().startsWith(`${name}:`))!
    return `${name}:${line.slice(name.length + 1).trim()}\r\n`
  })
  const bh = createHash('sha256').update(body).digest('base64')
  const value = `v=1; a=rsa-sha256; c=${c}; d=${d}; s=s; h=${all}; bh=${bh}; b=`
  const signature = createSign('sha256')
    .update(`${lines.join('')}dkim-signature:${value}`)
    .sign(eves.pem, 'base64')
  return `DKIM-Signature: ${value}${signature}\r\n${message}`
}

/** What UTS 46 or the reader of a URL makes `name` of, and what the DNS is asked for. */
const spellings: [what: string, (name: string) => string][] = [
  ['a soft hyphen', (name) => `${name.slice(0, 2)}\u00ad${name.slice(2)}`],
  ['a letter of full width', (name) => String.fromCodePoint(name.codePointAt(0)! + 0xfee0) + name.slice(1)],
  ['a mathematical letter', (name) => String.fromCodePoint(name.codePointAt(0)! - 0x61 + 0x1d41a) + name.slice(1)],
  ['a space of no width', (name) => name.replace('.', '\u200b.')],
  ['a word joiner', (name) => `${name.slice(0, 1)}\u2060${name.slice(1)}`],
  ['a grapheme joiner', (name) => `${name.slice(0, 3)}\u034f${name.slice(3)}`],
  ['a variation selector', (name) => name.replace('.', '\ufe0f.')],
  ['an ideographic full stop', (name) => name.replace('.', '\u3002')],
  ['a joiner', (name) => `${name.slice(0, 2)}\u200d${name.slice(2)}`],
  ['a soft hyphen at its end', (name) => `${name}\u00ad`],
  ['a slash', (name) => `${name}/.evil.test`],
  ['a question mark', (name) => `${name}?.evil.test`],
  ['a number sign', (name) => `${name}#.evil.test`],
  ['a question mark at its end', (name) => `${name}?`],
  ['a slash at its end', (name) => `${name}/`],
  ['an escape', (name) => `${name.slice(0, 1)}%${name.charCodeAt(1).toString(16)}${name.slice(2)}`],
]

describe('the domain in From, written with', () => {
  test.each(spellings)('%s: is that of the bank to nobody', async (_, spelled) => {
    for (const name of [spelled('bank.test'), `${spelled('bank.test')}.`]) {
      const mail = mailFrom(`Bank <service@${name}>`)
      for (const raw of [mail, await sign(mail, 'evil.test', 's', eves, { headerList: all })]) {
        const { verdict, parsed } = await received(raw)
        expect(parsed.from).toBeNull()
        expect(verdict).toMatchObject({ verified_domain: null, action: 'reject' })
      }
    }
  })

  test.each(spellings)('%s: what is shown is what was asked for, or the message is suspect', async (_, spelled) => {
    for (const name of ['bank.test', 'shop.test', 'lax.test', 'unknown.test', 'xn--bcher-kva.test', 'evil.test']) {
      for (const from of [`service@${spelled(name)}`, `<service@${spelled(name)}> (x)`, `"a@${name}" <b@${spelled(name)}>`]) {
        const { verdict, parsed } = await received(mailFrom(from))
        const { verified_domain, action, authentication } = verdict
        expect(verified_domain).toBeNull()
        if (parsed.from !== null) expect(authentication.dmarc.domain).toBe(domainOf(parsed.from.address))
        else expect(action).toBe(name === 'bank.test' ? 'reject' : 'spam')
      }
    }
  })

  test('an encoded word that looks like a domain and a question mark', async () => {
    const { verdict } = await received(mailFrom('group: =?utf-8?q?=0D=0AFrom:_service@bank.test?='))
    expect(verdict).toMatchObject({ verified_domain: null, action: 'reject' })
  })

  test('a dot at its end: it is the same domain', async () => {
    const { verdict, parsed } = await received(mailFrom('eve@evil.test.'))
    expect(parsed.from?.address).toBe('eve@evil.test')
    expect(verdict.verified_domain).toBe('evil.test')
  })

  test('a thousand letters before it: nobody is shown, and the message is suspect', async () => {
    for (const domain of ['evil.test', 'bank.test']) {
      const { verdict, parsed } = await received(mailFrom(`${'a'.repeat(1000)}@${domain}`))
      expect(parsed.from).toBeNull()
      expect(verdict).toMatchObject({ verified_domain: null, action: 'spam', authentication: { dmarc: { result: 'fail' } } })
    }
  })

  test('an address literal: there is no policy to ask for', async () => {
    const { verdict, parsed } = await received(mailFrom('printer@[192.0.2.7]'))
    expect(parsed.from?.address).toBe('printer@[192.0.2.7]')
    expect(verdict).toMatchObject({ action: 'keep', authentication: { dmarc: { result: 'none', domain: '[192.0.2.7]' } } })
  })
})

describe('no author', () => {
  const message = mailFrom('x').replace(/^From: .*\r\n/, '')
  test.each([
    '<eve@evil.test> <ceo@bank.test>',
    'Eve <eve@evil.test> CEO <ceo@bank.test>',
    '<eve@evil.test> ceo@bank.test',
    'eve@evil.test ceo@bank.test',
    '"Eve" <eve@evil.test> (head) <ceo@bank.test>',
  ])('is in %s, of which other software may show the last address', async (from) => {
    const { verdict } = await received(mailFrom(from))
    expect(verdict.authentication.dmarc).toMatchObject({ result: 'fail', reason: 'the From field is ambiguous' })
    expect(verdict).toMatchObject({ verified_domain: null, action: 'spam' })
  })

  test.each([
    'eve@evil.test <eve@evil.test>',
    '"ceo@bank.test" <eve@evil.test>',
    'Eve <eve@evil.test> (of @evil.test)',
    '"a\\"@b" <eve@evil.test>',
  ])('is missing in %s: there is one address', async (from) => {
    const { verdict } = await received(mailFrom(from))
    expect(verdict.verified_domain).toBe('evil.test')
  })

  test('shows the sender of the envelope, whose policy holds', async () => {
    const forged = { ...eve, mail_from: 'service@bank.test' }
    expect((await received(message, forged)).verdict).toMatchObject({ action: 'reject', verified_domain: null })
    expect((await received(message, { ...forged, remote_address: '192.0.2.1' })).verdict.action).toBe('keep')
    expect((await received(message, { ...eve, mail_from: '' })).verdict.action).toBe('keep')
  })

  test('nor is another author than the one who was checked shown, whatever the result', async () => {
    const lookup = new Dns({ servers: stub.servers, timeout: 60_000 }).lookup
    for (const from of ['a@unknown.test', 'a@lax.test', 'a@evil.test', 'a@shop.test']) {
      const verdict = await checkMessage(Buffer.from(mailFrom(from)), envelope(eve), lookup, settings)
      const shown = { address: 'service@bank.test', name: '' }
      expect(confirmAuthor(verdict, shown, envelope(eve), settings)).toMatchObject({
        action: 'spam',
        verified_domain: null,
        authentication: { dmarc: { result: 'fail' } },
      })
    }
  })
})

/** 210 characters, of which the first 200 end in `bank.test`. */
const long = `${`${'a'.repeat(50)}.`.repeat(3)}${'a'.repeat(37)}.bank.test.evil.test`

describe('a name that begins like one of the bank', () => {
  test('is not cut to be one', async () => {
    expect(long).toHaveLength(210)
    expect(long.slice(0, 200)).toMatch(/\.bank\.test$/)
    stub.txt(`s._domainkey.${long}`, eves.record).txt(long, 'v=spf1 ip4:203.0.113.9 -all')
    const mail = mailFrom('service@bank.test')
    for (const [raw, from] of [
      [await sign(mail, long, 's', eves, { headerList: all }), { ...eve, remote_address: '198.51.100.1' }],
      [mail, { ...eve, mail_from: `eve@${long}` }],
      [mail, { ...eve, mail_from: '', helo: long }],
    ] as const) {
      const { verdict } = await received(raw, from)
      expect(verdict).toMatchObject({ verified_domain: null, action: 'reject' })
      const { spf, dkim } = verdict.authentication
      expect([spf, ...dkim].find(({ result }) => result === 'pass')?.domain).toBe(long)
    }
  })
})

describe('the domain of a signature, written with', () => {
  test.each(spellings)('%s: is not that of the bank', async (_, spelled) => {
    const d = spelled('bank.test')
    const mail = mailFrom('service@bank.test')
    stub.queries.length = 0
    await received(signedAs(d, mail))
    for (const query of stub.queries.filter((one) => one.includes('_domainkey')))
      stub.txt(query.slice(query.indexOf('s._domainkey')), eves.record)
    const { verdict } = await received(signedAs(d, mail))
    expect(verdict).toMatchObject({ verified_domain: null, action: 'reject' })
    expect(verdict.authentication.dkim).toMatchObject([{ aligned: false }])
    expect(verdict.authentication.dkim[0]!.result).not.toBe('pass')
  })

  test('the letters of an internationalized name: it counts', async () => {
    stub.txt('s._domainkey.xn--bcher-kva.test', eves.record).txt('_dmarc.xn--bcher-kva.test', 'v=DMARC1; p=reject')
    for (const d of ['bücher.test', 'xn--bcher-kva.test']) {
      const { verdict } = await received(signedAs(d, mailFrom('ada@bücher.test')))
      expect(verdict.verified_domain).toBe('xn--bcher-kva.test')
      expect(verdict.authentication.dkim).toMatchObject([{ result: 'pass', domain: 'xn--bcher-kva.test', aligned: true }])
    }
  })
})

// the library that seals reads the ideographic full stop as a dot, so that the seal is honest
const sealable = spellings.filter(([, spelled]) => !spelled('a.b').includes('\u3002'))

test.each(['relaxed/relaxed/simple', 'relaxed/relaxed/'])(
  'a signature with c=%s, which is no canonicalization, counts for nothing',
  async (c) => {
    const { verdict } = await received(signedAs('evil.test', mailFrom('Eve <eve@evil.test>'), c), { mail_from: 'eve@else.test' })
    expect(verdict.authentication.dkim).toMatchObject([{ result: 'policy', aligned: false, reason: 'c= is not valid' }])
    expect(verdict.verified_domain).toBeNull()
  },
)

test('a signature with text after its base64 counts for nothing', async () => {
  const signed = signedAs('evil.test', mailFrom('Eve <eve@evil.test>')).replace(/(b=[^;\r]*)\r\nFrom/, '$1\r\n continued\r\nFrom')
  expect(signed).toContain('=\r\n continued')
  const { verdict } = await received(signed, { mail_from: 'eve@else.test' })
  expect(verdict.authentication.dkim).toMatchObject([{ result: 'policy', aligned: false, reason: 'b= is not base64' }])
})

test.each(sealable)('a seal of a domain that is written with %s is not that of a trusted one', async (_, spelled) => {
  const d = spelled('list.test')
  const asked = async (): Promise<Verdict> => {
    const raw = await seal(Buffer.from(mailFrom('service@bank.test')), d, 's', eves, 'list.test; dmarc=pass')
    return (await received(raw)).verdict
  }
  stub.queries.length = 0
  await asked()
  for (const query of stub.queries.filter((one) => one.includes('_domainkey')))
    stub.txt(query.slice(query.indexOf('s._domainkey')), eves.record)
  expect(await asked()).toMatchObject({ action: 'reject', forwarder: null })
})

describe('senders of internationalized domains are verified', () => {
  test.each(['bücher.test', 'BÜCHER.test', 'bu\u0308cher.test', 'xn--bcher-kva.test', 'XN--Bcher-KVA.Test'])(
    '%s',
    async (name) => {
      stub
        .txt('xn--bcher-kva.test', 'v=spf1 ip4:192.0.2.5 -all')
        .txt('_dmarc.xn--bcher-kva.test', 'v=DMARC1; p=reject')
        .txt('s._domainkey.xn--bcher-kva.test', theirs.record)
      const own = { remote_address: '192.0.2.5', mail_from: `ada@${name}`, helo: 'mail.test', smtputf8: true }
      const shown = { from: { address: 'ada@xn--bcher-kva.test' } }
      const bySpf = await received(mailFrom(`Ada <ada@${name}>`), own)
      expect(bySpf.parsed).toMatchObject(shown)
      expect(bySpf.verdict).toMatchObject({ verified_domain: 'xn--bcher-kva.test', action: 'keep' })
      const signed = await sign(mailFrom(`Ada <ada@${name}>`), 'xn--bcher-kva.test', 's', theirs, { headerList: all })
      expect((await received(signed)).verdict).toMatchObject({ verified_domain: 'xn--bcher-kva.test', action: 'keep' })
    },
  )

  test.each(['straße.test', 'نامه\u200cای.test', '例え.test', 'my_shop.lax.test'])(
    '%s is shown, and its policy asked for',
    async (name) => {
      const { verdict, parsed } = await received(mailFrom(`ada@${name}`))
      expect(verdict.authentication.dmarc.domain).toBe(domainOf(parsed.from!.address))
      expect(parsed.from!.address).toMatch(/^ada@[a-z0-9._-]+$/)
    },
  )
})
