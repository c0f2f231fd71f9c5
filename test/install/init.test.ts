import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { deliver, message } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { peer } from '../support/peer.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { run } from '../support/program.ts'

const program = new URL('../../src/main.ts', import.meta.url).pathname

// each of them starts a process or five
interface Said {
  status: number | null
  output: string
  errors: string
}

async function pillarbox(cwd: string, ...words: string[]): Promise<Said> {
  return pillarboxIn({}, cwd, ...words)
}

async function pillarboxIn(env: Record<string, string>, cwd: string, ...words: string[]): Promise<Said> {
  const { code, output, errors } = await run(process.execPath, [program, ...words], { cwd, env })
  return { status: code, output: output.toString(), errors }
}

const names = ['--domain', 'agents.test', '--hostname', 'mx.agents.test']

function unattended(cwd: string, ...words: string[]): Promise<Said> {
  return pillarbox(cwd, 'init', '--yes', '--json', '--offline', '--data', 'data', ...names, ...words)
}

/** A line of the log of a box, with where it listens. */
interface Started {
  api: string
  smtp: { host: string; port: number }[]
}

test('init makes a box that starts, takes a message and gives it out under the key that was shown', async () => {
  const directory = folder()
  const made = await unattended(directory, '--email', 'ada@example.net')
  expect(made).toMatchObject({ status: 0, errors: '' })
  const outcome = JSON.parse(made.output)
  const data = join(directory, 'data')
  expect(outcome).toMatchObject({ data, config: join(data, 'pillarbox.yaml'), domain: 'agents.test', hostname: 'mx.agents.test' })
  expect(outcome).toMatchObject({ account: { name: 'default' }, first_key: expect.stringMatching(/^pbx_/) })
  const purposes = outcome.dns_records
    .filter(({ required }: { required: boolean }) => required)
    .map(({ purpose }: { purpose: string }) => purpose)
  expect(purposes.filter((purpose: string) => purpose !== 'address')).toEqual(['mx', 'spf', 'dkim', 'dkim'])
  expect(readFileSync(outcome.zone, 'utf8')).toContain('agents.test. 3600 IN MX 10 mx.agents.test.')
  const box = boxProcess({ ...testBox, PILLARBOX_DATA_DIR: data }, ['serve'], directory)
  const { api, smtp } = (await box.said('started')) as unknown as Started
  expect(box.output()).not.toContain('pbx_')
  const call = async (method: string, path: string, body?: unknown): Promise<Record<string, never>> => {
    const headers = { Authorization: `Bearer ${outcome.first_key}`, 'Content-Type': 'application/json' }
    const answer = await fetch(`${api}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return (await answer.json()) as Record<string, never>
  }
  const { id, email } = await call('POST', '/v1/identities', { name: 'Ada' })
  expect(email).toBe('ada@agents.test')
  expect(await deliver(smtp[0]!, { to: email!, raw: message({ To: email!, Subject: 'First' }, 'Hello.') })).toMatch(/^250 /)
  expect(await call('GET', `/v1/identities/${id}/emails`)).toMatchObject({ data: [{ subject: 'First' }] })
  // the link is as good once the box runs as it was when it was shown
  const { hash } = new URL(outcome.setup_link)
  const input = { token: hash.slice('#token='.length), email: 'ada@example.net', password: 'a long and quiet evening' }
  const headers = { Origin: api, 'Content-Type': 'application/json' }
  expect((await fetch(`${api}/v1/setup`, { method: 'POST', headers, body: JSON.stringify(input) })).status).toBe(200)
  expect(await box.end('SIGTERM')).toBe(0)
})

test('the settings say what was chosen and why, are good, and neither they nor the keys are read by others', async () => {
  const directory = folder()
  const { data, config, keys, log, first_key } = JSON.parse(
    (await unattended(directory, '--behind-proxy', '--email', 'ada@example.net')).output,
  )
  const text = readFileSync(config, 'utf8')
  expect(text).toContain(
    '# Domain of new addresses.\n  # Default: pillarbox.test. A change needs a restart.\n  domain: agents.test\n',
  )
  expect(text).toContain('public_url: "https://mx.agents.test"')
  expect(text).toContain('trusted_proxies: ["127.0.0.1/32", "::1/128"]')
  expect(text).toContain('postmaster: ada@example.net')
  expect(await pillarbox(directory, 'config', 'check', '--config', config)).toMatchObject({ status: 0 })
  for (const file of [data, keys, config, join(keys, 'master.key'), log]) expect(statSync(file).mode & 0o077).toBe(0)
  expect(readFileSync(log, 'utf8')).toMatch(/ Finished\.\n$/)
  expect(readFileSync(log, 'utf8')).not.toContain(first_key)
})

test('its backups have the keys, sealed under a passphrase of its own that only its file shows', async () => {
  const directory = folder()
  const made = await unattended(directory)
  const { data, config, log } = JSON.parse(made.output)
  const file = join(data, 'backup.passphrase')
  expect(readFileSync(file, 'utf8')).toMatch(/^[A-Za-z0-9+/]{32}\n$/)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const passphrase = readFileSync(file, 'utf8').trim()
  for (const text of [made.output, readFileSync(config, 'utf8'), readFileSync(log, 'utf8')])
    expect(text).not.toContain(passphrase)
  mkdirSync(join(directory, 'backups'))
  const env = { PILLARBOX_BACKUP__DIRECTORY: join(directory, 'backups') }
  const backup = await pillarboxIn(env, directory, 'backup', '--auto', '--json', '--data', data)
  expect(backup).toMatchObject({ status: 0, errors: '' })
  const { file: tar, keys } = JSON.parse(backup.output)
  expect(keys).toBe(true)
  const verified = await pillarbox(directory, 'verify', tar, '--json', '--passphrase-file', file)
  expect(verified).toMatchObject({ status: 0, errors: '' })
  expect(JSON.parse(verified.output)).toMatchObject({ keys: 'opened' })
  // a directory with nothing but the settings is as good as an empty one
  for (const name of readdirSync(data)) {
    if (!['pillarbox.yaml', 'backup.passphrase'].includes(name)) rmSync(join(data, name), { recursive: true })
  }
  rmSync(`${data}-keys`, { recursive: true })
  expect(await pillarbox(directory, 'restore', tar, '--data', data, '--passphrase-file', file)).toMatchObject({ status: 0 })
  expect(readFileSync(file, 'utf8').trim()).toBe(passphrase)
  expect((await pillarbox(directory, 'domain', 'list', '--data', data)).output).toContain('agents.test')
})

test('what is left to do names the settings, the records and the file of the passphrase to keep', async () => {
  const directory = folder()
  const made = await pillarbox(directory, 'init', '--yes', '--offline', '--data', 'data', ...names)
  expect(made).toMatchObject({ status: 0 })
  expect(made.output).toContain(`Keep a copy of ${join(directory, 'data', 'backup.passphrase')} in another safe place`)
  expect(made.output).toContain(`domain check agents.test --config ${join(directory, 'data', 'pillarbox.yaml')}`)
  expect(made.output).not.toContain('/run/')
  expect(existsSync(join(directory, 'data', 'backup.passphrase'))).toBe(true)
})

test('a bootstrap key of the operator is used, and never shown', async () => {
  const directory = folder()
  const key = 'a-key-of-my-own-with-enough-characters'
  const words = ['init', '--yes', '--json', '--offline', '--data', 'data', ...names]
  const { output } = await run(process.execPath, [program, ...words], { cwd: directory, env: { PILLARBOX_BOOTSTRAP_KEY: key } })
  expect(JSON.parse(output.toString())).toMatchObject({ first_key: null })
  expect(output.toString()).not.toContain(key)
})

test('what is there is never written over', async () => {
  const directory = folder()
  await unattended(directory)
  const state = readFileSync(join(directory, 'data', 'state.json'), 'utf8')
  const again = await unattended(directory)
  expect(again).toMatchObject({ status: 1, output: '' })
  expect(JSON.parse(again.errors)).toMatchObject({
    error: { code: 'box_exists', message: expect.stringContaining('There is a box in') },
  })
  expect(readFileSync(join(directory, 'data', 'state.json'), 'utf8')).toBe(state)

  const refused = async (code: string, ...words: string[]): Promise<void> => {
    const before = readdirSync(directory, { recursive: true })
    const said = await unattended(directory, ...words)
    expect([said.status, JSON.parse(said.errors).error.code]).toEqual([1, code])
    expect(readdirSync(directory, { recursive: true })).toEqual(before)
  }
  writeFileSync(join(directory, 'mine.yaml'), 'hostname: mine.test\n')
  await refused('config_exists', '--data', 'second', '--config', 'mine.yaml')
  mkdirSync(join(directory, 'former'))
  writeFileSync(join(directory, 'former', 'backup.passphrase'), 'of an earlier box\n')
  await refused('passphrase_exists', '--data', 'second', '--config', 'former/pillarbox.yaml')
  mkdirSync(join(directory, 'photos'))
  writeFileSync(join(directory, 'photos', 'cat.jpg'), '')
  await refused('not_empty', '--data', 'photos')
  rmSync(join(directory, 'data'), { recursive: true })
  await refused('keys_exist')
  await refused('not_a_directory', '--data', 'mine.yaml')
  mkdirSync(join(directory, 'units'))
  writeFileSync(join(directory, 'units', 'pillarbox.service'), '')
  await refused('unit_exists', '--data', 'second', '--units', 'units')
})

test('what it wrote goes when it fails, and the next try finds nothing in its way', async () => {
  const directory = folder()
  writeFileSync(join(directory, 'file'), '')
  const failed = await unattended(directory, '--units', 'file/units', '--config', 'settings/pillarbox.yaml')
  expect(failed.status).toBe(1)
  const { message: said } = JSON.parse(failed.errors).error
  expect(said).toContain('The files it had written were removed')
  const copy = /\((\/[^)]*)\)/.exec(said)![1]!
  expect(readFileSync(copy, 'utf8')).toContain(`made file ${join(directory, 'settings', 'backup.passphrase')}`)
  rmSync(join(copy, '..'), { recursive: true })
  expect(readdirSync(directory)).toEqual(['file'])
  expect(await unattended(directory)).toMatchObject({ status: 0 })
})

test('a directory that was there stays, with nothing in it', async () => {
  const directory = folder()
  mkdirSync(join(directory, 'data', 'lost+found'), { recursive: true })
  writeFileSync(join(directory, 'file'), '')
  expect((await unattended(directory, '--units', 'file/units')).status).toBe(1)
  expect(readdirSync(join(directory, 'data'))).toEqual(['lost+found'])
  expect(await unattended(directory)).toMatchObject({ status: 0 })
})

/** Begins init and signals it once its master key lies on disk: it has begun, and is not done. */
async function cut(directory: string, signal: NodeJS.Signals): Promise<{ status: number | null; errors: string }> {
  const words = ['init', '--yes', '--json', '--offline', '--data', 'data', ...names]
  const child = spawn(process.execPath, [program, ...words], { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const ended = once(child, 'close')
  while (!existsSync(join(directory, 'data-keys', 'master.key'))) await pause(5)
  child.kill(signal)
  const [status] = (await ended) as [number | null]
  return { status, errors }
}

test('cut short by Ctrl-C it leaves nothing behind', async () => {
  const directory = folder()
  const { status, errors } = await cut(directory, 'SIGINT')
  expect(status).toBe(1)
  expect(JSON.parse(errors)).toMatchObject({ error: { code: 'cut_short' } })
  expect(readdirSync(directory)).toEqual([])
})

test('killed it leaves a part of a box, which the next try removes', async () => {
  const directory = folder()
  expect(await cut(directory, 'SIGKILL')).toMatchObject({ status: null })
  const before = readFileSync(join(directory, 'data-keys', 'master.key'), 'utf8')
  expect(await unattended(directory)).toMatchObject({ status: 0, errors: '' })
  expect(readFileSync(join(directory, 'data-keys', 'master.key'), 'utf8')).not.toBe(before)
})

test('a set-up that was cut short at its very end is not undone once somebody uses the box', async () => {
  const directory = folder()
  expect(await unattended(directory)).toMatchObject({ status: 0 })
  const data = join(directory, 'data')
  const log = join(data, 'init.log')
  writeFileSync(log, readFileSync(log, 'utf8').replace(/.*Finished\.\n$/, ''))
  expect(await pillarbox(directory, 'identity', 'create', 'Ada', '--data', data)).toMatchObject({ status: 0 })
  const again = await unattended(directory)
  expect([again.status, JSON.parse(again.errors)]).toMatchObject([1, { error: { code: 'box_used' } }])
  expect(again.errors).toContain(log)
  expect((await pillarbox(directory, 'identity', 'list', '--data', data)).output).toContain('Ada')
})

test('a wrong command line is told, with status 2, and nothing is done', async () => {
  const directory = folder()
  const wrong: [string[], RegExp][] = [
    [['--yes'], /--yes requires --domain/],
    [['--yes', '--domain', 'nodots'], /--domain must be a domain such as example\.com\./],
    [['--yes', '--domain', 'agents.test', '--hostname', 'a b'], /--hostname must be a host name/],
    [['--yes', '--domain', 'agents.test', '--email', 'ada'], /--email must be an address/],
    [['--domain', 'agents.test'], /Standard input is not a terminal/],
  ]
  for (const [words, sentence] of wrong) {
    const said = await pillarbox(directory, 'init', '--offline', '--data', 'data', ...words)
    expect(said).toMatchObject({ status: 2, output: '', errors: expect.stringMatching(sentence) })
  }
  expect(readdirSync(directory)).toEqual([])
})

test('whoever sits in front is asked, and may go away', async () => {
  const script = peer('script', 'apt-get install bsdutils')
  if (script === undefined) return
  const directory = folder()
  const typed = async (...keys: string[]): Promise<string> => {
    const command = `stty cols 120 rows 40; ${process.execPath} ${program} init --offline --data data`
    const child = spawn(script, ['-qec', command, '/dev/null'], { cwd: directory, stdio: ['pipe', 'pipe', 'inherit'] })
    let shown = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text))
    const ended = once(child, 'close')
    onTestFinished(() => void child.kill('SIGKILL'))
    for (const [question, key] of keys.map((one) => one.split('|'))) {
      while (!shown.includes(question!) && child.exitCode === null) await pause(20)
      shown = shown.slice(shown.indexOf(question!))
      child.stdin.write(key!)
    }
    await ended
    return shown
  }
  const left = await typed('Domain of the addresses|agents.test\r', 'Host name of this machine|\u0003')
  expect(left).toContain('Nothing was changed.')
  expect(readdirSync(directory)).toEqual([])
  const done = await typed(
    'Domain of the addresses|nodots\r',
    'It must be a domain|\u0015agents.test\r',
    'Host name of this machine|\r',
    'postmaster|\r',
    'Obtain certificates|n',
    'Set up a box|y',
  )
  expect(done).toContain('The box for agents.test is set up.')
  expect(readFileSync(join(directory, 'data', 'pillarbox.yaml'), 'utf8')).toContain('hostname: mx.agents.test')
})
