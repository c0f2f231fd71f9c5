import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'

test('however often a stranger asks whether the box is ready, it writes to disk once in two seconds', async () => {
  const clock = { time: Date.parse('2026-11-20T10:00:00Z'), now: () => clock.time }
  const box = await appliance({}, clock)
  const ask = async (): Promise<number> => (await box.call('GET', '/readyz', undefined, { key: null })).status
  expect(new Set(await Promise.all(Array.from({ length: 30 }, ask)))).toEqual(new Set([200]))
  for (let turn = 0; turn < 10; turn++) expect(await ask()).toBe(200)
  expect(probes(box.directory)).toBe(1)
  clock.time += 2000
  expect(await ask()).toBe(200)
  expect(probes(box.directory)).toBe(2)
})

function probes(directory: string): number {
  const database = openStore(join(directory, 'data', 'pillarbox.db'), { readOnly: true })
  const { probed } = database.prepare('SELECT probed FROM box').get() as { probed: number }
  database.close()
  return probed
}
