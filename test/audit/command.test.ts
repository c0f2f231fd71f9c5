import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type Appliance, appliance } from '../support/appliance.ts'
import { pillarbox } from '../ops/backup/command.ts'
import { tamper } from './rows.ts'

/** Waits for the rows of the start, and adds some. */
async function used(): Promise<Appliance> {
  const box = await appliance()
  await box.restart()
  await box.call('POST', '/v1/api-keys', { label: 'reader', scopes: ['messages:read'] })
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  const started = (): number => count(box, `action = 'box.started'`)
  for (let tries = 0; tries < 80 && started() < 2; tries += 1) await sleep(50)
  return box
}

const file = (box: Appliance): string => join(box.directory, 'data', 'pillarbox.db')

test('pillarbox audit lists rows, those of commands too', async () => {
  const box = await used()
  await pillarbox(box, 'key', 'create', '--label', 'made on the machine')
  const said = await pillarbox(box, 'audit', '--action', 'key.*', '--json')
  expect([said.status, JSON.parse(said.output)]).toMatchObject([
    0,
    [
      { action: 'key.created', actor: 'operator', client: 'socket', address: null },
      { action: 'key.created', address: '127.0.0.1' },
    ],
  ])
  const { output } = await pillarbox(box, 'audit', 'list', '--since', '1h', '--limit', '20')
  expect(output).toMatch(/^ROW +AT +ACTOR +CLIENT +ADDRESS +ACTION +TARGET +DETAIL\n/)
  expect(output).toMatch(/identity\.created +ident_/)
  expect((await pillarbox(box, 'audit', '--actor', 'key_00000000000000000000000000')).output).toBe('Nothing was found.\n')
  expect((await pillarbox(box, 'audit', '--all', '--action', 'box.started', '--json')).output).toContain('"account_id"')
})

test('pillarbox audit verify says that nothing was changed, of a box that runs and of one that does not', async () => {
  const box = await used()
  const running = await pillarbox(box, 'audit', 'verify')
  expect([running.status, running.output]).toEqual([
    0,
    expect.stringMatching(/^The audit log is unchanged: \d rows, 1 to \d\. Its head is [0-9a-f]{64}\.\n$/),
  ])
  await box.app.stop()
  expect((await pillarbox(box, 'audit', 'verify', '--json')).status).toBe(0)
})

test('pillarbox audit verify names the row that was changed and what is missing, and compares with a backup', async () => {
  const box = await used()
  const backup = join(box.directory, 'backup.tar')
  expect((await pillarbox(box, 'backup', backup)).status).toBe(0)
  expect((await pillarbox(box, 'audit', 'verify', '--backup', backup)).status).toBe(0)
  await box.call('POST', '/v1/identities', { name: 'Bob' })
  await box.app.stop()
  tamper(file(box), (database) => database.exec(`UPDATE audit SET actor = 'key_2' WHERE action = 'key.created'`))
  const { seq } = rowOf(box, `action = 'key.created'`)
  const changed = await pillarbox(box, 'audit', 'verify')
  expect([changed.status, changed.output]).toEqual([
    1,
    expect.stringContaining(`\nrow ${seq} was changed: its hash does not match\n`),
  ])
  tamper(file(box), (database) => database.exec(`DELETE FROM audit WHERE seq = ${seq}`))
  expect((await pillarbox(box, 'audit', 'verify')).output).toContain(`\nrow ${seq} is missing\n`)
  // a log that was begun anew is a valid chain, but not the one of the backup
  tamper(file(box), (database) =>
    database.exec(
      'DELETE FROM audit; UPDATE audit_chain SET anchor_seq = 0, anchor_hash = zeroblob(32), head_seq = 0, head_hash = zeroblob(32)',
    ),
  )
  expect((await pillarbox(box, 'audit', 'verify')).status).toBe(0)
  const compared = await pillarbox(box, 'audit', 'verify', '--backup', backup)
  expect([compared.status, compared.output]).toEqual([1, expect.stringContaining('was in the backup, and is missing')])
})

test('a backup has the head of the audit log, and verifying it finds a row that was changed before', async () => {
  const box = await used()
  const backup = join(box.directory, 'backup.tar')
  await pillarbox(box, 'backup', backup)
  const whole = await pillarbox(box, 'verify', backup)
  expect([whole.status, whole.output]).toEqual([
    0,
    expect.stringMatching(/^The audit log is unchanged: 4 rows, the last is 4 \([0-9a-f]{64}\)\.$/m),
  ])
  await box.app.stop()
  tamper(file(box), (database) => database.exec(`UPDATE audit SET address = '192.0.2.1' WHERE action = 'key.created'`))
  const later = join(box.directory, 'later.tar')
  await pillarbox(box, 'backup', later)
  const wrong = await pillarbox(box, 'verify', later)
  const { seq: row } = rowOf(box, `action = 'key.created'`)
  expect([wrong.status, wrong.errors]).toEqual([
    1,
    expect.stringContaining(`row ${row} of its audit log was changed: its hash does not match`),
  ])
})

function count(box: Appliance, condition: string): number {
  using database = openStore(file(box), { readOnly: true })
  return (database.prepare(`SELECT count(*) AS n FROM audit WHERE ${condition}`).get() as { n: number }).n
}

function rowOf(box: Appliance, condition: string): { seq: number } {
  using database = openStore(file(box), { readOnly: true })
  return database.prepare(`SELECT seq FROM audit WHERE ${condition} ORDER BY seq LIMIT 1`).get() as { seq: number }
}
