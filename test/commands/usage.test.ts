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
  [
    ['queue', 'list', '--limit', 'many'],
    "error: option '--limit <count>' argument 'many' is invalid. It must be a whole number of 1 or more.\n",
  ],
  [
    ['send', '--from', 'ada', '--to', 'sam@example.com', '--wait', 'long'],
    "error: option '--wait [seconds]' argument 'long' is invalid. It must be a whole number of 1 or more.\n",
  ],
  [
    ['key', 'create', '--label', 'one', '--rate-limit', 'none'],
    "error: option '--rate-limit <calls>' argument 'none' is invalid. It must be a whole number of 0 or more.\n",
  ],
  [
    ['ready', '--wait', '90000'],
    "error: option '--wait <seconds>' argument '90000' is invalid. It must be a whole number from 0 to 86400.\n",
  ],
  [['serve', 'foo'], "error: too many arguments for 'serve'. Expected 0 arguments but got 1: foo.\n"],
])('%j is a wrong command line', async (words, errors) => {
  expect(await pillarbox(...words)).toEqual({ code: 2, errors })
})
