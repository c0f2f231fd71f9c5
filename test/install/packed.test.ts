import { execFile, execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { beside } from '../../src/http/manual/manual.ts'
import { deliver, message } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { succeed } from '../support/program.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Packs the tree as npm would publish it, and unpacks it as the package of that name below `directory`. */
async function packed(directory: string): Promise<string> {
  const tree = join(directory, 'tree')
  const skipped = new Set(['node_modules', '.git', 'data', 'data-keys'])
  cpSync(root, tree, { recursive: true, filter: (path) => !skipped.has(basename(path)) })
  // what is packed is built first
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  const env = { npm_config_update_notifier: 'false', HOME: directory }
  const said = await succeed('npm', ['pack', '--json', '--offline', '--pack-destination', directory], { cwd: tree, env })
  expect(existsSync(join(tree, 'npm-shrinkwrap.json'))).toBe(false)
  const [{ filename }] = JSON.parse(said.toString())
  const place = join(directory, 'node_modules', 'pillarbox')
  mkdirSync(place, { recursive: true })
  execFileSync('tar', ['-xzf', join(directory, filename), '-C', place, '--strip-components=1'])
  return place
}

test('a packed release has what it needs, and what it does not need stays out', async () => {
  const place = await packed(folder())
  const top = readdirSync(place)
  expect(top).toEqual(
    expect.arrayContaining(['bin', 'config', 'docker', 'docs', 'npm-shrinkwrap.json', 'src', 'systemd', 'LICENSE', 'README.md']),
  )
  for (const name of ['test', 'bench', '.ci', 'package-lock.json']) expect(top).not.toContain(name)
  expect(existsSync(join(place, 'dist', 'page', 'index.html'))).toBe(true)
  for (const path of beside) expect([path, existsSync(join(place, path))]).toEqual([path, true])
})

/** The package with its libraries beside it, as npm lays them out. */
async function installed(directory: string): Promise<string> {
  const place = await packed(directory)
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name !== '.cache' && name !== 'pillarbox')
      symlinkSync(join(root, 'node_modules', name), join(directory, 'node_modules', name))
  }
  return place
}

/** Counts how many files have their types taken away. */
const counting = `import module, { syncBuiltinESMExports } from 'node:module'
const strip = module.stripTypeScriptTypes
let count = 0
module.stripTypeScriptTypes = (...input) => ((count += 1), strip(...input))
syncBuiltinESMExports()
process.on('exit', () => process.stderr.write('stripped ' + count))`

test('installed as a package, it takes types away at its first start alone, and again where a file of that is damaged', async () => {
  const directory = folder()
  const place = await installed(directory)
  writeFileSync(join(directory, 'counting.mjs'), counting)
  const stripped = async (): Promise<number> => {
    const env = { PATH: process.env['PATH'], NODE_OPTIONS: `--import="${join(directory, 'counting.mjs')}"` }
    const { stdout, stderr } = await promisify(execFile)(join(place, 'bin', 'pillarbox'), ['--version'], { env })
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    return Number(/stripped (\d+)/.exec(stderr)![1])
  }
  expect(await stripped()).toBeGreaterThan(5)
  expect(await stripped()).toBe(0)
  const kept = join(place, 'node_modules', '.cache', 'pillarbox', `typeless-${process.version}`)
  const [first, second] = readdirSync(kept).map((name) => join(kept, name))
  truncateSync(first!, 80)
  writeFileSync(second!, readFileSync(second!, 'utf8').replace(/\w(?=\W*$)/, '!'))
  expect(await stripped()).toBe(2)
  expect(await stripped()).toBe(0)
})

test('installed as a package, below node_modules, it sets up a box, runs it and makes a backup of it', async () => {
  const directory = folder()
  const place = await installed(directory)
  const program = join(place, 'bin', 'pillarbox')
  const data = join(directory, 'data')
  const env = { PILLARBOX_DATA_DIR: data, PILLARBOX_HTTP__LISTEN: '127.0.0.1:0', PILLARBOX_SMTP__LISTEN: '127.0.0.1:0' }
  const names = ['--domain', 'agents.test', '--hostname', 'mx.agents.test']
  const said = await succeed(program, ['init', '--yes', '--json', '--offline', ...names], { env, cwd: directory })
  const { first_key } = JSON.parse(said.toString())
  const box = boxProcess({ ...testBox, ...env }, ['serve'], directory, program)
  const { api, smtp } = (await box.said('started')) as unknown as { api: string; smtp: { host: string; port: number }[] }
  expect(await (await fetch(`${api}/`)).text()).toContain('<script type="module"')
  const headers = { Authorization: `Bearer ${first_key}`, 'Content-Type': 'application/json' }
  const made = await fetch(`${api}/v1/identities`, { method: 'POST', headers, body: '{"name":"Ada"}' })
  const { email } = (await made.json()) as { email: string }
  // the threads that read messages run our TypeScript too
  expect(await deliver(smtp[0]!, { to: email, raw: message({ To: email, Subject: 'Packed' }, 'Hello.') })).toMatch(/^250 /)
  // and so does the process that makes a backup
  await succeed(program, ['backup', join(directory, 'backup.tar')], { env, cwd: directory })
  expect(existsSync(join(directory, 'backup.tar'))).toBe(true)
  expect(await box.end('SIGTERM')).toBe(0)
})
