import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, loadConfig } from '../../src/config.ts'

const directory = join(import.meta.dirname, '../contract/config/bad')
const names = readdirSync(directory)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => name.slice(0, -'.yaml'.length))

async function complaint(file: string): Promise<string> {
  const error = await loadConfig({ file, env: {}, cwd: directory }).catch((thrown: unknown) => thrown)
  return error instanceof ConfigError ? error.message : `no ConfigError but ${String(error)}`
}

describe('a broken file', () => {
  test.each(names)('%s', async (name) => {
    const expected = readFileSync(join(directory, `${name}.expected`), 'utf8')
    const said = await complaint(`${name}.yaml`)
    expect(`${said.replaceAll(directory, '<cwd>')}\n`).toBe(expected)
  })

  test('every complaint says where it is, to the column', async () => {
    expect(names.length).toBeGreaterThanOrEqual(20)
    for (const name of names) {
      for (const line of (await complaint(`${name}.yaml`)).split('\n')) {
        expect(line).toMatch(new RegExp(`^${name}\\.yaml:\\d+:\\d+( \\S+)?: \\S`))
      }
    }
  })

  test('no secret is repeated', async () => {
    for (const name of ['weak-secret', 'broken-secret', 'secret-twice', 'bad-url']) {
      expect(await complaint(`${name}.yaml`)).not.toMatch(
        /hunter2|twenty characters|secret-indeed|0123456789abcdefghij|user:secret/,
      )
    }
  })
})
