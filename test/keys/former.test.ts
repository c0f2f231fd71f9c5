import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { child } from '../support/child.ts'
import { boxProcess } from '../support/process.ts'
import { databaseOf, fill, keysOf, sealedValues } from './sealed.ts'

test('who has the former key finds nothing in the file that it opens, of what is there and of what was', async () => {
  const { box, ever, made } = await used()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Findable' }, 'words of a letter\n') })
  await box.app.stop()
  const rotating = boxProcess(box.env, ['key', 'rotate-master'], box.directory)
  expect([await rotating.ended, rotating.errors()]).toEqual([0, ''])
  expect(ever.length).toBeGreaterThan(300)
  expect(left(box, ever)).toBe(0)
  await box.restart()
  const { body: mail } = await box.call('GET', `/v1/identities/${ada.id}/emails/search?query=letter`)
  expect(mail.data.map(({ subject }) => subject as string)).toEqual(['Findable'])
  expect((await box.call('GET', made[7]!)).body).toMatchObject({ headers: { 'X-Padding': 'x'.repeat(259) } })
})

test.each(['sealed', 'former kept', 'in use'])(
  'nor after a rotation that was killed once it was %s: the next start rewrites the file',
  async (step) => {
    const { box, ever, made } = await used()
    await box.app.stop()
    expect(await child('keys/children/rotate.ts', [box.directory, JSON.stringify(box.env), step]).ended).toMatchObject({
      code: null,
    })
    // what a kill during the rewrite leaves
    if (step === 'in use') writeFileSync(`${databaseOf(box)}.rewritten`, 'half of it')
    await box.restart()
    expect(box.logged.join('')).toContain('nothing in it opens with the former master key')
    const done = box.logged.length
    await box.restart()
    expect(box.logged.slice(done).join('')).not.toContain('rewr')
    expect((await box.call('GET', made[7]!)).body).toMatchObject({ headers: { 'X-Padding': 'x'.repeat(259) } })
    await box.app.stop()
    expect(left(box, ever)).toBe(0)
    expect(readdirSync(box.env['PILLARBOX_DATA_DIR']!).filter((name) => name.includes('rewritten'))).toEqual([])
  },
)

test('where the file cannot be written anew, the new key is in use all the same, and the next start makes up for it', async () => {
  const box = await appliance()
  const kept = await fill(box)
  await box.app.stop()
  const data = box.env['PILLARBOX_DATA_DIR']!
  const rotate = async (): Promise<unknown[]> => {
    const rotating = boxProcess(box.env, ['key', 'rotate-master'], box.directory)
    return [await rotating.ended, rotating.errors()]
  }
  // who reads the database keeps its log open, which belongs to the file as it is
  const reader = new DatabaseSync(databaseOf(box), { readOnly: true })
  reader.prepare('SELECT count(*) FROM box').get()
  const before = readFileSync(join(keysOf(box), 'master.key'), 'utf8')
  expect(await rotate()).toEqual([
    78,
    expect.stringMatching(/^The new master key is in use, but .*-wal is in use.* the next start rewrites it\.\n$/),
  ])
  await box.restart()
  expect(box.logged.join('')).toContain('database file not rewritten')
  expect((await box.call('POST', '/v1/doctor')).body['lines']).toContainEqual(
    expect.objectContaining({ name: 'store', subject: 'former key', status: 'warn' }),
  )
  await box.app.stop()
  reader.close()
  expect(readFileSync(join(keysOf(box), 'master.key'), 'utf8')).not.toBe(before)
  expect(readdirSync(data)).not.toContain('pillarbox.db.rewritten')
  await box.restart()
  await kept.expectAll()
  await box.app.stop()

  writeFileSync(`${databaseOf(box)}.rewritten`, 'of one that was cut off')
  await box.restart()
  expect(readdirSync(data)).not.toContain('pillarbox.db.rewritten')
  await box.app.stop()
  expect(await rotate()).toEqual([0, ''])
  expect(statSync(databaseOf(box)).mode & 0o777).toBe(0o600)
  await box.restart()
  await kept.expectAll()
})

/** A box with 120 webhooks, most of them deleted again, their paths, and all sealed values that it ever had. */
async function used(): Promise<{ box: Appliance; ever: Buffer[]; made: string[] }> {
  const box = await appliance()
  const made: string[] = []
  for (let turn = 0; turn < 120; turn += 1) {
    const headers = { 'X-Padding': 'x'.repeat((turn * 37) % 900) }
    const input = { url: 'https://receiver.test/', events: ['email.received'], headers }
    const { body } = await box.call('POST', '/v1/webhooks', input, { headers: { 'Idempotency-Key': `hook ${turn}` } })
    made.push(`/v1/webhooks/${body.id}`)
  }
  const ever = sealedValues(box).map(({ kept }) => kept)
  for (const [turn, path] of made.entries()) if (turn % 7 !== 0) await box.call('DELETE', path)
  return { box, ever, made }
}

/** How many of these values are in the database file. */
function left(box: Appliance, ever: Buffer[]): number {
  const file = readFileSync(databaseOf(box))
  return ever.filter((octets) => file.includes(octets) || file.includes(octets.toString('base64'))).length
}
