import { expect, test } from 'vitest'
import { retryAfter, retryDelay } from '../../src/queue/backoff.ts'

const courier = { schedule: [0, 5000, 300_000], jitter: 0.1 }
const day = 24 * 60 * 60 * 1000

test('each wait is the one of the list, give or take the jitter, until there is none', () => {
  expect([0, 1, 2, 3].map((tries) => retryDelay(tries, courier, 0.5))).toEqual([0, 5000, 300_000, undefined])
  expect([0, 0.5, 1].map((chance) => retryDelay(1, courier, chance))).toEqual([4500, 5000, 5500])
})

test('who asks for more time gets it, up to a day; who asks for less does not', () => {
  expect(retryDelay(1, courier, 0.5, { minDelay: 60_000 })).toBe(60_000)
  expect(retryDelay(2, courier, 0.5, { minDelay: 1000 })).toBe(300_000)
  expect(retryDelay(1, courier, 0.5, { minDelay: 10 * day })).toBe(day)
  expect(retryDelay(3, courier, 0.5, { minDelay: 60_000 })).toBeUndefined()
  expect(retryDelay(2, courier, 0.5, { maxDelay: 60_000 })).toBe(60_000)
  // it takes no place in the schedule, so that the last is made again, too
  expect(retryDelay(3, courier, 0.5, { maxDelay: 60_000 })).toBe(60_000)
})

test('Retry-After is read as seconds or as a date', () => {
  const now = Date.UTC(2026, 10, 20, 10, 5)
  expect(retryAfter('120', now)).toBe(120_000)
  expect(retryAfter(' 0 ', now)).toBe(0)
  expect(retryAfter('Fri, 20 Nov 2026 10:06:00 GMT', now)).toBe(60_000)
  expect(retryAfter('Fri, 20 Nov 2026 10:00:00 GMT', now)).toBe(0)
  for (const text of [undefined, '', 'soon', '-5', '1.5', 'Foo, 99 Bar']) expect(retryAfter(text, now)).toBeUndefined()
})
