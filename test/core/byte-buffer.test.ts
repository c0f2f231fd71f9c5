import { expect, test } from 'vitest'
import { ByteBuffer } from '../../src/core/byte-buffer.ts'

test('pieces of a read are copied: what was read with them is not held', () => {
  const octets = new ByteBuffer()
  const read = Buffer.alloc(65_536, 'abcdefg')
  for (let at = 0; at < 20_000; at += 1) octets.add(read.subarray(at, at + 1))
  expect(octets.size).toBe(20_000)
  expect(octets.held).toBeLessThanOrEqual(40_000)
  expect(octets.take()).toEqual(read.subarray(0, 20_000))
})

test('pieces of any size come out as they went in', () => {
  const octets = new ByteBuffer()
  const all = Buffer.from(Array.from({ length: 3_000_000 }, (_, place) => (place * 7) % 251))
  for (let at = 0, size = 0; at < all.length; at += size) {
    size = (size * 3 + 1) % 100_003 || 1
    octets.add(all.subarray(at, at + size))
    expect(octets.held).toBeLessThanOrEqual(2 * octets.size + 4096)
  }
  expect(octets.take()!.equals(all)).toBe(true)
  expect(new ByteBuffer().take()).toHaveLength(0)
})

test('what was taken is in memory of its own, and the next begin anew', () => {
  const octets = new ByteBuffer()
  octets.add(Buffer.from('first'))
  const first = octets.take()!
  octets.add(Buffer.from('more octets'), 5, 11)
  expect(octets.take()!.toString()).toBe('octets')
  expect(first.toString()).toBe('first')
  expect(first.buffer.byteLength).toBe(5)
})

test('of too many none are kept, and so many as may be are', () => {
  const octets = new ByteBuffer(100_000)
  octets.add(Buffer.alloc(100_000, 'a'))
  expect(octets.over).toBe(false)
  octets.add(Buffer.from('a'))
  expect([octets.over, octets.size, octets.held]).toEqual([true, 100_001, 0])
  expect(octets.beginning(10)).toHaveLength(0)
  expect(octets.take()).toBeNull()
  octets.add(Buffer.alloc(100_000, 'b'))
  expect(octets.take()).toEqual(Buffer.alloc(100_000, 'b'))
})

test('the first of them are seen while more may come', () => {
  const octets = new ByteBuffer()
  for (let number = 0; number < 10_000; number += 1) octets.add(Buffer.from('0123456789'))
  expect(octets.beginning(5000).toString()).toBe('0123456789'.repeat(500))
  expect(octets.beginning(200_000).toString()).toBe('0123456789'.repeat(10_000))
  octets.drop()
  expect(octets.beginning(10)).toHaveLength(0)
})
