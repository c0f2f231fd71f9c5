import { expect, onTestFinished, test, vi } from 'vitest'
import { EventTypes } from '../../src/events/catalogue.ts'
import { EventLog } from '../../src/events/log.ts'
import { identityDeleted } from '../../src/identities/model.ts'
import { type Reader, sql, type Transaction } from '../../src/store/database.ts'
import { EventNames } from '../../src/webhooks/event-names.ts'
import { Fanout } from '../../src/webhooks/fanout.ts'
import { opened, quiet } from '../store/opened.ts'
import { folder } from '../support/folder.ts'
import { OutboundProcess } from '../support/outbound-process.ts'
import { settled } from '../support/settled.ts'

const most = 50

test('killed in the middle of 120 webhooks of a deleted identity: the rest is disabled at the next start, each once', async () => {
  const desk = await OutboundProcess.open()
  const url = 'http://127.0.0.1:1/'
  const make = (part: object): Promise<unknown> => desk.post('/v1/webhooks', { url, events: ['identity.deleted'], ...part })
  for (let number = 0; number < 120; number += 10)
    await Promise.all(Array.from({ length: 10 }, () => make({ identity_id: desk.ada.id })))
  await make({})
  const state = (): unknown =>
    desk.rows(`SELECT
      (SELECT count(*) FROM webhooks WHERE disabled_reason = 'identity_deleted' AND active = 0) AS disabled,
      (SELECT count(*) FROM events WHERE type = 'webhook.disabled') AS events,
      (SELECT count(DISTINCT resource_id) FROM events WHERE type = 'webhook.disabled') AS webhooks,
      (SELECT count(*) FROM deliveries_queue WHERE kind = 'webhook') AS deliveries`)[0]
  desk.hold(
    `BEFORE INSERT ON events WHEN NEW.type = 'webhook.disabled' AND (SELECT count(*) FROM events WHERE type = 'webhook.disabled') >= 70`,
  )
  await desk.delete(`/v1/identities/${desk.ada.id}`)
  await desk.box.said('follower of the event log failed, retrying')
  await desk.kill()
  expect(state()).toEqual({ disabled: most, events: most, webhooks: most, deliveries: 0 })
  desk.release()
  await desk.start()
  // of the deletion itself only the webhook of the whole account hears, once
  await expect.poll(state).toEqual({ disabled: 120, events: 120, webhooks: 120, deliveries: 1 })
})

test('identities that are deleted together: few of their webhooks are disabled in one transaction, and what others hear comes once', async () => {
  const { database } = await opened(folder())
  const clock = { now: () => Date.UTC(2026, 0, 1) }
  const events = new EventLog(database, clock)
  const types = new EventTypes()
  types.add([identityDeleted])
  const heard: unknown[] = []
  const enqueueClaiming = vi.fn<(tx: Transaction, added: { deliveries: unknown[] }) => Promise<void>>()
  enqueueClaiming.mockImplementation(async (tx, { deliveries }) => tx.afterCommit(() => heard.push(...deliveries)))
  const queue = { enqueueClaiming, onCapacity: () => {}, claimable: () => ({ now: 100, share: 100 }) } as never
  const fanout = new Fanout({ database, events, clock, log: quiet, names: new EventNames(types), queue })
  fanout.start()
  onTestFinished(async () => {
    await fanout.stop()
    await database.close()
  })
  await settled(events, fanout)
  const identities = ['ident_a', 'ident_b', 'ident_c', 'ident_d']
  await database.transaction(async (tx) => {
    await add(tx, 'whk_all', null)
    for (const id of identities) for (let number = 0; number < 40; number += 1) await add(tx, `whk_${id}_${number}`, id)
  })
  const sizes: number[] = []
  const transaction = database.transaction.bind(database)
  vi.spyOn(database, 'transaction').mockImplementation((work) =>
    transaction(async (tx) => {
      const before = await disabled(tx)
      const result = await work(tx)
      sizes.push((await disabled(tx)) - before)
      return result
    }),
  )
  await database.transaction(async (tx) => {
    for (const identity_id of identities)
      await events.append(tx, identityDeleted, { account_id: 'acct_a', identity_id, data: {} as never })
  })
  await settled(events, fanout)
  expect(await disabled(database)).toBe(160)
  expect(Math.max(...sizes)).toBe(most)
  const told = await database.get(
    sql`SELECT count(*) AS n, count(DISTINCT resource_id) AS webhooks FROM events WHERE type = 'webhook.disabled'`,
  )
  expect(told).toEqual({ n: 160, webhooks: 160 })
  expect(heard).toMatchObject(identities.map(() => ({ lane: 'whk_all' })))
})

function add(tx: Transaction, id: string, identityId: string | null): Promise<unknown> {
  return tx.run(
    sql`INSERT INTO webhooks (id, account_id, identity_id, url, events, scopes, active, secret, after_seq, created_at, updated_at)
      VALUES (${id}, 'acct_a', ${identityId}, 'http://127.0.0.1:1/', '["identity.deleted"]', '["identities:read"]', 1, ${Buffer.from('')}, 0, '', '')`,
  )
}

async function disabled(reader: Reader): Promise<number> {
  return (await reader.get<{ n: number }>(sql`SELECT count(*) AS n FROM webhooks WHERE disabled_reason = 'identity_deleted'`))!.n
}
