import { expect, test } from 'vitest'
import { FairQueue } from '../../src/core/work/fair-queue.ts'

function taken(queue: FairQueue<string>): string[] {
  const items: string[] = []
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) items.push(item)
  return items
}

const notA = (account: string): boolean => account !== 'a'

test('accounts take turns, and what waits for one keeps its order', () => {
  const queue = new FairQueue<string>()
  for (const item of ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2']) queue.push(item[0]!, item)
  expect(queue.size).toBe(7)
  expect(taken(queue)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'])
  expect(queue.size).toBe(0)
})

test('who comes while another floods is next after one of the flood', () => {
  const queue = new FairQueue<string>()
  for (let index = 0; index < 1000; index += 1) queue.push('flood', `flood ${index}`)
  expect(queue.shift()).toBe('flood 0')
  queue.push('other', 'other')
  expect([queue.shift(), queue.shift(), queue.shift()]).toEqual(['flood 1', 'other', 'flood 2'])
})

test('an account that may not yet is passed over and keeps its turn', () => {
  const queue = new FairQueue<string>()
  for (const item of ['a1', 'b1', 'b2']) queue.push(item[0]!, item)
  expect(queue.peek()).toBe('a1')
  expect(queue.peek(notA)).toBe('b1')
  expect(queue.shift(notA)).toBe('b1')
  expect(taken(queue)).toEqual(['a1', 'b2'])
  expect(queue.shift(notA)).toBeUndefined()
})

test('an item is taken out of the middle once, and nothing is left of an account with none', () => {
  const queue = new FairQueue<string>()
  for (const item of ['a1', 'a2', 'b1']) queue.push(item[0]!, item)
  expect(queue.remove('a', 'a1')).toBe(true)
  expect(queue.remove('a', 'a1')).toBe(false)
  expect(queue.remove('b', 'b1')).toBe(true)
  expect(queue.size).toBe(1)
  expect(queue.clear()).toEqual(['a2'])
  expect([queue.size, queue.shift()]).toEqual([0, undefined])
})
