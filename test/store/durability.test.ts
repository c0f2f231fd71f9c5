import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { child } from '../support/child.ts'
import { folder } from '../support/folder.ts'
import { peer } from '../support/peer.ts'

it('forces the log to disk between the write of a transaction and the word that it is kept', async () => {
  const strace = peer('strace')
  if (strace === undefined) return
  const directory = folder()
  const trace = join(directory, 'trace')
  const calls = 'trace=write,pwrite64,fsync,fdatasync'
  const traced = child('store/children/acknowledge.ts', [directory, '50'], [strace, '-f', '-y', '-e', calls, '-o', trace])
  expect(await traced.ended).toMatchObject({ code: 0 })

  const early: string[] = []
  let acknowledged = 0
  let written = 0
  let unforced = true
  const covering = new Map<string, boolean>()
  for (const line of readFileSync(trace, 'utf8').split('\n')) {
    const thread = line.slice(0, line.indexOf(' '))
    if (/pwrite64\(\d+<[^>]*-wal>/.test(line)) {
      written += 1
      unforced = true
      for (const other of covering.keys()) covering.set(other, false)
    } else if (/f(?:data)?sync\(\d+<[^>]*-wal>/.test(line)) {
      // counts when it returns, and does not cover what is written meanwhile
      if (line.endsWith('= 0')) unforced = false
      else covering.set(thread, true)
    } else if (/<\.\.\. f(?:data)?sync resumed>.*= 0$/.test(line)) {
      if (covering.get(thread) === true) unforced = false
      covering.delete(thread)
    } else if (line.includes('"ACK ')) {
      acknowledged += 1
      if (unforced) early.push(line)
      // the next one needs a sync of its own
      unforced = true
    }
  }
  expect(early).toEqual([])
  expect(acknowledged).toBe(50)
  expect(written).toBeGreaterThanOrEqual(50)
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
