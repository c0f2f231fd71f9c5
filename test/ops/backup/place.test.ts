import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { RestoreTarget } from '../../../src/ops/backup/place.ts'
import { DirectoryLock } from '../../../src/store/lock.ts'
import { folder } from '../../support/folder.ts'
import { started } from './command.ts'

const owner = { uid: process.getuid!(), gid: process.getgid!() }

/** A place in which a box was restored as far as it goes without its name. */
function built(data: string): RestoreTarget {
  const place = new RestoreTarget(data, 'state.json')
  for (const name of ['pillarbox.db', 'state.json']) writeFileSync(join(place.draft, name), 'restored')
  return place
}

function begun(data: string): void {
  mkdirSync(data, { recursive: true })
  for (const name of ['pillarbox.db', 'state.json']) writeFileSync(join(data, name), 'living')
}

test.each([false, true])('a box that began to live there meanwhile is left as it is (a directory was there: %s)', (there) => {
  const data = join(folder(), 'data')
  if (there) mkdirSync(data)
  const place = built(data)
  begun(data)
  expect(() => place.adopt(owner)).toThrow(/data is not empty \(pillarbox.db, state.json\)/)
  place.abandon()
  expect(readdirSync(data).filter((name) => !name.startsWith('lock'))).toEqual(['pillarbox.db', 'state.json'])
  expect(readFileSync(join(data, 'state.json'), 'utf8')).toBe('living')
  expect(existsSync(place.draft)).toBe(false)
})

test('no box begins to live in a directory while another is restored into it, and both leave it as it should be', () => {
  const data = folder()
  const place = built(data)
  expect(() => new DirectoryLock(data)).toThrow(/in use by another Pillarbox process/)
  place.abandon()
  expect(readdirSync(data)).toEqual([])
  const lock = new DirectoryLock(data)
  expect(() => new RestoreTarget(data, 'state.json')).toThrow(/in use by another Pillarbox process/)
  lock.release()
  built(data).adopt(owner)
  new DirectoryLock(data).release()
  expect(readFileSync(join(data, 'state.json'), 'utf8')).toBe('restored')
})

test.each([false, true])('no empty box begins where a restore was cut short (a directory was there: %s)', async (there) => {
  const data = join(folder(), 'data')
  const draft = there ? join(data, '.restoring') : `${data}.part`
  mkdirSync(draft, { recursive: true })
  writeFileSync(join(draft, 'unfinished'), '')
  await expect(started(data)).rejects.toThrow(`${draft} belongs to a restore that is running or was interrupted`)
  expect(existsSync(join(data, 'state.json'))).toBe(false)
  // the certificate that tests lend to a box
  rmSync(join(data, 'tls'), { recursive: true, force: true })
  // the next one is not in its way
  built(data).adopt(owner)
  expect([existsSync(draft), existsSync(join(data, 'state.json'))]).toEqual([false, true])
})
