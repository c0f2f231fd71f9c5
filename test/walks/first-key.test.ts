import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { App } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import { createLog } from '../../src/core/log.ts'
import { bootstrapKey } from '../support/appliance.ts'
import { boxProcess, testBox } from '../support/process.ts'

function settings(): Record<string, string> {
  const home = mkdtempSync(join(tmpdir(), 'pillarbox-key-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  return { ...testBox, PILLARBOX_DATA_DIR: join(home, 'data'), PILLARBOX_DNS__SERVERS: '127.0.0.1:9' }
}

async function open(env: Record<string, string>): Promise<{ app: App; key: string | null }> {
  const app = await App.open(await loadConfig({ env, cwd: tmpdir() }), createLog('silent'))
  const { firstKey } = await app.start()
  return { app, key: firstKey }
}

test('a port taken on the first start does not lose the key', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const env = settings()
  const first = boxProcess({ ...env, PILLARBOX_HTTP__LISTEN: `127.0.0.1:${port}` })
  expect(await first.ended).toBe(1)
  expect(first.errors()).toContain(`127.0.0.1:${port}`)
  expect(first.output()).not.toContain('pbx_')
  taken.close()

  const second = boxProcess(env)
  const { api } = await second.said('started')
  await expect.poll(second.output).toContain('# 3.')
  const key = /KEY='(pbx_[0-9A-Za-z]{49})'/.exec(second.output())![1]!
  expect(await statusWith(api as string, key)).toBe(200)
  expect(await second.end('SIGTERM')).toBe(0)
})

test('a box that is stopped before its first words ends well, and says them at the next start', async () => {
  const env = settings()
  const first = boxProcess(env)
  await first.said('started')
  expect(await first.end('SIGTERM')).toBe(0)
  expect(first.errors()).toBe('')
  const second = boxProcess(env)
  if (!first.output().includes('# 3.')) await expect.poll(second.output).toContain('# 3.')
  else await second.said('started')
  expect(await second.end('SIGTERM')).toBe(0)
})

test('a first key that nobody was shown is replaced at the next start, one that was shown or used stays', async () => {
  const env = settings()
  const unseen = await open(env)
  await unseen.app.stop()
  const seen = await open(env)
  expect(seen.key).toMatch(/^pbx_/)
  expect(await statusWith(seen.app.publicUrl, unseen.key!)).toBe(401)
  await seen.app.firstKeyShown()
  await seen.app.stop()

  const later = await open(env)
  expect(later.key).toBeNull()
  expect(await statusWith(later.app.publicUrl, seen.key!)).toBe(200)
  await later.app.stop()
})

test('a first key in use is never replaced', async () => {
  const env = settings()
  const used = await open(env)
  expect(await statusWith(used.app.publicUrl, used.key!)).toBe(200)
  await used.app.stop()
  const later = await open(env)
  expect(later.key).toBeNull()
  expect(await statusWith(later.app.publicUrl, used.key!)).toBe(200)
  await later.app.stop()
})

test('a key that the operator set is not printed', async () => {
  const box = boxProcess({ ...settings(), PILLARBOX_BOOTSTRAP_KEY: bootstrapKey })
  const { api } = await box.said('started')
  await expect.poll(box.output).toContain('# 3.')
  expect(box.output()).toContain('export KEY="$PILLARBOX_BOOTSTRAP_KEY"\n')
  expect(box.output() + box.errors()).not.toContain(bootstrapKey)
  expect(await statusWith(api as string, bootstrapKey)).toBe(200)
  expect(await box.end('SIGTERM')).toBe(0)
})

async function statusWith(url: string, key: string): Promise<number> {
  return (await fetch(`${url}/v1/identities`, { headers: { Authorization: `Bearer ${key}` } })).status
}
