import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { folder } from '../../support/folder.ts'
import { freePort } from '../../support/free-port.ts'
import { boxProcess, testBox } from '../../support/process.ts'
import { type CuttingProxy, cuttingProxy } from './cutting-proxy.ts'
import { emptyDatabase, serverOfFile } from './server.ts'

const postgres = serverOfFile()

/** A database, with what a box has to be told of it, behind a proxy that can lead elsewhere. */
async function behindProxy(name: string): Promise<{ server: CuttingProxy; port: number; env: Record<string, string> }> {
  const at = postgres()
  await emptyDatabase(at, name)
  const server = await cuttingProxy(at.port)
  onTestFinished(() => server.close())
  const url = at.url(name).replace(`:${at.port}/`, `:${server.port}/`)
  return { server, port: at.port, env: { ...testBox, PILLARBOX_DATA_DIR: join(folder(), 'data'), PILLARBOX_DATABASE__URL: url } }
}

const away = 'the database cannot be used yet: waiting'

test('a box that is started before its database, as after a power cut, waits for it; a new box says at once what is wrong', async () => {
  const { server, port, env } = await behindProxy('later')
  server.turnTo(await freePort())
  const early = boxProcess(env)
  // not 78, with which systemd starts nothing again
  expect(await early.ended).toBe(1)
  expect(early.errors()).toMatch(/^The database later of 127\.0\.0\.1:\d+ cannot be used: .+\.\n$/)

  server.turnTo(port)
  const first = boxProcess(env)
  await first.said('started')
  expect(await first.end('SIGTERM')).toBe(0)

  server.turnTo(await freePort())
  const second = boxProcess(env)
  const waiting = await second.said(away)
  expect(waiting).toMatchObject({ level: 'warn', why: expect.stringContaining('cannot be used: ') })
  server.turnTo(port)
  await second.said('started')
  expect(second.output().split(away)).toHaveLength(2)
  expect(await second.end('SIGTERM')).toBe(0)
})

test('a box that waits for its database ends when it is told to', async () => {
  const { server, env } = await behindProxy('never')
  const first = boxProcess(env)
  await first.said('started')
  await first.end('SIGTERM')
  server.turnTo(await freePort())
  const second = boxProcess(env)
  await second.said(away)
  expect(await second.end('SIGTERM')).toBe('SIGTERM')
})
