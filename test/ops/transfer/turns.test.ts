import { expect, onTestFinished, test, vi } from 'vitest'
import { MailArchive } from '../../../src/mail/archive.ts'
import { accountKey } from '../../support/account-key.ts'
import { appliance, type Appliance, message } from '../../support/appliance.ts'
import { upload } from './moving.ts'

/** An mbox of this many messages. */
function mbox(count: number): string {
  const letters = Array.from({ length: count }, (_, number) =>
    message({ Subject: `Letter ${number}`, 'Message-ID': `<l${number}@sender.test>` }, 'Words.'),
  )
  return letters.map((letter) => `From a@b.test Fri Nov 20 10:00:00 2020\n${letter}\n\n`).join('')
}

interface Account {
  identity: string
  key: string
}

async function account(box: Appliance): Promise<Account> {
  const key = accountKey(box)
  return { key, identity: (await box.call('POST', '/v1/identities', {}, { key })).body['id'] as string }
}

/** Messages of imports in memory, by account in the order of their first, and the accounts in the order of their last; reading goes on once `go` is called. */
function watched(): { held: Map<string, number>; order: Set<string>; most: () => number; go: () => void } {
  const order = new Set<string>()
  const held = new Map<string, number>()
  const gate = Promise.withResolvers<void>()
  let most = 0
  const count = (id: string, by: number): void => {
    held.set(id, (held.get(id) ?? 0) + by)
    most = Math.max(most, [...held.values()].filter((messages) => messages > 0).length)
  }
  const read = Reflect.get(MailArchive.prototype, 'read')
  const insert = Reflect.get(MailArchive.prototype, 'insert')
  vi.spyOn(MailArchive.prototype, 'read').mockImplementation(async function (this: MailArchive, raw, state, id) {
    count(id, 1)
    await gate.promise
    return read.call(this, raw, state, id)
  })
  vi.spyOn(MailArchive.prototype, 'insert').mockImplementation(async function (this: MailArchive, tx, caller, identity, letter) {
    const result = await insert.call(this, tx, caller, identity, letter)
    count(caller.account_id, -1)
    order.delete(caller.account_id)
    order.add(caller.account_id)
    return result
  })
  onTestFinished(() => void vi.restoreAllMocks())
  return { held, order, most: () => most, go: gate.resolve }
}

async function started(box: Appliance, { identity, key }: Account, octets: string): Promise<string> {
  const answer = await upload(box, identity, octets, key)
  expect(answer.status).toBe(201)
  return ((await answer.json()) as { id: string }).id
}

async function ended(box: Appliance, { key }: Account, id: string): Promise<unknown> {
  const get = async () => (await box.call('GET', `/v1/jobs/${id}`, undefined, { key })).body
  await expect.poll(async () => (await get())['status']).not.toBe('running')
  return get()
}

test('of many imports one has messages in memory: the others continue in turn, a short one before the end of the long ones', async () => {
  const box = await appliance()
  const { held, order, most, go } = watched()
  const accounts = [await account(box), await account(box), await account(box), await account(box)]
  const long = mbox(600)
  const jobs: string[] = []
  for (const [index, one] of accounts.entries()) jobs.push(await started(box, one, index === 3 ? mbox(3) : long))
  go()
  const [first, second, third, short] = await Promise.all(accounts.map((one, index) => ended(box, one, jobs[index]!)))
  for (const end of [first, second, third]) expect(end).toMatchObject({ status: 'done', result: { imported: 600 } })
  expect(short).toMatchObject({ status: 'done', result: { imported: 3 } })
  expect(most()).toBe(1)
  expect([...order][0]).toBe([...held.keys()][3])
})

test('an import that waits for its turn can be cancelled, and one that is cancelled lets the next begin', async () => {
  const box = await appliance()
  const { held, go } = watched()
  const accounts = [await account(box), await account(box), await account(box), await account(box)]
  const jobs: string[] = []
  for (const one of accounts) jobs.push(await started(box, one, mbox(20)))
  await expect.poll(() => held.size).toBe(1)
  const cancel = (index: number) => box.call('POST', `/v1/jobs/${jobs[index]!}/cancel`, {}, { key: accounts[index]!.key })
  expect((await cancel(2)).body).toMatchObject({ status: 'cancelled' })
  const first = cancel(0)
  go()
  await first
  expect(await ended(box, accounts[1]!, jobs[1]!)).toMatchObject({ status: 'done', result: { imported: 20 } })
  expect(await ended(box, accounts[3]!, jobs[3]!)).toMatchObject({ status: 'done', result: { imported: 20 } })
})
