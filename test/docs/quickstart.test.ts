import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { folder } from '../support/folder.ts'
import { peer } from '../support/peer.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { pages, read, root } from './pages.ts'

const run = promisify(execFile)

/** The page's fenced blocks, in their order. */
const blocks = [...pages.get('docs/quickstart.md')!.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language, code]) => ({
  language: language!,
  code: code!,
}))
const [start, environment, mail, ...others] = blocks.filter(({ language }) => language === 'sh').map(({ code }) => code)

/** What the page says that the calls print. */
const printed = ['Your sign-in code', '493817', 'queued', 'Re: Your sign-in code']

test('each step has a block in each language, and starting and sending have one in the shell', () => {
  const counts = Map.groupBy(blocks, ({ language }) => language)
  expect(Object.fromEntries([...counts].map(([language, list]) => [language, list.length]))).toEqual({
    sh: 3,
    bash: 4,
    typescript: 4,
    python: 4,
  })
  expect(others).toEqual([])
  for (const line of printed) expect(pages.get('docs/quickstart.md')).toContain(`\n    ${line}\n`)
})

test('a box starts by the command of the page, with the addresses of the page', () => {
  expect(start).toBe('npm ci && npm start\n')
  expect((JSON.parse(read('package.json')) as { scripts: { start: string } }).scripts.start).toBe('exec bin/pillarbox serve')
  const settings = read('docs/settings.md')
  for (const [name, value] of [
    ['http.listen', '127.0.0.1:8080'],
    ['smtp.listen', '127.0.0.1:2525'],
  ]) {
    expect(settings).toMatch(new RegExp(`^\\| \`${name}\` \\|[^|]*\\| \`${value}\``, 'm'))
    expect(environment).toContain(value)
  }
})

test('the blocks for the shell do what the page says', async () => {
  const [bash, curl, jq] = [peer('bash'), peer('curl'), peer('jq')]
  if (!bash || !curl || !jq) return
  const env = await startBox()
  const code = blocks.flatMap(({ language, code: text }) => (language === 'bash' || text === mail ? [text] : []))
  const { stdout } = await run(bash, ['-euc', code.join('\n')], { env })
  expect(stdout.trim().split('\n').slice(1)).toEqual(printed)
})

test.each(['typescript', 'python'])('the blocks in %s do what the page says', async (language) => {
  const program = language === 'typescript' ? process.execPath : peer('python3')
  if (program === undefined || peer('curl') === undefined) return
  const env = await startBox()
  const file = join(folder(), language === 'typescript' ? 'quickstart.ts' : 'quickstart.py')
  writeFileSync(file, blocks.flatMap(({ language: one, code }) => (one === language ? [code] : [])).join('\n'))
  const child = spawn(program, [file], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = once(child, 'close')
  while (!output.includes('\n')) await Promise.race([once(child.stdout, 'data'), ended])
  await run('sh', ['-euc', `${output.split('\n')[0]}\n${mail}`], { env })
  expect(await ended).toEqual([0, null])
  expect(output.trim().split('\n').slice(1)).toEqual(printed)
})

/** A box as the first command starts it, on ports of its own; answers the environment that the page sets, with what the box printed. */
async function startBox(): Promise<NodeJS.ProcessEnv> {
  const started = boxProcess(
    { ...testBox, PILLARBOX_DATA_DIR: folder(), PILLARBOX_DNS__SERVERS: '127.0.0.1:9' },
    ['serve'],
    root,
    `${root}bin/pillarbox`,
  )
  await started.said('started')
  const found = (pattern: RegExp): string | undefined => pattern.exec(started.output())?.[1]
  const values = (): (string | undefined)[] => [
    found(/^ {2}API +(\S+)/m),
    found(/^ {2}SMTP +(\S+)/m),
    found(/^export KEY='(pbx_\w+)'$/m),
  ]
  await expect.poll(() => values().every((value) => value !== undefined)).toBe(true)
  const [URL, SMTP, KEY] = values()
  return { PATH: process.env['PATH'], HOME: process.env['HOME'], NO_COLOR: '1', URL, SMTP, KEY }
}
