import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { localHeader, readProxyHeader } from '../../src/net/proxy-header.ts'

const line = (text: string): ReturnType<typeof readProxyHeader> => readProxyHeader(Buffer.from(text, 'latin1'))
const binary = (hex: string): ReturnType<typeof readProxyHeader> => readProxyHeader(Buffer.from(hex.replaceAll(' ', ''), 'hex'))

describe('version 1, by the examples of the specification', () => {
  test.each([
    ['PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\nGET / HTTP/1.1\r\n', 47, { address: '192.168.0.1', port: 56_324 }],
    ['PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n', 56, { address: '255.255.255.255', port: 65_535 }],
    [
      'PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n',
      104,
      { address: 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', port: 65_535 },
    ],
    ['PROXY TCP6 2001:DB8:0::1 ::1 1 0\r\n', 34, { address: '2001:db8::1', port: 1 }],
    ['PROXY UNKNOWN\r\n', 15, null],
    ['PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n', 107, null],
  ])('%j', (text, length, client) => expect(line(text)).toEqual({ length, client }))

  test.each([
    'PROXY\r\n',
    'PROXY \r\n',
    'PROXY TCP4\r\n',
    'PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n',
    'PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n',
    'PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n',
    'PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n',
    'PROXY TCP4 192.0.2.01 192.0.2.2 1 2\r\n',
    'PROXY TCP4 192.0.2 192.0.2.2 1 2\r\n',
    'PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n',
    'PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n',
    'PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n',
    'PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n',
    'PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n',
    'PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n',
    'PROXY TCP6 fe80::1%eth0 2001:db8::2 1 2\r\n',
    'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n\r\n',
    'proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n',
    `PROXY UNKNOWN ${'x'.repeat(92)}\r\n`,
    'EHLO client.test\r\n',
    '\x16\x03\x01',
  ])('refuses %j', (text) => expect(line(text)).toEqual(expect.any(String)))
})

describe('version 2', () => {
  const signature = '0d0a0d0a 000d0a51 5549540a'

  test.each([
    ['TCP over IPv4', '21 11 000c c0000207 c6336401 dc04 0019', 28, { address: '192.0.2.7', port: 56_324 }],
    ['and what follows it', '21 11 000c c0000207 c6336401 dc04 0019 45484c4f', 28, { address: '192.0.2.7', port: 56_324 }],
    // HAProxy 2.6 with `proxy-v2-options unique-id`: a TLV of seven bytes
    ['TLVs', '21 11 0013 c0000207 c6336401 dc04 0019 05 0004 61626364', 35, { address: '192.0.2.7', port: 56_324 }],
    [
      'TCP over IPv6',
      '21 21 0024 20010db8000000000000000000000007 20010db8000000000000000000000001 0001 01bb',
      52,
      { address: '2001:db8::7', port: 1 },
    ],
    [
      'IPv4 that was mapped',
      '21 21 0024 00000000000000000000ffffc0000207 00000000000000000000ffffc6336401 0001 01bb',
      52,
      { address: '192.0.2.7', port: 1 },
    ],
    ['a health check', '20 00 0000', 16, null],
    ['a health check with addresses', '20 11 000c c0000207 c6336401 dc04 0019', 28, null],
    ['an unknown client', '21 00 0000', 16, null],
    ['a Unix socket', `21 31 00d8 ${'00'.repeat(216)}`, 232, null],
  ])('%s', (_, hex, length, client) => expect(binary(`${signature} ${hex}`)).toEqual({ length, client }))

  test.each([
    ['version 1', '11 11 000c c0000207 c6336401 dc04 0019'],
    ['an unknown command', '22 11 000c c0000207 c6336401 dc04 0019'],
    ['an unknown family', '21 41 000c c0000207 c6336401 dc04 0019'],
    ['an unknown transport', '21 13 000c c0000207 c6336401 dc04 0019'],
    ['UDP', '21 12 000c c0000207 c6336401 dc04 0019'],
    ['addresses that are cut off', '21 11 000b c0000207 c6336401 dc04 00'],
    ['IPv6 in the length of IPv4', '21 21 000c c0000207 c6336401 dc04 0019'],
    ['64 KiB', '21 11 ffff c0000207 c6336401 dc04 0019'],
  ])('refuses %s', (_, hex) => expect(binary(`${signature} ${hex}`)).toEqual(expect.any(String)))

  test('what we send of ourselves is a health check', () =>
    expect(readProxyHeader(localHeader)).toEqual({ length: 16, client: null }))
})

test('a header that arrives in pieces is waited for, and no more than its bytes are taken', () => {
  const headers = [
    'PROXY TCP4 192.0.2.7 198.51.100.1 56324 25\r\n',
    'PROXY UNKNOWN\r\n',
    '\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\xc6\x33\x64\x01\xdc\x04\0\x19',
    localHeader.toString('latin1'),
  ]
  for (const header of headers) {
    for (let length = 0; length < header.length; length += 1) expect(line(header.slice(0, length))).toBeUndefined()
    expect(line(`${header}PROXY \r\n`)).toMatchObject({ length: header.length })
  }
})

test('whatever arrives is read within bounds, and never more than has arrived', () => {
  const beginnings = fc.constantFrom(
    '',
    'PROXY ',
    'PROXY TCP4 192.0.2.1 ',
    '\r\n\r\n\0\r\nQUIT\n',
    '\r\n\r\n\0\r\nQUIT\n\x21\x11',
  )
  const bytes = fc.tuple(beginnings, fc.uint8Array({ maxLength: 300 }))
  const isBounded = fc.property(bytes, ([beginning, rest]) => {
    const received = Buffer.concat([Buffer.from(beginning, 'latin1'), rest])
    const header = readProxyHeader(received)
    return header === undefined ? received.length < 4096 : typeof header === 'string' || header.length <= received.length
  })
  expect(fc.check(isBounded, { numRuns: 5000 }).counterexample).toBeNull()
})
