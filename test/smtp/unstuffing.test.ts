import { expect, test } from 'vitest'
import { Unstuffing } from '../../src/smtp/unstuffing.ts'

function taken(...pieces: Buffer[]): { content: string; rest: string | null; pieces: number } {
  const unstuffing = new Unstuffing()
  const content: Buffer[] = []
  for (const [index, piece] of pieces.entries()) {
    const part = unstuffing.take(piece)
    content.push(part.content)
    if (!part.rest) continue
    const rest = Buffer.concat([part.rest, ...pieces.slice(index + 1)])
    return { content: Buffer.concat(content).toString(), rest: rest.toString(), pieces: content.length }
  }
  return { content: Buffer.concat(content).toString(), rest: null, pieces: content.length }
}

test.each([
  ['.\r\nQUIT', '', 'QUIT'],
  ['a\r\n.\r\n', 'a\r\n', ''],
  ['..\r\n.\r\n', '.\r\n', ''],
  ['.foo\r\n..bar\r\n...\r\n.\r\nNOOP', 'foo\r\n.bar\r\n..\r\n', 'NOOP'],
  ['a.\r\n.\r\n.\r\n', 'a.\r\n', '.\r\n'],
  ['a\r\n.\nb\r\n.\r\n', 'a\r\n\nb\r\n', ''],
  ['a\r\n.\rb\r\n.\r\n', 'a\r\n\rb\r\n', ''],
  ['a\r\n.\r\r\n.\r\n', 'a\r\n\r\r\n', ''],
  ['a\r\n.\r.\r\n.\r\n', 'a\r\n\r.\r\n', ''],
  ['a\n.\nb\n.\r\nc\r.\r\n.\r\n', 'a\n.\nb\n.\r\nc\r.\r\n', ''],
  ['.a\n.\r\nQUIT\r\n.\r\n', 'a\n.\r\nQUIT\r\n', ''],
  ['.a\r.\r\nQUIT\r\n.\r\n', 'a\r.\r\nQUIT\r\n', ''],
  ['a\r\n.\0\r\n.\r\n', 'a\r\n\0\r\n', ''],
  ['a\r\r\n.\r\n', 'a\r\r\n', ''],
  ['.\r\r\n.\r\n', '\r\r\n', ''],
  ['\r\n..\r\n..\r', '\r\n.\r\n.\r', null],
])('%j is %j, cut anywhere', (sent, content, rest) => {
  const octets = Buffer.from(sent)
  expect(taken(octets)).toMatchObject({ content, rest })
  expect(taken(...Array.from(octets, (octet) => Buffer.from([octet])))).toMatchObject({ content, rest })
  for (let first = 0; first <= octets.length; first++) {
    for (let second = first; second <= octets.length; second++) {
      const pieces = [octets.subarray(0, first), octets.subarray(first, second), octets.subarray(second)]
      expect(taken(...pieces)).toMatchObject({ content, rest })
    }
  }
  expect(octets.toString()).toBe(sent)
})

test('a packet of nothing but dots is one piece', () => {
  expect(taken(Buffer.from('..\r\n'.repeat(20_000)))).toEqual({ content: '.\r\n'.repeat(20_000), rest: null, pieces: 1 })
})
