import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { certificate } from '../support/receiver.ts'
import { Dialogue } from '../support/smtp.ts'
import { pillarbox, type Said } from '../support/pillarbox.ts'
import { boxProcess, testBox } from '../support/process.ts'

function directory(): string {
  const made = mkdtempSync(join(tmpdir(), 'pillarbox-reload-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

test('HUP reads the settings again; a bad file keeps the old ones and says where it is wrong', async () => {
  const home = directory()
  const file = join(home, 'pillarbox.yaml')
  writeFileSync(file, 'smtp:\n  size: 100 KiB\n')
  const box = boxProcess({ ...testBox, PILLARBOX_DATA_DIR: join(home, 'data') }, ['serve', '--config', file])
  const { smtp } = await box.said('started')
  expect(await sizeOf(smtp[0].port)).toBe('102400')

  writeFileSync(file, 'smtp:\n  size: 1 MiB\n')
  box.child.kill('SIGHUP')
  await box.said('settings reloaded')
  expect(await sizeOf(smtp[0].port)).toBe('1048576')

  writeFileSync(file, 'smtp:\n  size: 2 MiB\n  sise: 3\n')
  box.child.kill('SIGHUP')
  const told = await box.said('settings could not be reloaded; the former ones remain in effect')
  expect(told['problem']).toContain(`${file}:3:3 smtp.sise: `)
  expect(await sizeOf(smtp[0].port)).toBe('1048576')

  writeFileSync(file, 'smtp:\n  size: 2 MiB\nhostname: other.test\n')
  box.child.kill('SIGHUP')
  expect((await box.said('changed settings require a restart'))['settings']).toEqual(['hostname'])
  expect(await sizeOf(smtp[0].port)).toBe('2097152')
  expect(await box.end('SIGTERM')).toBe(0)
})

test('pillarbox reload waits for what comes of it, and fails when the settings are refused', async () => {
  const home = directory()
  const file = join(home, 'pillarbox.yaml')
  const data = join(home, 'data')
  writeFileSync(file, 'smtp:\n  size: 100 KiB\n')
  const box = boxProcess({ ...testBox, PILLARBOX_DATA_DIR: data }, ['serve', '--config', file])
  const { smtp } = await box.said('started')
  const reload = (...words: string[]): Promise<Said> =>
    pillarbox({ env: {}, directory: home }, ['reload', '--data', data, ...words])

  writeFileSync(file, 'smtp:\n  size: 1 MiB\nhostname: other.test\n')
  const taken = await reload('--json')
  expect(taken).toMatchObject({ status: 0, errors: '' })
  expect(JSON.parse(taken.output)).toEqual({ reloaded: ['smtp.size'], restart: ['hostname'] })
  expect(await sizeOf(smtp[0].port)).toBe('1048576')

  writeFileSync(file, 'smtp:\n  size: 2 MiB\n  sise: 3\n')
  const refused = await reload()
  expect(refused).toMatchObject({ status: 1, output: '' })
  expect(refused.errors).toContain(`${file}:3:3 smtp.sise: `)
  expect(refused.errors).toContain('The former settings remain in effect.')
  expect(await box.said('settings could not be reloaded; the former ones remain in effect')).toMatchObject({ level: 'error' })
  expect(await sizeOf(smtp[0].port)).toBe('1048576')

  expect(await box.end('SIGTERM')).toBe(0)
  expect(await reload()).toMatchObject({ status: 1, errors: 'The box is not running: it reads its settings when it starts.\n' })
})

test('a bad file stops the start with file, line and column, and exit status 78', async () => {
  const home = directory()
  const file = join(home, 'pillarbox.yaml')
  writeFileSync(file, 'http:\n  listen: nowhere\n')
  const box = boxProcess({ PILLARBOX_DATA_DIR: join(home, 'data'), PILLARBOX_CONFIG: file })
  expect(await box.ended).toBe(78)
  expect(box.errors()).toContain(`${file}:2:11 http.listen: must be host:port`)
  expect(box.errors()).not.toMatch(/\n\s+at /)
})

test('a data directory in use, or damaged, is refused with a sentence and left as it is', async () => {
  const home = directory()
  const env = { ...testBox, PILLARBOX_DATA_DIR: join(home, 'data') }
  const first = boxProcess(env)
  await first.said('started')
  const second = boxProcess(env)
  expect(await second.ended).toBe(78)
  expect(second.errors()).toContain(`in use by another Pillarbox process (process ${first.child.pid})`)
  await first.end('SIGTERM')

  const database = join(home, 'data', 'pillarbox.db')
  const damaged = readFileSync(database)
  damaged.fill(0, 0, 50)
  writeFileSync(database, damaged)
  const third = boxProcess(env)
  expect(await third.ended).toBe(78)
  expect(third.errors()).toContain(`${database} is damaged`)
  expect(readFileSync(database)).toEqual(damaged)
  expect(third.errors()).not.toMatch(/\n\s+at /)
})

async function sizeOf(port: number): Promise<string | undefined> {
  const dialogue = await Dialogue.connect(port)
  await dialogue.reply()
  const answer = await dialogue.say('EHLO client.test')
  dialogue.socket.destroy()
  return /SIZE (\d+)/.exec(answer)?.[1]
}

test('HUP takes over a certificate that was renewed under the same name', async () => {
  const home = directory()
  const [cert, key] = [join(home, 'cert.pem'), join(home, 'key.pem')]
  await renew(cert, key, 'first.test')
  const env = { PILLARBOX_SMTP__TLS__CERT: cert, PILLARBOX_SMTP__TLS__KEY: key, PILLARBOX_DATA_DIR: join(home, 'data') }
  const box = boxProcess({ ...testBox, ...env })
  const { smtp } = await box.said('started')
  expect(await shownBy(smtp[0].port)).toContain('first.test')
  await renew(cert, key, 'second.test')
  box.child.kill('SIGHUP')
  await box.said('settings reloaded')
  expect(await shownBy(smtp[0].port)).toContain('second.test')
  await box.end('SIGTERM')
})

async function renew(cert: string, key: string, name: string): Promise<void> {
  const made = await certificate(name)
  writeFileSync(cert, made.cert)
  writeFileSync(key, made.key)
}

async function shownBy(port: number): Promise<string> {
  const dialogue = await Dialogue.hello(port)
  await dialogue.say('STARTTLS')
  const secure = await dialogue.upgrade()
  const { subjectaltname, subject } = secure.getPeerCertificate()
  secure.destroy()
  return `${String(subject.CN)} ${subjectaltname ?? 'none'}`
}
