import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { apiReference } from '../../src/commands/docs/docs.ts'

test('docs/api.md is what the routes and event types say (npm run docs writes it)', async () => {
  expect(readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')).toBe(await apiReference())
})
