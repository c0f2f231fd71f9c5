import { expect, test } from 'vitest'
import { isLong, readLongJson, writeLongJson } from '../../src/core/long-json.ts'

const texts = [
  ['words', 'Words, words, words.\n'.repeat(40_000)],
  ['quotation marks and backslashes', '"\\\\"'.repeat(200_000)],
  ['control characters', '\u0001\u001f\t\r'.repeat(200_000)],
  ['characters of two bytes', 'é"'.repeat(300_000)],
  ['characters of three bytes', 'x漢字'.repeat(200_000)],
  ['characters of four bytes', 'x😀'.repeat(300_000)],
  ['halves of characters', 'xy\ud800'.repeat(200_000)],
  ['what looks like an escape', String.raw`\u0041\\"`.repeat(100_000)],
] as const

test.each(texts)('a long text of %s is written and read as JSON.stringify and JSON.parse would', async (_, text) => {
  const value = { text, again: text, list: [null, `${text}.`, { short: 'a "b" c', '': '' }], number: 1.5, none: undefined }
  const written = await writeLongJson(value)
  expect(written.equals(Buffer.from(JSON.stringify(value)))).toBe(true)
  expect(await readLongJson(written)).toEqual(JSON.parse(JSON.stringify(value)))
  expect(isLong(value)).toBe(true)
})

test('only a value with more than 512 KiB of text in UTF-8 is long, also as the only one of a page', () => {
  const halves = { one: 'x'.repeat(256 * 1024), other: { text: 'x'.repeat(256 * 1024), count: 1, none: null } }
  expect(isLong({ data: [halves] })).toBe(false)
  expect(isLong({ data: [{ ...halves, more: 'x' }] })).toBe(true)
  expect(isLong({ text: '漢'.repeat(200_000) })).toBe(true)
})

test('other work runs while a long text is written and read', async () => {
  let turns = 0
  const timer = setInterval(() => (turns += 1), 0)
  const value = { text: '"'.repeat(20 * 1024 * 1024) }
  const written = await writeLongJson(value)
  const whileWritten = turns
  await readLongJson(written)
  clearInterval(timer)
  expect(whileWritten).toBeGreaterThan(0)
  expect(turns).toBeGreaterThan(whileWritten)
})
