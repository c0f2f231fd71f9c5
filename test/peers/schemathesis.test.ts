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
const world = await inhabit()
const asking = new Asking(world)
const callers = await callersOf(world, asking)
afterAll(() => world.close())

/** Random requests for each call. Where their number is given, those at the bounds of its description are made besides: ten thousand, in six minutes. */
const fuzz = process.env['PILLARBOX_TEST_FUZZ']
const usual = Number(fuzz ?? 3)
const isWhole = fuzz !== undefined

/** Longer than all of it takes on a machine with other work. */
const timeout = 1_800_000

/** How many calls the description has, and how many of them were made, with each caller. */
const made: { total: number; tested: number }[] = []

/** Has schemathesis make the calls of a description; answers how many it has, and how many were made. */
async function check(query: string, caller: Caller, examples: number): Promise<{ total: number; tested: number }> {
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

test.each([
  ['a session', callers[0]!],
  ['a key', callers[1]!],
])('whatever is asked with %s, every answer is one that the OpenAPI description names', { timeout }, async (_, caller) => {
  if (programs === undefined) return
  const operations = await check('?all=true', caller, usual)
  expect(operations.tested).toBeGreaterThan(0)
  made.push(operations)
})

test('by the short description too', { timeout }, async () => {
  if (programs === undefined) return
  const { total, tested } = await check('', callers[1]!, Math.ceil(usual / 3))
  expect(tested).toBe(total)
  expect(total).toBeGreaterThan(70)
})

test('each call of the description was made', () => {
  if (programs === undefined) return
  expect(made.reduce((sum, { tested }) => sum + tested, 0)).toBe(made[0]!.total)
})
