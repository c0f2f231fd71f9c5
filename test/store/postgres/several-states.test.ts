import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Appliance, appliance } from '../../support/appliance.ts'
import { attempt } from '../../support/people.ts'
import { folder } from '../../support/folder.ts'
import { severalBoxes } from './boxes.ts'
import { heartbeat } from './queue-of-box.ts'
import { serverOfFile } from './server.ts'

const postgres = serverOfFile()
const password = 'a long and quiet evening'

interface Document {
  box_id: string
  accounts: { id: string; name: string; limits?: Record<string, number | null> }[]
}

const fileOf = (box: Appliance): string => join(box.env['PILLARBOX_DATA_DIR']!, 'state.json')
const documentOf = (box: Appliance): Document => JSON.parse(readFileSync(fileOf(box), 'utf8')) as Document

function edit(box: Appliance, change: (document: Document) => void): void {
  const document = documentOf(box)
  change(document)
  writeFileSync(fileOf(box), JSON.stringify(document))
}

/** Opens another box on the database of one. */
function another(box: Appliance, env: Record<string, string>): Promise<Appliance> {
  return appliance({ ...box.env, PILLARBOX_DATA_DIR: join(folder(), 'data'), ...env }, undefined, {
    postgres: { shared: true, heartbeat },
  })
}

test('a box with an empty directory becomes one of those on the database; what accounts there are is the same at each', async () => {
  const [one, other] = await severalBoxes(postgres())
  expect(documentOf(other)).toEqual(documentOf(one))
  const added = { name: 'second', email: 'eve@example.com', password }
  const { id } = await one.app.accounts.add(added)
  await expect.poll(async () => (await attempt(other, added)).status).toBe(400)
  await expect.poll(async () => (await attempt(other, { email: added.email, password })).status).toBe(200)
  expect(documentOf(other).accounts.map((account) => account.id)).toContain(id)
  await expect(other.app.accounts.add({ ...added, email: 'bob@example.com' })).rejects.toMatchObject({ type: 'conflict' })
})

test('of accounts that boxes add at the same time none is lost', async () => {
  const boxes = await severalBoxes(postgres(), 3)
  await Promise.all(
    Array.from({ length: 9 }, (_, n) =>
      boxes[n % 3]!.app.accounts.add({ name: `account ${n}`, email: `ada${n}@example.com`, password }),
    ),
  )
  for (const box of boxes) {
    await expect.poll(() => documentOf(box).accounts).toHaveLength(10)
    expect(await box.app.accounts.list()).toHaveLength(10)
  }
})

test('limits of an account that are edited at one box hold at the others', async () => {
  const [one, other] = await severalBoxes(postgres())
  edit(one, ({ accounts }) => (accounts[0]!.limits = { identities: 1 }))
  await one.app.reread()
  await expect.poll(() => documentOf(other).accounts[0]!.limits).toEqual({ identities: 1 })
  expect((await other.call('POST', '/v1/identities', { name: 'Ada' })).status).toBe(201)
  expect((await other.call('POST', '/v1/identities', { name: 'Bob' })).body.error['code']).toBe('plan_limit_reached')
  // a restart takes over what was changed meanwhile
  await other.app.stop()
  edit(one, ({ accounts }) => (accounts[0]!.limits = { identities: 2 }))
  await one.app.reread()
  await other.restart()
  expect((await other.call('POST', '/v1/identities', { name: 'Bob' })).status).toBe(201)
  writeFileSync(fileOf(other), '{')
  await expect(other.app.reread()).rejects.toThrow(/state\.json is damaged/)
  expect((await other.call('GET', '/v1/billing/subscription')).body['limits']).toMatchObject({ identities: 2 })
})

test('a box with another master key is refused, and one without is not given one of its own', async () => {
  const [one] = await severalBoxes(postgres(), 1)
  const elsewhere = await appliance({ PILLARBOX_KEYS_DIR: join(folder(), 'keys') })
  await expect(another(one, { PILLARBOX_KEYS_DIR: elsewhere.env['PILLARBOX_KEYS_DIR']! })).rejects.toThrow(
    /is not the master key that encrypts this database/,
  )
  const empty = join(folder(), 'keys')
  await expect(another(one, { PILLARBOX_KEYS_DIR: empty })).rejects.toThrow(/master\.key/)
  expect(existsSync(join(empty, 'master.key'))).toBe(false)
})

test('the directory of another box is refused', async () => {
  const [one] = await severalBoxes(postgres(), 1)
  const [foreign] = await severalBoxes(postgres(), 1)
  await foreign.app.stop()
  const before = documentOf(foreign)
  await expect(
    another(one, { PILLARBOX_DATA_DIR: foreign.env['PILLARBOX_DATA_DIR']!, PILLARBOX_KEYS_DIR: one.env['PILLARBOX_KEYS_DIR']! }),
  ).rejects.toThrow(/state\.json is of another box/)
  expect(documentOf(foreign)).toEqual(before)
})
