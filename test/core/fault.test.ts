import { expect, test } from 'vitest'
import { Fault, invalid, placeOf } from '../../src/core/fault.ts'

test('however long the words of a caller are, a fault repeats little of them', () => {
  const fault = invalid(`headers.${'k'.repeat(40_000_000)}`, `${'k'.repeat(40_000_000)} is not valid.`)
  expect([fault.param!.length, fault.message.length]).toEqual([512, 4096])
  expect(new Fault('conflict', 'No.', { param: 'x'.repeat(512) }).param).toBe('x'.repeat(512))
  expect(placeOf(['metadata', 'k'.repeat(129), 0, 'k'.repeat(128)])).toBe(`metadata.${'k'.repeat(127)}….0.${'k'.repeat(128)}`)
  expect(invalid(`${'x'.repeat(510)}😀😀`, 'No.').param!.isWellFormed()).toBe(true)
})
