import { describe, expect, test } from 'vitest'
import type { Envelope } from '../../src/mail/model.ts'
import { headerLength, receivedHops, traceHeader, withTrace } from '../../src/smtp/trace.ts'

const envelope: Envelope = {
  remote_address: '192.0.2.7',
  helo: 'client.test',
  mail_from: 'sender@client.test',
  recipients: ['user@box.test', 'other@box.test'],
  smtputf8: false,
  tls: { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384' },
  session: 'abc.1',
}
const trace = {
  envelope,
  hostname: 'box.test',
  id: 'queue-1',
  received_at: Date.UTC(2026, 10, 20, 19, 6, 0),
  recipient: 'user@box.test',
  authentication_results: 'box.test;\r\n\tspf=pass smtp.mailfrom=client.test;\r\n\tdkim=none',
}

describe('the trace block', () => {
  test('says how a message came, for whom, and what the checks said', () => {
    expect(traceHeader(trace)).toBe(
      [
        'Return-Path: <sender@client.test>',
        'Authentication-Results: box.test; spf=pass smtp.mailfrom=client.test;',
        '\tdkim=none',
        'Received: from client.test ([192.0.2.7])',
        '\t(using TLSv1.3 with cipher TLS_AES_256_GCM_SHA384)',
        '\tby box.test with ESMTPS id queue-1',
        '\tfor <user@box.test>;',
        '\tFri, 20 Nov 2026 19:06:00 +0000',
        '',
      ].join('\r\n'),
    )
  })

  test.each([
    [{}, 'with ESMTPS id'],
    [{ tls: null }, 'with ESMTP id'],
    [{ tls: null, esmtp: false }, 'with SMTP id'],
    [{ smtputf8: true }, 'with UTF8SMTPS id'],
    [{ smtputf8: true, tls: null }, 'with UTF8SMTP id'],
    [{ mail_from: '' }, 'Return-Path: <>\r\n'],
    [{ remote_address: '2001:db8::1' }, '([IPv6:2001:db8::1])'],
    [{ helo: '[192.0.2.7]' }, 'from [192.0.2.7] ('],
    [{ helo: '192.0.2.7' }, 'from 192.0.2.7 ('],
    [{ helo: 'bücher.test' }, 'from xn--bcher-kva.test ('],
    [{ helo: 'a b(c);\r\nX: y' }, 'from unknown ('],
    [{ helo: '' }, 'from unknown ('],
    [{ helo: `${'x'.repeat(5000)}.test` }, 'from unknown ('],
  ])('for %j it has %j', (changes, text) => {
    const header = traceHeader({ ...trace, envelope: { ...envelope, ...changes } })
    expect(header).toContain(text)
    expect(header).toMatch(/^(?:[A-Z][\w-]+: [^\r\n]*\r\n(?:[ \t][^\r\n]+\r\n)*){3}$/)
  })

  test('cannot be broken out of, and has no line over 998 octets', () => {
    const evil = 'x>\r\n\r\nInjected: y\n<\0\u2028'
    const header = traceHeader({
      ...trace,
      hostname: 'box.test',
      recipient: `${evil}${'r'.repeat(3000)}@box.test`,
      id: evil,
      authentication_results: `box.test; reason="${'z'.repeat(3000)}"\r\nInjected: y\r\n\r\nbody`,
      envelope: { ...envelope, mail_from: evil, helo: evil, remote_address: evil, tls: { version: evil, cipher: evil } },
    })
    expect(header).not.toMatch(/^Injected/m)
    expect(header).not.toMatch(/\r\n\r\n|\r(?!\n)|[^\r]\n/)
    expect(header.match(/^[^\s]/gm)?.join('')).toBe('RAR')
    for (const line of header.split('\r\n')) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(998)
  })

  test('is folded under 78 characters where words allow', () => {
    const long = `box.test; ${Array.from({ length: 30 }, (_, index) => `dkim=pass header.d=domain${index}.test;`).join(' ')}`
    const header = traceHeader({ ...trace, authentication_results: long })
    for (const line of header.split('\r\n')) expect(line.length).toBeLessThanOrEqual(78)
    expect(header.replaceAll(/\r\n\t/g, ' ')).toContain(long)
  })
})

describe('a message with its trace', () => {
  const block = traceHeader(trace)

  test.each([
    'Authentication-Results: box.test; spf=pass',
    'authentication-results:box.test;spf=pass',
    'AUTHENTICATION-RESULTS : BOX.TEST 1; spf=pass',
    'Authentication-Results:\r\n box.test;\r\n\tspf=pass',
    'Authentication-Results: (hello (nested \\) comment)) box.test; spf=pass',
    'Authentication-Results: (a)\r\n (b)\r\n "box.test"; spf=pass',
    'Authentication-Results: "b\\ox.test"; spf=pass',
    'Authentication-Results: box.test.; spf=pass',
    'Authentication-Results: box.test(comment); spf=pass',
    'Authentication-Results: (never ends box.test; spf=pass',
    'Authentication-Results: box.test',
    'Authentication-Results\r\n : box.test; spf=pass',
    'Return-Path: <evil@client.test>',
    'return-path:\r\n <evil@client.test>',
  ])('loses the forged %j and nothing else', (forged) => {
    const rest = 'Subject: x\r\n\r\nAuthentication-Results: box.test; body\r\nReturn-Path: <x>\r\n'
    const first = Buffer.from(`From: a@b.test\r\n folded\r\n${forged}\r\n${rest}`)
    expect(withTrace(first, block, 'Box.Test').toString()).toBe(`${block}From: a@b.test\r\n folded\r\n${rest}`)
    const twice = Buffer.from(`${forged}\r\n${forged}\r\n${rest}`)
    expect(withTrace(twice, block, 'box.test').toString()).toBe(`${block}${rest}`)
  })

  test.each([
    'Authentication-Results: other.test; spf=pass smtp.helo=box.test',
    'Authentication-Results: xbox.test; spf=pass',
    'Authentication-Results: box.test.evil; spf=pass',
    'X-Authentication-Results: box.test; spf=pass',
    'ARC-Authentication-Results: i=1; box.test; spf=pass',
    'X-Return-Path: <a@b.test>',
  ])('keeps %j', (field) => {
    const raw = `${field}\r\nSubject: x\r\n\r\nbody\r\n`
    expect(withTrace(Buffer.from(raw), block, 'box.test').toString()).toBe(block + raw)
  })

  test.each(['', '\r\nbody\r\n', 'no header at all\r\n', 'Subject: only\r\n', '\r\nReturn-Path: <x>\r\n'])(
    'keeps %j whole',
    (raw) => {
      expect(withTrace(Buffer.from(raw), block, 'box.test').toString()).toBe(block + raw)
    },
  )

  test('keeps octets that are no text', () => {
    const octets = Buffer.from(
      Array.from({ length: 1024 }, (_, index) => index % 256).filter((octet) => ![0, 10, 13].includes(octet)),
    )
    const kept = Buffer.concat([Buffer.from('X: '), octets, Buffer.from('\r\n\r\n'), octets])
    const raw = Buffer.concat([Buffer.from('Return-Path: <x>\r\n'), kept])
    expect(withTrace(raw, block, 'box.test').equals(Buffer.concat([Buffer.from(block), kept]))).toBe(true)
  })

  test('reads 256 KiB of a longer header, and leaves what is beyond as it is', () => {
    const forged = 'Authentication-Results: box.test; spf=pass\r\n'
    const rest = `${'a:\r\n'.repeat(6 * 1024 * 1024)}${forged}\r\nbody\r\n`
    const found = withTrace(Buffer.from(`${forged}${rest}`), block, 'box.test')
    expect(found.equals(Buffer.from(`${block}${rest}`))).toBe(true)
    const across = Buffer.from(`X: y\r\n${forged.trimEnd()}${'\r\n a'.repeat(100_000)}\r\n\r\nbody\r\n`)
    expect(withTrace(across, block, 'box.test').equals(Buffer.concat([Buffer.from(block), across]))).toBe(true)
  })

  test('loses the forged in a header that is full of them', () => {
    const raw = Buffer.from(`${'Return-Path: <x>\r\n y\r\nA: b\r\n'.repeat(9000)}\r\nbody\r\n`)
    expect(withTrace(raw, block, 'box.test').toString()).toBe(`${block}${'A: b\r\n'.repeat(9000)}\r\nbody\r\n`)
  })

  test('takes a lone CR for no line end', () => {
    const raw = 'Subject: x\rReturn-Path: <x>\r\n\r\nbody\r\n'
    expect(withTrace(Buffer.from(raw), block, 'box.test').toString()).toBe(block + raw)
  })
})

describe('hops', () => {
  test.each([
    ['Received: a\r\nreceived: b\r\nRECEIVED : c\r\n\r\nReceived: body\r\n', 3],
    ['X-Received: a\r\n Received: folded\r\nSubject: Received: x\r\n\r\n', 0],
    ['\r\nReceived: a\r\n', 0],
    ['', 0],
  ])('of %j are %i', (raw, hops) => {
    expect(receivedHops(Buffer.from(raw))).toBe(hops)
  })

  test('and header length are found in a header of 256 KiB, and no more of one is read', () => {
    const [field, limit] = ['Received: a\r\n', 256 * 1024]
    const most = Math.floor(limit / field.length)
    const whole = `${field.repeat(most)}${'X: '.padEnd(limit - most * field.length - 2, 'x')}\r\n`
    const fits = Buffer.from(`${whole}\r\nReceived: body\r\n`)
    expect([receivedHops(fits), headerLength(fits)]).toEqual([most, limit])
    for (const rest of ['', '\r\nbody\r\n', field.repeat(100_000)]) {
      const large = Buffer.from(`${whole}x${rest}`)
      expect([receivedHops(large), headerLength(large)]).toEqual([most, Infinity])
    }
    expect(headerLength(Buffer.from(whole))).toBe(limit)
  })
})
