import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { run } from '../../support/program.ts'
import { smallDisk } from '../../support/small-disk.ts'
import { bigBox } from './big-box.ts'
import { pillarbox } from './command.ts'

test('on a full disk nothing is left of a backup or a restore, and it is said what is needed', async () => {
  const small = smallDisk(12)
  if (small === undefined) return
  const box = await bigBox(16)
  const full = /could not be written: the disk is full\. Free space, or choose another directory; partial files were removed\.\n$/
  const cases: [string, RegExp][] = [
    [small, /has too little free space: at least \d+ bytes are required, \d+ are free\. Partial files were removed\.\n$/],
    // the copy of the database fits, and the archive does not
    [smallDisk(24)!, full],
  ]
  for (const [mounted, told] of cases) {
    const { status, errors } = await pillarbox(box, 'backup', join(mounted, 'box.tar'))
    expect([status, errors]).toEqual([1, expect.stringMatching(told)])
    expect(readdirSync(mounted)).toEqual([])
  }
  const file = join(box.directory, 'box.tar')
  const made = await pillarbox(box, 'backup', file)
  expect([made.status, made.errors]).toEqual([0, expect.any(String)])
  const key = join(box.directory, 'data-keys', 'master.key')
  const data = join(small, 'data')
  const refused = await pillarbox(box, 'restore', file, '--data', data, '--master-key', key)
  expect([refused.status, refused.errors]).toEqual([
    1,
    expect.stringMatching(/has too little free space: \d+ bytes are required, \d+ are free\. Partial files were removed\.\n$/),
  ])
  expect(readdirSync(small)).toEqual([])
  const verified = await pillarbox(box, 'verify', file, '--scratch', small)
  expect([verified.status, verified.errors]).toEqual([1, expect.stringMatching(/has too little free space/)])
  expect(readdirSync(small)).toEqual([])
  // a mounted disk that is empty is a place to restore to
  const roomy = smallDisk(64)!
  const restored = await pillarbox(box, 'restore', file, '--data', roomy, '--master-key', key)
  expect([restored.status, restored.errors]).toEqual([0, ''])
  expect(readdirSync(roomy).toSorted()).toEqual(['lock', 'lock.pid', 'pillarbox.db', 'state.json'])
}, 300_000)

test('where the system cuts a write off, nothing is left of a backup', async () => {
  const box = await bigBox(4)
  const target = join(box.directory, 'shelf')
  mkdirSync(target)
  const program = new URL('../../../src/main.ts', import.meta.url).pathname
  const limited = ['--fsize=1000000', process.execPath, program, 'backup', join(target, 'box.tar')]
  const { code, errors } = await run('prlimit', limited, { env: box.env, cwd: box.directory })
  expect(code).toBe(1)
  expect(errors).toMatch(/[Pp]artial files were removed/)
  expect(existsSync(join(target, 'box.tar'))).toBe(false)
  expect(readdirSync(target)).toEqual([])
}, 300_000)
