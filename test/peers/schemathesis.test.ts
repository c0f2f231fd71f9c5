import { afterAll, expect, onTestFinished, test } from 'vitest'
import { scopes } from '../../src/core/scopes.ts'
import { Asking } from '../contract/asking.ts'
import { inhabit } from '../contract/inhabited.ts'
import { folder } from '../support/folder.ts'
import { absent } from '../support/peer.ts'
import {
  type Caller,
  callersOf,
  checks,
  installed,
  operationsFor,
  type Report,
  schemathesis,
  settledFor,
  takenFor,
  wanted,
} from './schemathesis.ts'

const isInstalled = ((): boolean => {
  try {
    return installed() !== ''
  } catch {
    absent('schemathesis', `${wanted} cannot be installed from PyPI`)
    return false
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
): Promise<Report['operations']> {
  const { own, box } = world
  const isOwner = { status: 200, body: { account_id: own.account, scopes } }
  // whoever is unknown is refused everywhere, which the description allows
  expect(await takenFor(box.url, caller.headers)).toMatchObject(isOwner)
  const { status, output, report } = await schemathesis(
    {
      url: `${box.url}/v1/openapi.json${query}`,
      directory: folder(),
      options: caller.options,
      settings: {
        seed: 1,
        headers: caller.headers,
        examples,
        isWhole,
        checks,
        operations: await operationsFor(asking, caller.spellings, {
          own,
          read: own,
          changed: await settledFor(world, caller.spellings),
        }),
      },
    },
    onTestFinished,
  )
  expect([status, status === 0 ? '' : output]).toEqual([0, ''])
  expect(await takenFor(box.url, caller.headers)).toMatchObject(isOwner)
  const { operations, warnings } = report
  expect(operations).toMatchObject({ tested: operations.selected, errored: 0, skipped: 0 })
  expect([warnings['unsupported_regex'], warnings['unresolvable_reference'], warnings['missing_deserializer']]).toEqual([
    [],
    [],
    [],
  ])
  return operations
}

test('whatever is asked with a key, every answer is one that the short description names', { timeout }, async () => {
  if (!isInstalled) return
  const { total, tested } = await check('', short, short.key, Math.ceil(usual / 3))
  expect(tested).toBe(total)
  expect(total).toBeGreaterThan(70)
})

test.each([
  ['a session', whole.person],
  ['a key', whole.key],
])('whatever is asked with %s, every answer is one that the OpenAPI description names', { timeout }, async (_, caller) => {
  if (!isInstalled) return
  const operations = await check('?all=true', whole, caller, usual)
  expect(operations.tested).toBeGreaterThan(0)
  made.push(operations)
})

test('each call of the description was made', () => {
  if (!isInstalled) return
  expect(made.reduce((sum, { tested }) => sum + tested, 0)).toBe(made[0]!.total)
})
