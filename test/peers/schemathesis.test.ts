import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { Asking } from '../contract/asking.ts'
import { inhabit } from '../contract/inhabited.ts'
import { folder } from '../support/folder.ts'
import { absent } from '../support/peer.ts'
import { pythonEnvironment } from './python-environment.ts'
import { type Caller, callersOf, settingsFor } from './schemathesis.ts'

const wanted = 'schemathesis==4.32.5'

/** Undefined where it cannot be installed. */
const programs = (() => {
  try {
    return pythonEnvironment('schemathesis', [wanted])
  } catch {
    return absent('schemathesis', `${wanted} cannot be installed from PyPI`)
  }
})()
/** A box that is lived in, and its callers. What schemathesis calls ends with a stopped account. */
async function scene() {
  const world = await inhabit()
  afterAll(() => world.close())
  const asking = new Asking(world)
  const [person, key] = (await callersOf(world, asking)) as [Caller, Caller]
  return { world, asking, person, key }
}

const [whole, short] = [await scene(), await scene()]

/** Random requests for each call. Where their number is given, those at the bounds of its description are made besides: ten thousand, in six minutes. */
const fuzz = process.env['PILLARBOX_TEST_FUZZ']
const usual = Number(fuzz ?? 3)
const isWhole = fuzz !== undefined

/** Longer than all of it takes on a machine with other work. */
const timeout = 1_800_000

/** How many calls the description has, and how many of them were made, with each caller. */
const made: { total: number; tested: number }[] = []

/** Has schemathesis make the calls of a description; answers how many it has, and how many were made. */
async function check(
  query: string,
  { world, asking }: Pick<Awaited<ReturnType<typeof scene>>, 'world' | 'asking'>,
  caller: Caller,
  examples: number,
): Promise<{ total: number; tested: number }> {
  const directory = folder()
  const [config, report] = [join(directory, 'schemathesis.toml'), join(directory, 'report.json')]
  writeFileSync(config, await settingsFor(world, asking, caller, { examples, isWhole }))
  const given = ['--config-file', config, '--no-color', 'run', `${world.box.url}/v1/openapi.json${query}`, ...caller.options]
  const program = spawn(`${programs}/schemathesis`, [...given, '--report-json-path', report], { cwd: directory })
  onTestFinished(() => void program.kill())
  let output = ''
  program.stdout.setEncoding('utf8').on('data', (piece: string) => (output += piece))
  program.stderr.setEncoding('utf8').on('data', (piece: string) => (output += piece))
  const [code] = (await once(program, 'close')) as [number | null]
  expect([code, code === 0 ? '' : output]).toEqual([0, ''])
  const { operations, warnings } = JSON.parse(readFileSync(report, 'utf8'))
  expect(operations).toMatchObject({ tested: operations.selected, errored: 0, skipped: 0 })
  expect([warnings.unsupported_regex, warnings.unresolvable_reference, warnings.missing_deserializer]).toEqual([[], [], []])
  return operations
}

test('whatever is asked with a key, every answer is one that the short description names', { timeout }, async () => {
  if (programs === undefined) return
  const { total, tested } = await check('', short, short.key, Math.ceil(usual / 3))
  expect(tested).toBe(total)
  expect(total).toBeGreaterThan(70)
})

test.each([
  ['a session', whole.person],
  ['a key', whole.key],
])('whatever is asked with %s, every answer is one that the OpenAPI description names', { timeout }, async (_, caller) => {
  if (programs === undefined) return
  const operations = await check('?all=true', whole, caller, usual)
  expect(operations.tested).toBeGreaterThan(0)
  made.push(operations)
})

test('each call of the description was made', () => {
  if (programs === undefined) return
  expect(made.reduce((sum, { tested }) => sum + tested, 0)).toBe(made[0]!.total)
})
