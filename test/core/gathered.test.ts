import { expect, test } from 'vitest'
import { Gathered } from '../../src/core/gathered.ts'

test('pieces of a read are copied: what was read with them is not held', () => {
  const octets = new Gathered()
  const read = Buffer.alloc(65_536, 'abcdefg')
  for (let at = 0; at < 20_000; at += 1) octets.add(read.subarray(at, at + 1))
  expect(octets.size).toBe(20_000)
  expect(octets.held).toBeLessThanOrEqual(40_000)
  expect(octets.whole()).toEqual(read.subarray(0, 20_000))
})

test('pieces of any size come out as they went in', () => {
  const octets = new Gathered()
  const all = Buffer.from(Array.from({ length: 3_000_000 }, (_, place) => (place * 7) % 251))
  for (let at = 0, size = 0; at < all.length; at += size) {
    size = (size * 3 + 1) % 100_003 || 1
    octets.add(all.subarray(at, at + size))
    expect(octets.held).toBeLessThanOrEqual(2 * octets.size + 4096)
  }
  expect(octets.whole().equals(all)).toBe(true)
  expect(new Gathered().whole()).toHaveLength(0)
})
