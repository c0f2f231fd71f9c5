import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { App } from '../../../src/app.ts'
import { loadConfig } from '../../../src/config.ts'
import { createLog } from '../../../src/core/log.ts'
import { parsePostgresUrl } from '../../../src/config/database/postgres-url.ts'
import { knownPostgresVersion, preparePostgres } from '../../../src/store/postgres/prepare.ts'
import type { PostgresTarget } from '../../../src/store/postgres/target.ts'
import type { Appliance } from '../../support/appliance.ts'
import { folder } from '../../support/folder.ts'
import { severalBoxes } from './boxes.ts'
import { heartbeat } from './queue-of-box.ts'
import { serverOfFile } from './server.ts'

const postgres = serverOfFile()

const targetOf = (box: Appliance): PostgresTarget => parsePostgresUrl(box.env['PILLARBOX_DATABASE__URL']!)

/** The schema of a newer program: with one more table. */
function newer(): string {
  const directory = folder()
  cpSync(new URL('../../../src/store/postgres/migrations', import.meta.url), join(directory, 'migrations'), { recursive: true })
  const next = String(knownPostgresVersion() + 1).padStart(4, '0')
  writeFileSync(join(directory, `migrations/${next}_more.sql`), 'CREATE TABLE more (id bigint)')
  return `${directory}/`
}

const runSql = (box: Appliance, text: string): Promise<unknown[]> =>
  postgres().run(new URL(box.env['PILLARBOX_DATABASE__URL']!).pathname.slice(1), text)

test('a newer program migrates nothing while a box of several runs, also while that one has no connection; then an older one is refused', async () => {
  const [one, other] = await severalBoxes(postgres())
  const target = targetOf(one)
  const migrated = (): Promise<void> => preparePostgres(target, true, { folder: newer() })
  await expect(migrated()).rejects.toThrow(
    /Another Pillarbox has .+ open\. .+Stop all boxes on it, then start them with the new version/,
  )
  await other.app.stop()
  await expect(migrated()).rejects.toThrow(/Stop all boxes on it/)
  await one.app.stop()
  // one that has lost its connections for a moment
  const now = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
  await runSql(one, `INSERT INTO boxes (run_id, directory, seen_at) VALUES ('cut', NULL, ${now} - 20000)`)
  await expect(migrated()).rejects.toThrow(/Stop all boxes on it/)
  await runSql(one, `UPDATE boxes SET seen_at = ${now} - 31000`)
  await migrated()
  await expect(one.restart()).rejects.toThrow(/was written by a newer Pillarbox/)
})

test('a box whose database was migrated while it could not reach it stores nothing more', async () => {
  const [one] = await severalBoxes(postgres(), 1)
  await runSql(one, 'UPDATE schema_version SET version = version + 1')
  await runSql(
    one,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  )
  // the first calls may be told of the connections that have ended
  const refused = async (): Promise<string> => {
    const { status, body } = await one.call('POST', '/v1/identities', { name: 'Ada' })
    expect([status, body.error['code']]).toEqual([500, 'storage_unavailable'])
    return one.logged.join('\n')
  }
  await expect.poll(refused).toMatch(/was written by a newer Pillarbox/)
})

test('a box alone and boxes of several exclude each other', async () => {
  const [one, once] = await severalBoxes(postgres())
  await once.app.stop()
  const alone = async (): Promise<App> => {
    const config = await loadConfig({ env: once.env, cwd: folder() })
    return App.open(config, createLog('silent'))
  }
  await expect(alone()).rejects.toThrow(
    /Another Pillarbox has .+ open\. One box at a time can use a database, unless each has database\.several/,
  )
  await one.app.stop()
  const app = await alone()
  await expect(one.restart()).rejects.toThrow(/Another Pillarbox has .+ open\. It has not set database\.several/)
  await app.stop()
  await one.restart()
})

test('the master key is rotated while no other box runs, and none is opened meanwhile', async () => {
  const [one, other] = await severalBoxes(postgres())
  const rotating = async (work: (app: App) => Promise<unknown>): Promise<unknown> => {
    const config = await loadConfig({ env: one.env, cwd: folder() })
    const app = await App.openExclusively(config, createLog('silent'), undefined, { postgres: { shared: true, heartbeat } })
    try {
      return await work(app)
    } finally {
      await app.stop()
    }
  }
  await one.app.stop()
  await expect(rotating((app) => app.rotateMasterKey())).rejects.toThrow(/Stop all boxes on it, then run this command again/)
  expect((await other.call('POST', '/v1/identities', { name: 'Ada' })).status).toBe(201)
  await other.app.stop()
  await rotating(async (app) => {
    await expect(other.restart()).rejects.toThrow(/Another Pillarbox has .+ open\. It has not set database\.several, or/)
    await app.rotateMasterKey()
  })
  await one.restart()
  await other.restart()
  await expect(other.app.rotateMasterKey()).rejects.toThrow(/open the box exclusively/)
})
