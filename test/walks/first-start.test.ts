import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { boxProcess, testBox } from '../support/process.ts'

const run = promisify(execFile)

test('the first start prints a key once, and three commands that work as printed', async () => {
  const home = mkdtempSync(join(tmpdir(), 'pillarbox-first-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  // a name server that refuses at once is what a machine without a network looks like
  const env = { ...testBox, PILLARBOX_DATA_DIR: join(home, 'data'), PILLARBOX_DNS__SERVERS: '127.0.0.1:9' }
  const box = boxProcess(env)
  await box.said('started')
  while (!box.output().includes('# 3.')) await new Promise((resolve) => box.child.stdout!.once('data', resolve))
  const pasted = box
    .output()
    .split('\n')
    .filter((line) => /^(?:export|ID=|printf|curl) ?/.test(line))
  expect(pasted).toHaveLength(4)

  const { stdout } = await run('bash', ['-c', pasted.join('\n')], { timeout: 30_000 })
  expect(stdout).toMatch(/ident_/)
  expect(stdout).toContain('sent')
  expect(stdout).toContain('"subject":"Hello Ada"')
  expect(stdout).toContain('"codes":["493817"]')

  const key = /KEY='(pbx_[0-9A-Za-z]{49})'/.exec(box.output())![1]!
  expect(box.output().split(key)).toHaveLength(2)
  expect(await box.end('SIGINT')).toBe(0)
  for (const file of ['data/pillarbox.db', 'data/state.json', 'data-keys/master.key']) {
    expect((statSync(join(home, file)).mode & 0o777).toString(8)).toBe('600')
  }

  const again = boxProcess(env)
  await again.said('started')
  expect(again.output()).not.toContain('pbx_')
  await again.end('SIGTERM')
})
