import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { parse } from '../../src/message/parse.ts'

const folder = new URL('../fixtures/mail/', import.meta.url)
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.eml'))
  .map((name) => name.slice(0, -4))

test('there are messages to read', () => {
  expect(names.length).toBeGreaterThan(60)
})

test.each(names)('%s', async (name) => {
  const expected = z.looseObject({}).parse(JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')))
  expect(await parse(readFileSync(new URL(`${name}.eml`, folder)))).toMatchObject(expected)
})
