import { createPrivateKey } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Dns } from '../../src/net/dns.ts'
import type { Envelope, Verdict } from '../../src/mail/model.ts'
import { parse } from '../../src/message/parse.ts'
import { confirmAuthor, checkMessage, type VerdictSettings } from '../../src/mailauth/verdict.ts'
import { DkimSigner } from '../../src/outbound/compose/signing.ts'
import { DnsStub } from '../support/dns-stub.ts'
import { HeldClock } from '../support/held-clock.ts'
import { ed25519Key, envelope, rsaKey, seal, sign } from '../support/signed-mail.ts'

const settings: VerdictSettings = { hostname: 'mx.test', dmarc: 'reject', deadline: 100_000, trusted_sealers: ['list.test'] }
const rsa = rsaKey()
const ed25519 = ed25519Key()

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
    .txt('s._domainkey.bank.test', rsa.record)
    .txt('s._domainkey.list.test', rsa.record)
})

const all = 'from:to:subject:date:message-id:mime-version:content-type:content-transfer-encoding'
const honest = [
  'From: Bank <service@bank.test>',
  'To: u@mx.test',
  'Subject: Your statement is ready',
  'Date: Thu, 19 Nov 2026 10:00:00 +0000',
  'Message-ID: <1@bank.test>',
  'MIME-Version: 1.0',
  'Content-Type: text/plain; charset=utf-8',
  'Content-Transfer-Encoding: 7bit',
  '',
  'See you at the branch.',
  '',
].join('\r\n')

/** By somebody else than the bank. */
const stranger = { remote_address: '203.0.113.9', mail_from: 'eve@elsewhere.test', helo: 'elsewhere.test' }

function verdictOn(raw: Buffer | string, from: Partial<Envelope> = stranger): Promise<Verdict> {
  return checkMessage(Buffer.from(raw), envelope(from), new Dns({ servers: stub.servers, timeout: 60_000 }).lookup, settings)
}

/** Without SPF. */
function keysAre(name: string, record: string) {
  stub.clear()
  stub.txt('_dmarc.bank.test', 'v=DMARC1; p=reject').txt(name, record)
}

const signed = (message = honest, headerList = all) => sign(message, 'bank.test', 's', rsa, { headerList })

/** The fields in another order, which a signature leaves free; `line` in one of these places. */
async function rearranged(line: string): Promise<string[]> {
  const raw = (await signed()).toString()
  const signature = raw.slice(0, -honest.length)
  const [header = '', body = ''] = honest.split('\r\n\r\n')
  return [
    `${header}\r\n${line}\r\n${signature}\r\n${body}`,
    `${header}\r\n${signature}${line}\r\n\r\n${body}`,
    `${header}\r\nX-A: b\r\n${line}\r\n${signature}\r\n${body}`,
    `${line}\r\n${raw}`,
  ]
}

const code = 'Subject: Your sign-in code is 493817\r\n'
const multipart = 'Content-Type: multipart/mixed; boundary=x\r\n'

describe('lines that somebody else put before a signed message', () => {
  test.each([
    ['a Subject', code],
    ['a Subject, folded before its colon', 'Subject\r\n : Your sign-in code is 493817\r\n'],
    ['a Subject whose colon is lines away', 'X-A: b\r\nSubject\r\n \r\n : Your sign-in code is 493817\r\n'],
    ['a Subject of another case', 'SUBJECT: Your sign-in code is 493817\r\n'],
    ['a second To', 'To: v@mx.test\r\n'],
    ['a second Date', 'Date: Fri, 20 Nov 2026 10:00:00 +0000\r\n'],
    ['a second Message-ID', 'Message-ID: <2@bank.test>\r\n'],
    ['a second Content-Type', multipart],
    ['a second MIME-Version', 'MIME-Version: 1.0\r\n'],
    ['a second Content-Transfer-Encoding', 'Content-Transfer-Encoding: base64\r\n'],
    ['all of them', code + multipart + 'Reply-To: eve@elsewhere.test\r\n'],
  ])('%s: the signature does not count', async (_, lines) => {
    const raw = await signed()
    expect((await verdictOn(raw)).verified_domain).toBe('bank.test')
    const verdict = await verdictOn(lines + raw.toString())
    expect(verdict.authentication.dkim).toMatchObject([{ result: 'policy', domain: 'bank.test', aligned: false }])
    expect(verdict.authentication.dkim[0]!.reason).toMatch(/more than one|ambiguous/)
    expect(verdict).toMatchObject({ verified_domain: null, action: 'reject', authentication: { dmarc: { result: 'fail' } } })
    expect(verdict.authentication_results).not.toContain('dkim=pass')
  })

  test('a Subject hidden from one of two readers, and another from the other', async () => {
    // the first line begins with a space: a verifier takes it for the Subject, and whoever shows mail does not
    const raw = (await signed()).toString()
    const subject = 'Subject: Your statement is ready\r\n'
    const forged = ` ${subject}X-A: b\r\nSubject\r\n \r\n : Your sign-in code is 493817\r\n${raw.replace(subject, '')}`
    expect((await verdictOn(forged)).verified_domain).toBeNull()
  })

  test.each([
    ['a no-break space', '\u00a0'],
    ['an ideographic space', '\u3000'],
    ['a vertical tab', '\v'],
  ])('a Subject after %s is not a field, and is not shown', async (_, space) => {
    const raw = (await signed()).toString()
    const forged = Buffer.from(`X-A: b\r\n${space}${code}${space}${multipart}${raw}`)
    expect(await parse(forged)).toMatchObject({
      subject: 'Your statement is ready',
      codes: [],
      body_text: expect.stringContaining('branch'),
    })
  })

  test('fields that may occur often, or are not shown, do not matter', async () => {
    const verdict = await verdictOn(
      `List-Id: <b>\r\nReceived: from a by b; Fri, 20 Nov 2026 10:00:00 +0000\r\nComments: x\r\n${(await signed()).toString()}`,
    )
    expect(verdict.verified_domain).toBe('bank.test')
  })

  test('a signature that names a field more often than it is there holds on to it', async () => {
    const key = { selector: 's', algorithm: 'rsa-sha256' as const, private_key: createPrivateKey(rsa.pem) }
    const signer = new DkimSigner({ domains: { signingKeys: async () => [key] }, clock: new HeldClock(Date.UTC(2020, 0, 1)) })
    const raw = (await signer.sign('bank.test', Buffer.from(honest))) + honest
    expect((await verdictOn(raw)).verified_domain).toBe('bank.test')
    for (const line of [code, 'Reply-To: eve@elsewhere.test\r\n'])
      expect((await verdictOn(line + raw)).authentication.dkim).toMatchObject([
        { result: 'fail', signed_fields: expect.any(Array) },
      ])
  })

  test('one signature that counts is enough', async () => {
    stub.txt('other._domainkey.bank.test', ed25519.record)
    const twice = await sign((await signed(honest, 'from:date')).toString(), 'bank.test', 'other', ed25519, { headerList: all })
    const verdict = await verdictOn(twice)
    expect(verdict.authentication.dkim).toMatchObject([
      { result: 'pass', selector: 'other', aligned: true },
      { result: 'policy', selector: 's', aligned: false },
    ])
    expect(verdict.verified_domain).toBe('bank.test')
  })

  test('what the bank itself sends is measured by its own address, but two Content-Types are never verified', async () => {
    const own = { remote_address: '192.0.2.1', mail_from: 'service@bank.test', helo: 'mail.bank.test' }
    expect((await verdictOn(`Comments: x\r\n${honest}`, own)).verified_domain).toBe('bank.test')
    for (const line of [multipart, 'MIME-Version: 1.0\r\n', 'Content-Transfer-Encoding: base64\r\n']) {
      const verdict = await verdictOn(line + honest, own)
      expect(verdict).toMatchObject({ verified_domain: null, action: 'keep' })
      expect(verdict.authentication.dmarc).toMatchObject({
        result: 'pass',
        aligned_by: ['spf'],
        reason: expect.stringContaining('more than one'),
      })
    }
  })

  test('two that both are signed prove the author, and yet nothing is verified', async () => {
    const verdict = await verdictOn(await signed(`MIME-Version: 1.0\r\n${honest}`, `${all}:mime-version`))
    expect(verdict).toMatchObject({ verified_domain: null, action: 'keep' })
    expect(verdict.authentication).toMatchObject({
      dkim: [{ result: 'pass', aligned: true }],
      dmarc: { result: 'pass', reason: 'not verified: there is more than one MIME-Version' },
    })
  })

  test('a sealed message is not believed either', async () => {
    const sealed = await seal(Buffer.from(honest), 'list.test', 's', rsa, 'list.test; dmarc=pass header.from=bank.test')
    expect(await verdictOn(sealed)).toMatchObject({ action: 'keep', authentication: { arc: { result: 'pass' } } })
    expect(await verdictOn(code + sealed.toString())).toMatchObject({
      action: 'reject',
      authentication: { arc: { result: 'fail' } },
    })
  })
})

describe('a line that is not a field to other readers, below the fields of a signed message', () => {
  const text = 'Your sign-in code is 493817, enter it at https://evil.test/'
  test.each([
    ['a blank before the colon', `Comments : ${text}`],
    ['a tab before the colon', `Comments\t: ${text}`],
    ['a fold before the colon', `Comments\r\n : ${text}`],
    ['no colon', text],
    ['a colon later', 'Your sign-in code: 493817'],
    ['no name', `: ${text}`],
    ['a name of other letters', `Grüße: ${text}`],
    ['that of a mailbox', `From ${text}`],
    ['that of a mailbox, quoted', `>From ${text}`],
  ])('%s: the message is not verified', async (_, line) => {
    const reasons: (string | null)[] = []
    for (const raw of await rearranged(line)) {
      const { verified_domain, action, authentication } = await verdictOn(raw)
      const [{ result, reason, aligned } = { result: 'none', reason: null, aligned: false }] = authentication.dkim
      expect(verified_domain).toBeNull()
      reasons.push(reason)
      // the line may have come to belong to a signed field; else it may be honest, and the message is kept
      if (reason === 'bad signature') expect({ action, result }).toEqual({ action: 'reject', result: 'fail' })
      else {
        expect({ action, result, aligned }).toEqual({ action: 'keep', result: 'policy', aligned: true })
        expect(authentication.dmarc).toMatchObject({
          result: 'pass',
          aligned_by: ['dkim'],
          reason: expect.stringMatching(/^not verified: .* not a field/),
        })
      }
    }
    expect(reasons).toContainEqual(expect.stringContaining('not a field'))
  })

  test('nor can it be of another author that is shown', async () => {
    const [raw = ''] = await rearranged(`Comments : ${text}`)
    const from = envelope(stranger)
    const shown = { name: '', address: 'service@elsewhere.test' }
    expect(confirmAuthor(await verdictOn(raw), shown, from, settings)).toMatchObject({
      verified_domain: null,
      action: 'reject',
      authentication: { dmarc: { result: 'fail' } },
    })
  })

  test('a field in the same places does not matter', async () => {
    for (const raw of await rearranged(`Comments: ${text}`)) expect((await verdictOn(raw)).verified_domain).toBe('bank.test')
    for (const raw of await rearranged('X-Folded:\r\n\tone\r\n two'))
      expect((await verdictOn(raw)).verified_domain).toBe('bank.test')
  })

  test('nor does such a line of the author’s own make another of the message that their server hands in', async () => {
    const own = { remote_address: '192.0.2.1', mail_from: 'service@bank.test', helo: 'mail.bank.test' }
    expect((await verdictOn(`X-Priority : 3\r\n${honest}`, own)).verified_domain).toBe('bank.test')
  })

  test('a message without a body is fields throughout', async () => {
    const bare = honest.slice(0, honest.indexOf('\r\n\r\n') + 2)
    expect((await verdictOn(await signed(`${bare}\r\n`))).verified_domain).toBe('bank.test')
  })

  test('a sealed message is kept, and not verified', async () => {
    const sealed = (
      await seal(Buffer.from(honest), 'list.test', 's', rsa, 'list.test; dmarc=pass header.from=bank.test')
    ).toString()
    expect(await verdictOn(sealed.replace('\r\n\r\n', `\r\nComments : ${text}\r\n\r\n`))).toMatchObject({
      action: 'keep',
      verified_domain: null,
      authentication: { arc: { result: 'pass', reason: expect.stringContaining('not a field') } },
    })
  })
})

describe('what a signature covers', () => {
  test('is said, in lower case', async () => {
    const { authentication } = await verdictOn(await signed(honest, 'From:Subject:Date:Reply-To'))
    expect(authentication.dkim[0]!.signed_fields.toSorted()).toEqual(['date', 'from', 'subject'])
  })

  test('must be the Subject, where there is one', async () => {
    const unsigned = await verdictOn(await signed(honest, 'from:to:date'))
    expect(unsigned).toMatchObject({ verified_domain: null, authentication: { dkim: [{ result: 'policy', aligned: false }] } })
    expect(unsigned.authentication.dkim[0]!.reason).toContain('Subject')
    const none = honest.replace(/Subject: .*\r\n/, '')
    expect((await verdictOn(await signed(none, 'from:to:date'))).verified_domain).toBe('bank.test')
  })

  test('need not be To, Cc, Reply-To or Content-Type', async () => {
    const message = `Cc: c@mx.test\r\nReply-To: desk@bank.test\r\n${honest}`
    const verdict = await verdictOn(await signed(message, 'from:subject:date:message-id'))
    expect(verdict.verified_domain).toBe('bank.test')
    expect(verdict.authentication.dkim[0]!.signed_fields.toSorted()).toEqual(['date', 'from', 'message-id', 'subject'])
  })

  test('must be the Content-Type where the body begins with another boundary', async () => {
    const body = 'Eve wrote:\r\n--x\r\n\r\nYour sign-in code is 493817\r\n--x--\r\n'
    const parts = `--real\r\nContent-Type: text/plain\r\n\r\n${body}--real--\r\n`
    const header = honest.slice(0, honest.indexOf('Content-Type'))
    const type = 'Content-Type: multipart/mixed; boundary="real"\r\n'
    const names = 'from:to:subject:date'
    const unsigned = (await signed(`${header}${type}\r\n${parts}`, names)).toString()
    expect((await verdictOn(unsigned)).verified_domain).toBe('bank.test')
    const others = [
      'boundary=x',
      'boundary=real; boundary=x',
      'boundary*=x',
      'x="; boundary=real"; boundary=x',
      '(; boundary=real); boundary*0=x',
    ]
    for (const other of others) {
      const forged = await verdictOn(unsigned.replace('boundary="real"', other))
      expect(forged.authentication.dkim).toMatchObject([
        { result: 'policy', reason: expect.stringContaining('Content-Type is not signed') },
      ])
      expect(forged.verified_domain).toBeNull()
    }
    expect(
      (await verdictOn(await signed(`${header}${type}\r\nThis is a multi-part message in MIME format.\r\n\r\n${parts}`, names)))
        .verified_domain,
    ).toBe('bank.test')
  })

  test('is told of a bounded number of fields', async () => {
    const names = Array.from({ length: 200 }, (_, index) => `x-${index}`)
    const message = names.map((name) => `${name}: 1\r\n`).join('') + honest
    const { authentication } = await verdictOn(await signed(message, ['from:subject', ...names].join(':')))
    expect(authentication.dkim[0]).toMatchObject({ result: 'pass', aligned: true })
    expect(authentication.dkim[0]!.signed_fields).toHaveLength(50)
  })
})

describe('what the key says of itself', () => {
  test.each([
    ['in testing (t=y)', (record: string) => `${record}; t=y`, 'policy', /testing/],
    ['in testing and strict (t=s:y)', (record: string) => `${record}; t=s:y`, 'policy', /testing/],
    ['not for e-mail', (record: string) => `${record}; s=tlsrpt`, 'neutral', /not for email/],
    ['revoked', (record: string) => record.replace(/p=.*/, 'p='), 'neutral', /invalid public key/],
    ['for another hash', (record: string) => `${record}; h=sha1`, 'neutral', /hash/],
    ['of another type', (record: string) => record.replace('k=rsa', 'k=ed25519'), 'neutral', /key type/],
    ['of another version', (record: string) => record.replace('DKIM1', 'DKIM2'), 'neutral', /version/],
  ] as const)('%s: it is as if the message were not signed', async (_, change, result, reason) => {
    keysAre('s._domainkey.bank.test', change(rsa.record))
    const verdict = await verdictOn(await signed())
    expect(verdict.authentication.dkim).toMatchObject([{ result, aligned: false, reason: expect.stringMatching(reason) }])
    expect(verdict).toMatchObject({ verified_domain: null, authentication: { dmarc: { result: 'fail', aligned_by: [] } } })
    expect(verdict.authentication_results).not.toContain('dkim=pass')
  })

  test('strict (t=s) holds the signature to its very domain', async () => {
    keysAre('s._domainkey.bank.test', `${rsa.record}; t=s`)
    expect((await verdictOn(await signed())).verified_domain).toBe('bank.test')
  })

  test('a key in testing does not vouch for a sealed message', async () => {
    keysAre('s._domainkey.list.test', `${rsa.record}; t=y`)
    const sealed = await seal(Buffer.from(honest), 'list.test', 's', rsa, 'list.test; dmarc=pass header.from=bank.test')
    expect((await verdictOn(sealed)).action).toBe('reject')
  })
})

test('a signature from the future does not count', async () => {
  const raw = await sign(honest, 'bank.test', 's', rsa, { headerList: all, signTime: new Date('2100-01-01') })
  const verdict = await verdictOn(raw)
  expect(verdict.authentication.dkim).toMatchObject([{ result: 'policy', reason: expect.stringContaining('future') }])
  expect(verdict.verified_domain).toBeNull()
})
