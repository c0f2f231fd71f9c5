import { statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import type { Appliance } from '../support/appliance.ts'
import { run } from '../support/program.ts'

const program = new URL('../../src/main.ts', import.meta.url).pathname

interface Said {
  status: number | null
  output: string
  errors: string
}

async function pillarbox(box: Appliance, ...words: string[]): Promise<Said> {
  const { code, output, errors } = await run(process.execPath, [program, ...words], { env: box.env, cwd: box.directory })
  return { status: code, output: output.toString(), errors }
}

test('a running box is spoken with through its own socket, which nobody else can open', async () => {
  const box = await appliance()
  expect(statSync(join(box.env['PILLARBOX_DATA_DIR']!, 'control.sock')).mode & 0o777).toBe(0o600)
  const added = await pillarbox(box, 'domain', 'add', 'agents.test', '--json')
  expect(added).toMatchObject({ status: 0, errors: '' })
  expect(JSON.parse(added.output)).toMatchObject({ name: 'agents.test', status: 'pending' })
  const { body } = await box.call('GET', '/v1/domains')
  expect(body.data.map(({ name }) => name)).toContain('agents.test')
  const zone = await pillarbox(box, 'domain', 'zone', 'agents.test')
  expect(zone.output).toContain('MX')
})

test('a box that does not run is opened for the command, and free again afterwards', async () => {
  const box = await appliance()
  await box.app.stop()
  expect(await pillarbox(box, 'domain', 'add', 'agents.test')).toMatchObject({ status: 0 })
  const listed = await pillarbox(box, 'domain', 'list')
  expect(listed.output).toMatch(/^DOMAIN +STATUS\n/)
  expect(listed.output).toMatch(/^agents\.test +pending$/m)
  await box.restart()
  const { body } = await box.call('GET', '/v1/domains')
  expect(body.data.map(({ name }) => name)).toContain('agents.test')
})

test('what is wrong is a sentence, or JSON to those who asked for it, and the exit status is not 0', async () => {
  const box = await appliance()
  expect(await pillarbox(box, 'domain', 'check', 'nobody.test')).toMatchObject({
    status: 1,
    output: '',
    errors: 'The box has no domain nobody.test. Those it has: pillarbox domain list\n',
  })
  const refused = await pillarbox(box, 'domain', 'add', 'not a name', '--json')
  expect(refused.status).toBe(1)
  expect(JSON.parse(refused.errors)).toMatchObject({ error: { param: 'name' } })
  expect(await pillarbox(box, 'domain', 'list', '--colour')).toMatchObject({ status: 2, output: '' })
  expect(await pillarbox(box, 'domain', 'list', '--data', '/nowhere/at/all')).toMatchObject({
    status: 1,
    errors: 'There is no box in /nowhere/at/all.\n',
  })
})
