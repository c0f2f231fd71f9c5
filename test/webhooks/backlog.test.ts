import { expect, onTestFinished, test } from 'vitest'
import { Metrics } from '../../src/core/metrics.ts'
import { Queue } from '../../src/queue/queue.ts'
import { sql } from '../../src/store/database.ts'
import type { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { FanoutBacklog } from '../../src/webhooks/fanout-backlog.ts'
import { inside } from '../cards/settled.ts'
import { hang, Runner } from '../queue/runner.ts'
import { opened, quiet } from '../store/opened.ts'
import { appliance } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { HeldClock } from '../support/held-clock.ts'
import { settled } from '../support/settled.ts'
import { type Behaviour, says, WebhookSink } from '../support/webhook-sink.ts'

const many = 300

test('deliveries of an event that very many wait for are created as attempts may begin, and each hears it once', async () => {
  const box = await appliance({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
  const sink = await WebhookSink.start()
  for (let number = 0; number < many; number += 1)
    await box.call('POST', '/v1/webhooks', { url: `${sink.url}/${number}`, events: ['identity.created'] })
  const { body: first } = await box.call('POST', '/v1/identities', {})
  await box.settled()
  const held: Parameters<Behaviour>[0][] = []
  sink.behaviour = (response) => void held.push(response)
  const { body: second } = await box.call('POST', '/v1/identities', {})
  const states = () =>
    inside<{ state: string; n: number }>(box, 'SELECT state, count(*) AS n FROM deliveries_queue GROUP BY state ORDER BY state')
  // all of them are under way and none waits, until as many are as may be of one account
  await expect.poll(() => states().find(({ state }) => state === 'running')?.n ?? 0).toBeGreaterThan(176)
  const [done, running, ...others] = states()
  expect(done).toEqual({ state: 'done', n: many })
  expect(running!.n).toBeLessThanOrEqual(240)
  expect(others).toEqual([])
  expect(inside(box, 'SELECT count(*) AS n FROM webhook_backlog')).toEqual([{ n: 1 }])
  sink.behaviour = says(200)
  for (const response of held) response.writeHead(200).end()
  await box.settled()
  expect(states()).toEqual([{ state: 'done', n: 2 * many }])
  expect(inside(box, 'SELECT count(*) AS n FROM webhook_backlog')).toEqual([{ n: 0 }])
  for (const { id } of [first, second]) {
    const paths = sink.received.filter(({ body }) => body.identity_id === id).map(({ path }) => path)
    expect(paths).toHaveLength(many)
    expect(new Set(paths).size).toBe(many)
  }
})

/** A backlog whose accounts have webhooks in 300 lanes each that are known to be healthy. */
async function atWork(): Promise<{
  database: SqliteDatabase
  queue: Queue
  runner: Runner
  backlog: FanoutBacklog
  clock: HeldClock
}> {
  const { database } = await opened(folder())
  const clock = new HeldClock()
  const queue = new Queue({ database, clock, log: quiet, metrics: new Metrics(), grace: 20 })
  const runner = Object.assign(new Runner(), { kind: 'webhook' as never })
  queue.add(runner)
  const subscribed = {
    of: async (_tx: unknown, { account_id }: { account_id: string }, after: number, limit: number) =>
      lanesOf(account_id)
        .map((id, index) => ({ seq: index + 1, id, after_seq: 0 }))
        .slice(after, after + limit),
  }
  const backlog = new FanoutBacklog({ database, log: quiet, queue, subscribed: subscribed as never })
  await queue.start()
  onTestFinished(async () => {
    await backlog.stop()
    await queue.stop()
    await database.close()
  })
  for (const account_id of ['acct_a', 'acct_b']) await enqueue(database, queue, account_id)
  await settled(queue)
  return { database, queue, runner, backlog, clock }
}

const lanesOf = (account: string): string[] => Array.from({ length: many }, (_, index) => `${account} ${index}`)

function enqueue(database: SqliteDatabase, queue: Queue, account_id: string): Promise<unknown> {
  const deliveries = lanesOf(account_id).map((lane) => ({ kind: 'webhook', account_id, lane, load: { to: lane, text: 'x' } }))
  return database.transaction((tx) => queue.enqueueAll(tx, deliveries))
}

/** Adds an event of acct_b, and has its deliveries created. */
async function event({ database, backlog }: { database: SqliteDatabase; backlog: FanoutBacklog }): Promise<void> {
  await database.transaction(async (tx) => {
    const row = await tx.get<{ seq: number }>(
      sql`INSERT INTO events (id, type, account_id, created_at, data) VALUES ('evt_b', 'x', 'acct_b', '2026', '{}') RETURNING seq`,
    )
    await tx.run(sql`INSERT INTO webhook_backlog (seq, account_id) VALUES (${row!.seq}, 'acct_b')`)
  })
  backlog.wake()
}

const createdOf = (database: SqliteDatabase): Promise<unknown> =>
  database.get(
    sql`SELECT count(*) AS n FROM deliveries_queue WHERE account_id = 'acct_b' AND json_extract(load, '$.event_id') = 'evt_b'`,
  )

test('an account whose endpoints all hang does not hold up what others wait for', async () => {
  const world = await atWork()
  const { database, queue, runner } = world
  runner.act = async (load, attempt, signal) => (load.to?.startsWith('acct_a') ? hang(load, attempt, signal) : 'thanks')
  await enqueue(database, queue, 'acct_a')
  await expect.poll(() => queue.claimable({ kind: 'webhook', account_id: 'acct_a' }).now).toBe(0)
  await event(world)
  await expect.poll(() => createdOf(database)).toEqual({ n: many })
})

test('accounts that always have something due leave a turn to what waits for others', async () => {
  const world = await atWork()
  const { database, queue, runner } = world
  runner.act = async () => new Promise((resolve) => setTimeout(() => resolve('thanks'), 50))
  for (const account of ['acct_a', 'acct_c']) for (let time = 0; time < 8; time += 1) await enqueue(database, queue, account)
  await event(world)
  await expect.poll(() => createdOf(database)).toEqual({ n: many })
  const waiting = sql`SELECT count(*) AS n FROM deliveries_queue WHERE account_id <> 'acct_b' AND state = 'waiting'`
  expect((await database.get<{ n: number }>(waiting))!.n).toBeGreaterThan(0)
})

test('an event that waits for deliveries of its account that are due goes on when they are cancelled', async () => {
  const world = await atWork()
  const { database, queue, clock, backlog } = world
  const due = new Date(clock.now() + 5000).toISOString()
  const id = await database.transaction((tx) =>
    queue.enqueue(tx, { kind: 'webhook', account_id: 'acct_b', lane: 'acct_b 0', load: { to: 'x', text: 'x' }, due }),
  )
  await database.transaction((tx) => queue.cancel(tx, id))
  clock.advance(6000)
  await event(world)
  backlog.wake()
  queue.wake()
  await expect.poll(() => createdOf(database)).toEqual({ n: many })
})
