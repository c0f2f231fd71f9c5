import { statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { appliance, type Appliance } from '../support/appliance.ts'
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

test('aliases and the catch-all of a domain are set beside a box that runs', async () => {
  const box = await appliance()
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  await box.call('POST', '/v1/identities', { name: 'Bob' })
  expect(await pillarbox(box, 'domain', 'alias', 'add', 'Sales@Pillarbox.test', 'Ada')).toEqual({
    status: 0,
    output: 'Mail to sales@pillarbox.test goes to Ada (ada@pillarbox.test).\n',
    errors: '',
  })
  const made = await pillarbox(box, 'domain', 'alias', 'add', 'press@pillarbox.test', 'sales@pillarbox.test', '--json')
  expect(JSON.parse(made.output)).toMatchObject({ address: 'press@pillarbox.test', local_part: 'press' })
  expect((await pillarbox(box, 'domain', 'catch-all', 'pillarbox.test', 'bob@pillarbox.test')).output).toBe(
    'Mail for unknown addresses of pillarbox.test goes to Bob (bob@pillarbox.test).\n',
  )
  expect(
    (await pillarbox(box, 'domain', 'alias', 'list', 'pillarbox.test')).output.split('\n').map((line) => line.split(/ {2,}/)),
  ).toEqual([
    ['ADDRESS', 'GOES TO'],
    ['*@pillarbox.test', 'bob@pillarbox.test'],
    ['press@pillarbox.test', 'ada@pillarbox.test'],
    ['sales@pillarbox.test', 'ada@pillarbox.test'],
    [''],
  ])
  expect(await pillarbox(box, 'domain', 'alias', 'remove', 'SALES@pillarbox.test')).toMatchObject({ status: 0 })
  expect(await pillarbox(box, 'domain', 'alias', 'remove', 'sales@pillarbox.test')).toMatchObject({
    status: 1,
    errors: 'pillarbox.test has no alias sales@pillarbox.test. List its aliases: pillarbox domain alias list pillarbox.test\n',
  })
  expect((await pillarbox(box, 'domain', 'catch-all', 'pillarbox.test', '--none')).output).toBe(
    'Mail for unknown addresses of pillarbox.test is rejected.\n',
  )
  const listed = await pillarbox(box, 'domain', 'alias', 'list', 'pillarbox.test', '--json')
  expect(JSON.parse(listed.output)).toMatchObject([{ address: 'press@pillarbox.test' }])
  for (const words of [['pillarbox.test'], ['pillarbox.test', 'Ada', '--none']]) {
    expect(await pillarbox(box, 'domain', 'catch-all', ...words)).toMatchObject({
      status: 1,
      errors: 'Specify an identity, or --none.\n',
    })
  }
  expect(await pillarbox(box, 'domain', 'alias', 'add', 'sales', 'Ada')).toMatchObject({
    status: 1,
    errors: 'sales is not an address such as sales@example.com.\n',
  })
})

test('what is wrong is a sentence, or JSON to those who asked for it, and the exit status is not 0', async () => {
  const box = await appliance()
  expect(await pillarbox(box, 'domain', 'check', 'nobody.test')).toMatchObject({
    status: 1,
    output: '',
    errors: 'The box has no domain nobody.test. List the domains: pillarbox domain list\n',
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

test('aliases and the catch-all of a domain are set in a box that does not run', async () => {
  const box = await appliance()
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  await box.app.stop()
  expect(await pillarbox(box, 'domain', 'alias', 'add', 'sales@pillarbox.test', 'Ada')).toMatchObject({ status: 0, errors: '' })
  expect(await pillarbox(box, 'domain', 'catch-all', 'pillarbox.test', 'Ada')).toMatchObject({ status: 0, errors: '' })
  const listed = await pillarbox(box, 'domain', 'alias', 'list', 'pillarbox.test')
  expect(listed.output).toMatch(/^\*@pillarbox\.test +ada@pillarbox\.test\nsales@pillarbox\.test +ada@pillarbox\.test$/m)
})
