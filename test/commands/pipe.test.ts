import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { ambient } from '../support/ambient.ts'
import { folder } from '../support/folder.ts'
import { boxProcess } from '../support/process.ts'

const program = new URL('../../src/main.ts', import.meta.url).pathname

/** Runs a command whose answer nobody reads; answers its exit status and what it said beside it. */
async function unread(cwd: string, ...words: string[]): Promise<{ status: number | null; errors: string }> {
  const child = spawn(process.execPath, [program, ...words], { cwd, env: { ...ambient }, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  child.stdout.destroy()
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, errors }
}

test('a command whose answer nobody reads ends without a word', async () => {
  expect(await unread(folder(), 'config', 'schema')).toEqual({ status: 1, errors: '' })
})

test('a log of which only the beginning is read ends without a word', async () => {
  const directory = folder()
  const line = {
    level: 'info',
    time: '2026-11-22T10:00:00.000Z',
    part: 'smtp',
    ip: '192.0.2.1',
    reply: 'x'.repeat(200),
    msg: 'connection refused',
  }
  writeFileSync(join(directory, 'box.log'), `${JSON.stringify(line)}\n`.repeat(5000))
  expect(await unread(directory, 'log', '--file', 'box.log', '--ip', '192.0.2.1')).toEqual({ status: 1, errors: '' })
})

test('a set-up whose key nobody reads is undone', async () => {
  const directory = folder()
  const names = ['--domain', 'agents.test', '--hostname', 'mx.agents.test']
  const { status, errors } = await unread(directory, 'init', '--yes', '--json', '--offline', '--data', 'data', ...names)
  expect([status, JSON.parse(errors)]).toEqual([1, { error: { code: 'init_failed', message: expect.stringContaining('EPIPE') } }])
  expect(readdirSync(directory)).toEqual([])
})

test('a box whose log finds no room goes on, and stops in order', async () => {
  const { app, env, directory } = await appliance()
  await app.stop()
  const data = env['PILLARBOX_DATA_DIR']!
  const box = boxProcess(env, ['-c', `exec '${process.execPath}' '${program}' serve > /dev/full`], directory, '/bin/sh')
  const ready = boxProcess({}, ['ready', '--data', data, '--wait', '100'])
  expect([await ready.ended, ready.errors()]).toEqual([0, ''])
  expect([await box.end('SIGTERM'), box.errors()]).toEqual([0, ''])
})

test('a box whose log nobody reads any more stops in order', async () => {
  const { app, env, directory } = await appliance()
  await app.stop()
  const box = boxProcess(env, ['serve'], directory)
  await box.said('started')
  box.child.stdout!.destroy()
  expect([await box.end('SIGTERM'), box.errors()]).toEqual([0, ''])
})
