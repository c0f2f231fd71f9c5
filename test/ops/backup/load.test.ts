import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { letter } from '../../contract/estate.ts'
import { inhabit } from '../../contract/inhabited.ts'
import { appliance, deliver, message } from '../../support/appliance.ts'
import { passphraseFile, pillarbox, started } from './command.ts'
import { readBack } from './read-back.ts'

test('a backup of a box that stands still is read back elsewhere, everything equal', async () => {
  const world = await inhabit({ PILLARBOX_OUTBOUND__MODE: 'none' })
  afterAll(() => world.close())
  const { box } = world
  // first: a domain has keys from the moment it is looked at
  const keys = [box.key, world.foreign.key]
  const before = await Promise.all(keys.map((key) => readBack(box, key)))
  expect(Object.keys(before[0]!).length).toBeGreaterThan(30)
  const other = join(box.directory, 'elsewhere')
  mkdirSync(other)
  const file = join(other, 'box.tar')
  const passphrase = ['--passphrase-file', passphraseFile(box.directory)]
  const made = await pillarbox(box, 'backup', file, ...passphrase, '--json')
  expect([made.status, made.errors]).toEqual([0, ''])
  const rows = world.database.prepare('SELECT count(*) AS identities FROM identities').get()
  expect(JSON.parse(made.output)).toMatchObject({ keys: true, warnings: [], rows: { ...rows } })
  expect(await pillarbox(box, 'verify', file, ...passphrase)).toMatchObject({ status: 0, errors: '' })
  expect(await pillarbox(box, 'restore', file, '--data', join(other, 'data'), ...passphrase)).toMatchObject({
    status: 0,
    errors: '',
  })
  expect(readdirSync(other).toSorted()).toEqual(['box.tar', 'data', 'data-keys'])
  for (const name of ['data', 'data-keys', 'data/pillarbox.db', 'data/state.json', 'data-keys/master.key'])
    expect([name, statSync(join(other, name)).mode & 0o077]).toEqual([name, 0])

  const restored = await started(join(other, 'data'), box.env)
  const after = await Promise.all(keys.map((key) => readBack(restored, key)))
  expect(after).toEqual(before)
  // what is sealed opens, and what was never readable is there octet for octet
  const identity = `/v1/identities/${world.own.objects['identities/:id']}`
  const { body: code } = await restored.call('GET', `${identity}/totp/${world.own.objects[':totp_id']}/code`)
  expect(code.code).toMatch(/^\d{6}$/)
  const card = `/v1/cards/${world.own.objects['cards/:id']}/reveal`
  const { body: revealed } = await restored.call('POST', card, {})
  expect(revealed.encrypted_data).toBe((await box.call('POST', card, {})).body.encrypted_data)
  // and it goes on from there
  const { body: ada } = await restored.call('GET', identity)
  expect(await deliver(restored.smtp, { to: ada.email, raw: letter('Again') })).toMatch(/^250/)
}, 180_000)

test('taken while mail and calls come in, it is of one moment, and has all that was acknowledged before it', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const at = `/v1/identities/${ada.id}`
  const writers = ['m0', 'm1', 'm2', 'c0', 'c1']
  const done = new Map(writers.map((name) => [name, 0]))
  const state = { going: true }
  const mail = async (name: string, count: number): Promise<boolean> => {
    const raw = message({ Subject: `${name} ${count}`, 'Message-ID': `<${name}.${count}@sender.test>` }, 'word '.repeat(400))
    return (await deliver(box.smtp, { to: ada.email, raw })).startsWith('250')
  }
  const call = async (name: string, count: number): Promise<boolean> =>
    (await box.call('POST', '/v1/suppressions', { email: `${name}.${count}@elsewhere.test` })).status === 201
  const write = async (name: string): Promise<void> => {
    for (let count = 0; state.going; count += 1) {
      expect(await (name.startsWith('m') ? mail : call)(name, count)).toBe(true)
      done.set(name, count + 1)
    }
  }
  const writing = Promise.all(writers.map(write))
  while ([...done.values()].some((count) => count < 10)) await new Promise((resolve) => setTimeout(resolve, 20))
  const acknowledged = new Map(done)
  const file = join(box.directory, 'under-load.tar')
  const made = await pillarbox(box, 'backup', file)
  expect(made.status).toBe(0)
  // without a passphrase the keys stay where they are, and it says so
  expect(made.errors).toMatch(/^Warning: The keys were left out/)
  const meanwhile = new Map(done)
  state.going = false
  await writing

  const key = readFileSync(join(box.directory, 'data-keys', 'master.key'), 'utf8')
  const verified = await pillarbox(box, 'verify', file, '--master-key', join(box.directory, 'data-keys', 'master.key'))
  expect([verified.errors, verified.status]).toEqual(['', 0])
  const data = join(box.directory, 'restored')
  expect(
    await pillarbox(box, 'restore', file, '--data', data, '--master-key', join(box.directory, 'data-keys', 'master.key')),
  ).toMatchObject({
    status: 0,
  })
  expect(readFileSync(join(box.directory, 'restored-keys', 'master.key'), 'utf8')).toBe(key)
  const restored = await started(data, box.env)
  const [then, now] = [await readBack(restored), await readBack(box)]
  const there = namesIn(then, at)
  for (const [name, least] of acknowledged) {
    const numbers = there.get(name) ?? []
    // one moment: nothing is missing before the last that is there
    expect([name, numbers]).toEqual([name, Array.from({ length: numbers.length }, (_, index) => index)])
    expect(numbers.length).toBeGreaterThanOrEqual(least)
    expect(numbers.length).toBeLessThanOrEqual(meanwhile.get(name)! + 1)
  }
  for (const [path, body] of Object.entries(then))
    if (/\/emails\/email_\w+/.test(path)) expect([path, now[path]]).toEqual([path, body])
  const { body: identity } = await restored.call('GET', at)
  expect(identity.email).toBe(ada.email)
}, 180_000)

/** The numbers that each writer's things have, in order. */
function namesIn(answers: Record<string, unknown>, at: string): Map<string, number[]> {
  const rows = Object.entries(answers)
    .filter(([path]) => path.startsWith('/v1/suppressions?') || path.startsWith(`${at}/emails?`))
    .flatMap(([, body]) => (body as { data: { subject?: string; email?: string }[] }).data)
  const named = rows.map(({ subject, email }) => /^(\w\d)[ .](\d+)/.exec(subject ?? email!)!)
  const sorted = named.map(([, name, count]) => [name!, Number(count)] as const).toSorted((one, other) => one[1] - other[1])
  return new Map([...Map.groupBy(sorted, ([name]) => name)].map(([name, all]) => [name, all.map(([, count]) => count)]))
}
