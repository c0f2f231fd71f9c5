import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import type { Appliance } from '../support/appliance.ts'
import { boxProcess } from '../support/process.ts'

test('the command lets the published next key of a stopped box sign, or replaces all', async () => {
  // the box was opened an hour ago
  const box = await appliance({}, { now: () => Date.now() - 3_600_000 })
  const [active, next] = await published(box)
  const rotate = async (...more: string[]): Promise<{ code: unknown; output: string; errors: string }> => {
    const program = boxProcess(box.env, ['key', 'rotate-signing', ...more], box.directory)
    const code = await program.ended
    return { code, output: program.output(), errors: program.errors() }
  }
  expect(await rotate()).toMatchObject({
    code: 78,
    errors: expect.stringMatching(/in use by another Pillarbox process/) as unknown,
  })
  await box.app.stop()
  const done = await rotate()
  expect([done.code, done.errors]).toEqual([0, ''])
  expect(done.output).toContain(`The key ${next} signs from now on.`)
  const again = await rotate()
  expect([again.code, again.errors]).toEqual([78, expect.stringMatching(/it can sign in 10 min.*--now/s)])

  await box.restart()
  expect(await published(box)).toEqual([next, expect.any(String), active])
  const before = await published(box)
  await box.app.stop()
  expect(await rotate('--now')).toMatchObject({ code: 0, errors: '' })
  await box.restart()
  const after = await published(box)
  expect(after).toHaveLength(2)
  expect(after.filter((kid) => before.includes(kid))).toEqual([])
}, 180_000)

async function published(box: Appliance): Promise<string[]> {
  const { body } = await box.call<{ keys: { kid: string }[] }>('GET', '/.well-known/jwks.json', undefined, { key: null })
  return body.keys.map(({ kid }) => kid)
}
