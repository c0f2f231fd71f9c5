import { expect, test } from 'vitest'
import { FailedLogins } from '../../src/smtp/failed-logins.ts'
import { HeldClock } from '../support/held-clock.ts'

const most = 3
const year = 365 * 86_400_000

/** How many different logins are tried, each from its place, until none is any more. */
function tried(place: (n: number) => string): number {
  const failed = new FailedLogins(new HeldClock())
  for (let n = 0; n < 500; n += 1) {
    if (failed.tooMany(place(n), most)) return n
    failed.note(place(n), 'ada@pillarbox.test', `wrong ${n}`)
  }
  return Infinity
}

test('logins are not guessed from a /56 or a /48 without end', () => {
  expect(tried(() => '2001:db8::1')).toBe(3)
  expect(tried((n) => `2001:db8:0:0:${n.toString(16)}::1`)).toBe(3)
  expect(tried((n) => `2001:db8:0:${(n % 256).toString(16)}::1`)).toBe(12)
  expect(tried((n) => `2001:db8:0:${(n * 128).toString(16)}::1`)).toBe(48)
  expect(tried(() => '192.0.2.1')).toBe(3)
  expect(tried((n) => `192.0.${n >> 8}.${n & 255}`)).toBe(Infinity)
})

test('logins that failed while the clock was ahead block nobody once it is right', () => {
  const clock = new HeldClock()
  const failed = new FailedLogins(clock)
  const note = (password: string): void => failed.note('192.0.2.1', 'ada@pillarbox.test', password)
  clock.advance(year)
  for (let n = 0; n < most; n += 1) note(`wrong ${n}`)
  expect(failed.tooMany('192.0.2.1', most)).toBe(true)
  clock.advance(-year)
  expect(failed.tooMany('192.0.2.1', most)).toBe(false)
  for (let n = 0; n < most; n += 1) {
    expect(failed.tooMany('192.0.2.1', most)).toBe(false)
    note(`wrong ${n}`)
  }
  expect(failed.tooMany('192.0.2.1', most)).toBe(true)
})
