import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { folder } from '../../support/folder.ts'
import { freePort } from '../../support/free-port.ts'
import { boxProcess, testBox } from '../../support/process.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { emptyDatabase, serverOfFile } from './server.ts'

const postgres = serverOfFile()

const away = 'the database cannot be used yet: waiting'

test('a box that is started before its database, as after a power cut, waits for it; a new box says at once what is wrong', async () => {
  const at = postgres()
  await emptyDatabase(at, 'later')
  const server = await cuttingProxy(at.port)
  onTestFinished(() => server.close())
  const env = {
    ...testBox,
    PILLARBOX_DATA_DIR: join(folder(), 'data'),
    PILLARBOX_DATABASE__URL: at.url('later').replace(`:${at.port}/`, `:${server.port}/`),
  }
  server.turnTo(await freePort())
  const early = boxProcess(env)
  // not 78, with which systemd starts nothing again
  expect(await early.ended).toBe(1)
  expect(early.errors()).toMatch(/^The database later of 127\.0\.0\.1:\d+ cannot be used: .+\.\n$/)

  server.turnTo(at.port)
  const first = boxProcess(env)
  await first.said('started')
  expect(await first.end('SIGTERM')).toBe(0)

  server.turnTo(await freePort())
  const second = boxProcess(env)
  const waiting = await second.said(away)
  expect(waiting).toMatchObject({ level: 'warn', why: expect.stringContaining('cannot be used: ') })
  server.turnTo(at.port)
  await second.said('started')
  expect(second.output().split(away)).toHaveLength(2)
  expect(await second.end('SIGTERM')).toBe(0)
})

test('a box that waits for its database ends when it is told to', async () => {
  const at = postgres()
  await emptyDatabase(at, 'never')
  const server = await cuttingProxy(at.port)
  onTestFinished(() => server.close())
  const env = {
    ...testBox,
    PILLARBOX_DATA_DIR: join(folder(), 'data'),
    PILLARBOX_DATABASE__URL: at.url('never').replace(`:${at.port}/`, `:${server.port}/`),
  }
  const first = boxProcess(env)
  await first.said('started')
  await first.end('SIGTERM')
  server.turnTo(await freePort())
  const second = boxProcess(env)
  await second.said(away)
  expect(await second.end('SIGTERM')).toBe('SIGTERM')
})
