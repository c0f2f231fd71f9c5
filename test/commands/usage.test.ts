import { expect, test } from 'vitest'
import { folder } from '../support/folder.ts'
import { run } from '../support/program.ts'

const program = new URL('../../src/main.ts', import.meta.url).pathname

async function pillarbox(...words: string[]): Promise<{ code: number | null; errors: string }> {
  const { code, errors } = await run(process.execPath, [program, ...words], { cwd: folder() })
  return { code, errors }
}

test.each([
  [['foo'], "error: unknown command 'foo'\nList the commands: pillarbox --help\n"],
  [['statsu', '--json'], `{"error":{"message":"unknown command 'statsu' (Did you mean status?)","code":"invalid_request"}}\n`],
  [['-c', 'box.yaml', 'foo'], "error: unknown command 'foo'\nList the commands: pillarbox --help\n"],
  [['-c', 'box.yaml', 'status'], 'error: the command comes before its options: pillarbox status -c box.yaml\n'],
  [['help', 'stats'], "error: unknown command 'stats'\n(Did you mean status?)\n"],
  [['key', 'crate'], "error: unknown command 'crate'\n(Did you mean create?)\n"],
  [['serve', 'foo'], "error: too many arguments for 'serve'. Expected 0 arguments but got 1: foo.\n"],
])('%j is a wrong command line', async (words, errors) => {
  expect(await pillarbox(...words)).toEqual({ code: 2, errors })
})
