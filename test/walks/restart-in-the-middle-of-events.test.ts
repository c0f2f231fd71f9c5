import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { allAttempts, beforeAttempts, beforeResults } from '../support/attempts.ts'
import { bootstrapKey } from '../support/appliance.ts'
import { boxProcess, type BoxProcess, testBox } from '../support/process.ts'
import { hangs, says, WebhookSink } from '../support/webhook-sink.ts'

type Answer = ReturnType<typeof JSON.parse>

/** Identities made in each test, and so events. */
const count = 5

const followerFailed = 'follower of the event log failed, retrying'

test('killed between commit and fan-out: no delivery was written; then every event is heard, once', async () => {
  const { sink, start, rows, hold, release } = await desk()
  hold('BEFORE INSERT ON deliveries_queue')
  const box = await start()
  const made = await identities(box)
  await box.said(followerFailed)
  await box.end('SIGKILL')
  expect(rows('SELECT id FROM deliveries_queue')).toEqual([])
  expect(rows("SELECT id FROM events WHERE seq > (SELECT seq FROM bookmarks WHERE name = 'webhooks')")).toHaveLength(count)
  expect(sink.received).toEqual([])
  release()
  await start()
  await heard(sink, made)
  expect(sink.received).toHaveLength(count)
})

test('killed in the middle of a fan-out: the bookmark stands exactly where the deliveries end', async () => {
  const { sink, start, rows, hold, release } = await desk(3)
  sink.behaviour = hangs
  // the second event's second delivery is not to be had
  hold('BEFORE INSERT ON deliveries_queue WHEN (SELECT count(*) FROM deliveries_queue) >= 4')
  const box = await start()
  const made = await identities(box)
  await box.said(followerFailed, 2)
  await box.end('SIGKILL')
  const told = rows('SELECT load FROM deliveries_queue').map(({ load }) => JSON.parse(String(load)).event_id)
  const passed = rows(
    `SELECT id FROM events WHERE type = 'identity.created' AND seq <= (SELECT seq FROM bookmarks WHERE name = 'webhooks')`,
  )
  expect(passed).toHaveLength(1)
  expect(told).toEqual(passed.flatMap(({ id }) => [id, id, id]))
  release()
  sink.behaviour = says(204)
  sink.received.length = 0
  await start()
  await heard(sink, made, 3)
  expect(sink.received).toHaveLength(3 * count)
})

test('killed while one event spreads to very many: those that have it are not told twice, the others are', async () => {
  const many = 600
  const { sink, start, rows, hold, release } = await desk(many)
  hold('BEFORE INSERT ON deliveries_queue WHEN (SELECT count(*) FROM deliveries_queue) >= 550')
  const box = await start()
  const { id } = await post(box, '/v1/identities', {})
  await box.said('webhook deliveries could not be created, retrying')
  await box.end('SIGKILL')
  const begun = rows('SELECT lane FROM deliveries_queue').map(({ lane }) => lane)
  expect(begun.length).toBeGreaterThan(0)
  expect(begun.length).toBeLessThan(many)
  expect(rows('SELECT id FROM events JOIN webhook_backlog USING (seq) WHERE reached > 0')).toHaveLength(1)
  release()
  const again = await start()
  const next = await post(again, '/v1/identities', {})
  await heard(sink, new Set([id, next.id]), many)
  const lanes = rows('SELECT lane FROM deliveries_queue').map(({ lane }) => lane)
  expect(lanes).toHaveLength(2 * many)
  expect(new Set(lanes).size).toBe(many)
})

test('killed between fan-out and the first attempt: nobody was told; then every event is heard, once', async () => {
  const { sink, start, rows, hold, release } = await desk()
  hold(beforeAttempts)
  const box = await start()
  const made = await identities(box)
  await expect.poll(() => rows("SELECT id FROM deliveries_queue WHERE state = 'waiting'").length).toBe(count)
  await box.end('SIGKILL')
  expect(rows(`SELECT number FROM ${allAttempts}`)).toEqual([])
  expect(sink.received).toEqual([])
  release()
  await start()
  await heard(sink, made)
  expect(sink.received).toHaveLength(count)
})

test('killed while the endpoint has the event and has not answered: heard again, under the same id', async () => {
  const { sink, start, rows } = await desk()
  sink.behaviour = hangs
  const box = await start()
  const made = await identities(box)
  await sink.until(1)
  await box.end('SIGKILL')
  expect(rows("SELECT id FROM deliveries_queue WHERE state = 'running'")).toHaveLength(1)
  expect(rows(`SELECT outcome FROM ${allAttempts}`)).toEqual([{ outcome: null }])
  sink.behaviour = says(204)
  await start()
  await heard(sink, made)
  await expect.poll(() => sink.received.length).toBe(count + 1)
})

test('killed while a fan-out has claimed an event: heard again, under the same id', async () => {
  const { sink, start, rows } = await desk()
  const box = await start()
  const before = await identities(box)
  await heard(sink, before)
  await expect.poll(() => rows("SELECT id FROM deliveries_queue WHERE state <> 'done'")).toEqual([])
  sink.behaviour = hangs
  const { id } = await post(box, '/v1/identities', {})
  await sink.until(count + 1)
  await box.end('SIGKILL')
  const [last] = rows('SELECT state, attempts, run_id IS NOT NULL AS run FROM deliveries_queue ORDER BY seq DESC LIMIT 1')
  expect(last).toEqual({ state: 'running', attempts: 1, run: 1 })
  sink.behaviour = says(204)
  await start()
  await heard(sink, new Set([...before, id]))
  await expect.poll(() => sink.received.length).toBe(count + 2)
  expect(sink.received.at(-1)!.raw).toBe(sink.received.at(-2)!.raw)
  expect(
    rows(
      `SELECT number, outcome FROM ${allAttempts} WHERE delivery_seq = (SELECT max(seq) FROM deliveries_queue) ORDER BY number`,
    ),
  ).toMatchObject([{ number: 1, outcome: 'interrupted' }, { number: 2 }])
})

test('killed after the endpoint has answered and before that is on disk: heard again, under the same id', async () => {
  const { sink, start, rows, hold, release } = await desk()
  hold(beforeResults)
  const box = await start()
  const made = await identities(box)
  await box.said('result of an attempt could not be stored')
  await box.end('SIGKILL')
  const answered = sink.received.length
  expect(answered).toBeGreaterThanOrEqual(1)
  expect(rows("SELECT id FROM deliveries_queue WHERE state = 'done'")).toEqual([])
  release()
  await start()
  await heard(sink, made)
  await expect.poll(() => sink.received.length).toBe(count + answered)
})

interface Desk {
  sink: WebhookSink
  start: () => Promise<BoxProcess>
  rows: (query: string) => Record<string, SQLOutputValue>[]
  /** From outside, keeps the box from one step: a trigger on the table that the step must write to. While the box is down. */
  hold: (when: string) => void
  release: () => void
}

/** A box that has some webhooks for identities made, and is down. */
async function desk(webhooks = 1): Promise<Desk> {
  const home = mkdtempSync(join(tmpdir(), 'pillarbox-window-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const env = {
    ...testBox,
    PILLARBOX_DATA_DIR: join(home, 'data'),
    PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
    PILLARBOX_DNS__SERVERS: '127.0.0.1:9',
    PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
  }
  const over = <T>(work: (database: DatabaseSync) => T): T => {
    const database = new DatabaseSync(join(home, 'data', 'pillarbox.db'), { timeout: 60_000 })
    try {
      return work(database)
    } finally {
      database.close()
    }
  }
  const start = async (): Promise<BoxProcess> => {
    const box = boxProcess(env)
    await box.said('started')
    return box
  }
  const sink = await WebhookSink.start()
  const box = await start()
  const numbers = Array.from({ length: webhooks }, (_, number) => number)
  await Promise.all(
    numbers.map((number) => post(box, '/v1/webhooks', { url: `${sink.url}/${number}`, events: ['identity.created'] })),
  )
  expect(await box.end('SIGTERM')).toBe(0)
  return {
    sink,
    start,
    rows: (query) => over((database) => database.prepare(query).all()),
    hold: (when) => over((database) => database.exec(`CREATE TRIGGER held ${when} BEGIN SELECT RAISE(ABORT, 'held'); END`)),
    release: () => over((database) => database.exec('DROP TRIGGER held')),
  }
}

/** Makes them; answers their ids, each acknowledged. */
async function identities(box: BoxProcess): Promise<Set<string>> {
  const made = new Set<string>()
  for (let each = 0; each < count; each += 1) made.add((await post(box, '/v1/identities', {})).id as string)
  return made
}

/** Resolves when every webhook has heard of each identity: always under one id, in the same octets. */
async function heard(sink: WebhookSink, made: Set<string>, webhooks = 1): Promise<void> {
  const missing = (): string[] =>
    Array.from({ length: webhooks }, (_, number) => `/${number}`).flatMap((path) =>
      [...made].filter((id) => !sink.received.some((one) => one.path === path && one.body.identity_id === id)),
    )
  await expect.poll(missing).toEqual([])
  for (const [identity, all] of Map.groupBy(sink.received, ({ body }) => body.identity_id)) {
    expect(new Set(all.map(({ headers }) => headers['webhook-id'])).size, `ids of ${identity}`).toBe(1)
    expect(new Set(all.map(({ raw }) => raw)).size, `octets of ${identity}`).toBe(1)
  }
}

async function post(box: BoxProcess, path: string, body: object): Promise<Answer> {
  const { api } = await box.said('started')
  const response = await fetch(`${api}${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${bootstrapKey}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return response.json()
}
