import fs, { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { makeKey } from '../../src/core/seal/seal.ts'

test('a key is whole where the disk takes a part of a write', () => {
  const { writeSync } = fs
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-key-'))
  onTestFinished(() => {
    rmSync(directory, { recursive: true })
    fs.writeSync = writeSync
    syncBuiltinESMExports()
  })
  fs.writeSync = ((handle: number, text: string) => writeSync(handle, text.slice(0, 10))) as typeof writeSync
  syncBuiltinESMExports()
  const file = join(directory, 'master.key')
  makeKey(file)
  expect(Buffer.from(readFileSync(file, 'utf8').trim(), 'base64')).toHaveLength(32)
})
