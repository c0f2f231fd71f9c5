import { createServer, connect } from 'node:net'
import { once } from 'node:events'
import { execFileSync } from 'node:child_process'
import pg from 'pg'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { parsePostgresUrl } from '../../../src/config/database/postgres-url.ts'
import { databaseServer } from '../../../src/ops/doctor/checks/database.ts'
import type { Line } from '../../../src/ops/doctor/model.ts'
import { createLog } from '../../../src/core/log.ts'
import { PostgresDatabase, type PostgresOptions } from '../../../src/store/postgres/database.ts'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import type { PostgresTarget } from '../../../src/store/postgres/target.ts'
import type { PostgresServer } from '../../support/postgres-server.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'

// what remedies change is not on the command line of the server
const postgres = serverOfFile({ fsync: undefined, max_connections: '60' })
let target: PostgresTarget
let count = 0

beforeEach(async () => {
  target = await emptyDatabase(postgres(), `doctor_${(count += 1)}`)
  await preparePostgres(target, false)
})

async function lookAt(
  at = target,
  options: PostgresOptions = { shared: true },
): Promise<(subject: string) => Promise<Line | undefined>> {
  const { database } = await opened(at, options)
  return async (subject) => (await databaseServer({ database }).run(true)).find((line) => line.subject === subject)
}

/** Runs the commands of a remedy, which are the lines that begin with a program, as the administrator of the server. */
function apply(fix: string | null): void {
  const commands = fix!.split('\n').filter((line) => line.startsWith('psql '))
  expect(commands).not.toEqual([])
  const env = { PATH: process.env['PATH']!, PGHOST: '127.0.0.1', PGPORT: String(postgres().port) }
  for (const command of commands) execFileSync('sh', ['-c', command], { env })
}

async function standby(name: string): Promise<PostgresServer> {
  const server = await postgres().standby(name)
  onTestFinished(() => server.close())
  return server
}

const set = async (...statements: string[]): Promise<void> => {
  await postgres().run('postgres', ...statements, 'SELECT pg_reload_conf()')
}

test(
  'asynchronous replication is told, and none; a synchronous standby is well, until it is gone',
  { timeout: 120_000 },
  async () => {
    const look = await lookAt()
    onTestFinished(() => set('ALTER SYSTEM RESET synchronous_standby_names'))
    expect(await look('standby')).toMatchObject({
      status: 'warn',
      message: expect.stringMatching(/^None is synchronous .* lost with the server's disk/),
    })
    const second = await standby('second')
    await expect.poll(async () => (await look('standby'))?.message).toMatch(/^second is asynchronous/)
    const asynchronous = await look('standby')
    expect(asynchronous!.status).toBe('warn')
    apply(asynchronous!.fix)
    await expect.poll(() => look('standby')).toMatchObject({ status: 'pass', message: 'Synchronous: second.' })
    // a COMMIT that does not wait for it
    await set(`ALTER SYSTEM SET synchronous_commit = 'local'`)
    const local = await lookAt()
    await expect
      .poll(() => local('standby'))
      .toMatchObject({ status: 'warn', message: expect.stringMatching(/synchronous_commit = local/) })
    apply((await local('standby'))!.fix)
    await expect.poll(async () => (await local('standby'))?.status).toBe('pass')
    await second.close()
    await expect
      .poll(() => local('standby'))
      .toMatchObject({
        status: 'fail',
        message: expect.stringMatching(/^None that synchronous_standby_names names .* waits for one/),
      })
    await standby('third')
    await expect.poll(() => local('standby')).toMatchObject({ status: 'pass', message: 'Synchronous: third.' })
  },
)

test('a user who may not see the standbys is told what each COMMIT waits for', { timeout: 120_000 }, async () => {
  await postgres().run('postgres', 'CREATE ROLE plain LOGIN')
  await postgres().run(target.database, 'GRANT ALL ON ALL TABLES IN SCHEMA public TO plain; GRANT ALL ON SCHEMA public TO plain')
  await standby('second')
  await set("ALTER SYSTEM SET synchronous_standby_names = '*'")
  onTestFinished(() => set('ALTER SYSTEM RESET synchronous_standby_names'))
  const look = await lookAt({ ...target, user: 'plain' })
  await expect.poll(() => look('standby')).toMatchObject({ status: 'pass', message: expect.stringMatching(/pg_monitor/) })
  await set('ALTER SYSTEM RESET synchronous_standby_names')
  await expect
    .poll(() => look('standby'))
    .toMatchObject({ status: 'warn', message: expect.stringMatching(/^None is synchronous/) })
})

test('one box without a standby is as safe as with a file', async () => {
  const look = await lookAt(target, {})
  expect(await look('standby')).toMatchObject({ status: 'pass' })
})

test('a server that confirms before it has stored is no good, and the remedy mends it', async () => {
  onTestFinished(() => set('ALTER SYSTEM RESET fsync', 'ALTER SYSTEM RESET synchronous_commit'))
  const look = await lookAt()
  expect(await look('durability')).toMatchObject({ status: 'pass' })
  await set('ALTER SYSTEM SET fsync = off')
  await expect.poll(() => look('durability')).toMatchObject({ status: 'fail', message: expect.stringMatching(/fsync = off/) })
  apply((await look('durability'))!.fix)
  await expect.poll(() => look('durability')).toMatchObject({ status: 'pass' })
  await set('ALTER SYSTEM SET synchronous_commit = off')
  await expect
    .poll(() => look('durability'))
    .toMatchObject({ status: 'fail', message: expect.stringMatching(/synchronous_commit = off/) })
  apply((await look('durability'))!.fix)
  await expect.poll(() => look('durability')).toMatchObject({ status: 'pass' })
})

test('connections that are nearly used up are told, by what limits them', async () => {
  const look = await lookAt()
  expect(await look('connections')).toMatchObject({
    status: 'pass',
    message: expect.stringMatching(/^\d+ of 60 are in use \(max_connections\)/),
  })
  const clients = Array.from({ length: 45 }, () => new pg.Client(postgres().url(target.database)))
  onTestFinished(async () => void (await Promise.all(clients.map((client) => client.end()))))
  await Promise.all(clients.map((client) => client.connect()))
  await expect
    .poll(() => look('connections'))
    .toMatchObject({ status: 'warn', message: expect.stringMatching(/of 60 are in use \(max_connections\)/) })
  await Promise.all(clients.splice(0).map((client) => client.end()))
  await expect.poll(() => look('connections')).toMatchObject({ status: 'pass' })
  await postgres().run('postgres', `ALTER DATABASE ${target.database} CONNECTION LIMIT 9`)
  expect(await look('connections')).toMatchObject({
    status: 'warn',
    message: expect.stringMatching(/of 9 are in use \(the CONNECTION LIMIT of the database\)/),
  })
})

test('the isolation that transactions really have is told; several boxes do not start without READ COMMITTED', async () => {
  const look = await lookAt()
  expect(await look('isolation')).toMatchObject({ status: 'pass' })
  const port = await changing(postgres().port, String.raw`read\ committed`, 'serializable')
  await expect(PostgresDatabase.open({ ...target, port }, createLog('silent'), { shared: true })).rejects.toThrow(
    /^Several boxes cannot use .*READ COMMITTED/,
  )
  const alone = await emptyDatabase(postgres(), 'doctor_alone')
  await preparePostgres(alone, false)
  const one = await lookAt({ ...alone, port }, {})
  expect(await one('isolation')).toMatchObject({ status: 'warn', message: expect.stringMatching(/READ COMMITTED/) })
  const weak = await emptyDatabase(postgres(), 'doctor_weak')
  await preparePostgres(weak, false)
  const other = await lookAt(
    { ...weak, port: await changing(postgres().port, 'isolation=serializable', String.raw`isolation=read\ committed`) },
    {},
  )
  expect(await other('isolation')).toMatchObject({
    status: 'fail',
    message: expect.stringMatching(/READ COMMITTED, not SERIALIZABLE/),
  })
})

test('a database that became unusable is told', async () => {
  const look = await lookAt()
  expect(await look('server')).toMatchObject({ status: 'pass', message: expect.stringMatching(/^PostgreSQL \d+/) })
  await postgres().run('postgres', 'CREATE ROLE poor LOGIN')
  await postgres().run(target.database, 'GRANT ALL ON ALL TABLES IN SCHEMA public TO poor; GRANT ALL ON SCHEMA public TO poor')
  const poor = await lookAt(parsePostgresUrl(postgres().url(target.database).replace('postgres@', 'poor@')))
  expect(await poor('server')).toMatchObject({ status: 'pass' })
  await postgres().run(target.database, 'REVOKE CREATE ON SCHEMA public FROM poor, PUBLIC')
  expect(await poor('server')).toMatchObject({
    status: 'fail',
    message: expect.stringMatching(/does not let its user create tables/),
  })
})

/** A way to a server that replaces an option of new sessions, as poolers and compatible servers may; no longer than the space for it. */
async function changing(port: number, option: string, by: string): Promise<number> {
  const way = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
    client.once('data', (first) => {
      const length = first.readInt32BE(0)
      const changed = Buffer.from(first.toString('latin1', 4, length).replace(option, by), 'latin1')
      const size = Buffer.alloc(4)
      size.writeInt32BE(changed.length + 4)
      upstream.write(Buffer.concat([size, changed, first.subarray(length)]))
      client.pipe(upstream)
    })
    upstream.pipe(client)
  })
  way.listen(0, '127.0.0.1')
  await once(way, 'listening')
  onTestFinished(() => void way.close())
  return (way.address() as { port: number }).port
}
