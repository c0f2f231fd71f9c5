import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { child } from '../support/child.ts'
import { folder } from '../support/folder.ts'
import { peer } from '../support/peer.ts'

const calls = 'trace=write,pwrite64,fsync,fdatasync,unlink'

it('forces the log to disk between the write of a transaction and the word that it is kept', async () => {
  const strace = peer('strace')
  if (strace === undefined) return
  const directory = folder()
  const trace = join(directory, 'trace')
  const traced = child('store/children/acknowledge.ts', [directory, '50'], [strace, '-f', '-y', '-e', calls, '-o', trace])
  expect(await traced.ended).toEqual({ code: 0, errors: '' })

  const early: string[] = []
  let acknowledged = 0
  let written = 0
  const log = new Dirt('box.db-wal')
  for (const line of readFileSync(trace, 'utf8').split('\n')) {
    if (log.read(line) !== undefined) written += 1
    if (!line.includes('"ACK ')) continue
    acknowledged += 1
    if (log.dirty || written < acknowledged) early.push(line)
  }
  expect(early).toEqual([])
  expect(acknowledged).toBe(50)
})

it('starts the log again only over what is on disk in the database file, and its new header goes there first', async () => {
  const strace = peer('strace')
  if (strace === undefined) return
  const directory = folder()
  const trace = join(directory, 'trace')
  const traced = child(
    'store/children/acknowledge.ts',
    [directory, '4000', '8', '50'],
    [strace, '-f', '-y', '-e', calls, '-o', trace],
  )
  expect(await traced.ended).toEqual({ code: 0, errors: '' })

  const wrong: string[] = []
  let beginnings = 0
  let headerDirty = false
  const log = new Dirt('box.db-wal')
  const data = new Dirt('box.db')
  for (const line of readFileSync(trace, 'utf8').split('\n')) {
    data.read(line)
    const offset = log.read(line)
    if (!log.dirty) headerDirty = false
    if (offset === 0) {
      beginnings += 1
      headerDirty = true
      if (data.dirty) wrong.push(line)
    } else if (offset !== undefined && headerDirty) {
      wrong.push(line)
    }
    // what is not in the database file by then is lost with the log
    if (line.includes('unlink(') && line.includes('box.db-wal"') && data.dirty) wrong.push(line)
  }
  expect(wrong).toEqual([])
  expect(beginnings).toBeGreaterThanOrEqual(4)
})

it('keeps every acknowledged row when the process is killed at any moment', async () => {
  const directory = folder()
  const acknowledged = new Set<number>()
  for (let round = 0; round < 20; round++) {
    const writer = child('store/children/acknowledge.ts', [directory, '1000000', '8'])
    await writer.until(1)
    await sleep(Math.random() * 60)
    await writer.kill()
    const lines = writer.lines()
    expect(lines.length).toBeGreaterThan(0)
    for (const line of lines) acknowledged.add(Number(line.slice(4)))
  }
  const database = new DatabaseSync(join(directory, 'box.db'))
  try {
    const ids = new Set((database.prepare('SELECT id FROM t').all() as { id: number }[]).map((row) => row.id))
    expect([...acknowledged].filter((id) => !ids.has(id))).toEqual([])
    expect(database.prepare('PRAGMA integrity_check').all()).toMatchObject([{ integrity_check: 'ok' }])
  } finally {
    database.close()
  }
})

/** Whether anything was written to a file since the beginning of the last sync that succeeded, read from the lines of a trace. */
class Dirt {
  dirty = false
  readonly #name: string
  /** By thread: whether nothing was written since its sync began. */
  readonly #syncing = new Map<string, boolean>()

  constructor(name: string) {
    this.#name = `/${name}>`
  }

  /** Answers the offset when the line is a write to the file. */
  read(line: string): number | undefined {
    const thread = line.slice(0, line.indexOf(' '))
    if (/<\.\.\. f(?:data)?sync resumed>/.test(line)) {
      if (this.#syncing.get(thread) === true && line.endsWith('= 0')) this.dirty = false
      this.#syncing.delete(thread)
    }
    if (!line.includes(this.#name)) return undefined
    if (/ f(?:data)?sync\(/.test(line)) {
      if (line.endsWith('= 0')) this.dirty = false
      else this.#syncing.set(thread, true)
      return undefined
    }
    const write = / pwrite64\(.*, \d+, (\d+)(?:\) +=| <unfinished)/.exec(line)
    if (!write) return undefined
    this.dirty = true
    for (const other of this.#syncing.keys()) this.#syncing.set(other, false)
    return Number(write[1])
  }
}
