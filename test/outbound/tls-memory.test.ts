import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { TlsMemory } from '../../src/outbound/transport/tls-memory.ts'
import { sql } from '../../src/store/database.ts'
import { folder } from '../support/folder.ts'
import { HeldClock } from '../support/held-clock.ts'
import { opened, quiet } from '../store/opened.ts'

const day = 24 * 3600_000

test('of servers that had TLS a bounded number is remembered, and none for longer than a month', async () => {
  const clock = new HeldClock()
  const { file, database } = await opened(folder())
  onTestFinished(() => database.close())
  const written = new DatabaseSync(file)
  const insert = written.prepare('INSERT INTO tls_servers (hostname, checked_at) VALUES (?, ?)')
  const seen = (age: number): string => new Date(clock.now() - age).toISOString()
  written.exec('BEGIN')
  for (let index = 0; index < 100_500; index += 1) insert.run(`mx${index}.sender.test`, seen(day + (100_500 - index) * 1000))
  for (let index = 0; index < 100; index += 1) insert.run(`gone${index}.sender.test`, seen(31 * day))
  written.exec('COMMIT')
  written.close()
  const memory = new TlsMemory({ database, clock, log: quiet })
  const count = async (): Promise<unknown> => (await database.get(sql`SELECT count(*) AS servers FROM tls_servers`))!
  await memory.remember('new.sender.test')
  expect(await count()).toEqual({ servers: 100_501 })
  await Promise.all(Array.from({ length: 1000 }, (_, index) => memory.remember(`new${index}.sender.test`)))
  expect(await count()).toMatchObject({ servers: 100_000 + 1 })
  // the latest are known, and wait when they have no TLS any more; those longest not seen are as if never met
  expect(await memory.allowsClear('new999.sender.test')).toBe(false)
  expect(await memory.allowsClear('mx100499.sender.test')).toBe(false)
  expect(await memory.allowsClear('mx0.sender.test')).toBe(true)
})

test('of boxes with one database, valid TLS at one ends the wait that another has begun', async () => {
  const clock = new HeldClock()
  const { database } = await opened(folder())
  onTestFinished(() => database.close())
  const [one, other] = [new TlsMemory({ database, clock, log: quiet }), new TlsMemory({ database, clock, log: quiet })]
  await one.remember('mx.far.test')
  clock.advance(600_000)
  expect(await other.allowsClear('mx.far.test')).toBe(false)
  clock.advance(600_000)
  await one.remember('mx.far.test')
  clock.advance(day)
  // a wait of its own
  expect(await other.allowsClear('mx.far.test')).toBe(false)
  clock.advance(day)
  expect(await other.allowsClear('mx.far.test')).toBe(true)
  await one.remember('mx.far.test')
  expect(await other.allowsClear('mx.far.test')).toBe(false)
})
