import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, type Store } from '../support/open-store.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { bootstrapKey } from '../support/appliance.ts'
import { boxProcess, type BoxProcess, testBox } from '../support/process.ts'

type Answer = ReturnType<typeof JSON.parse>

test('killed while it counts: nothing was counted, and the next start counts each event once', async () => {
  const { start, over } = desk()
  const first = await start()
  const { id } = await post(first, '/v1/identities', {})
  expect(await first.end('SIGTERM')).toBe(0)
  over((database) =>
    database.exec(
      `CREATE TRIGGER held BEFORE UPDATE ON bookmarks WHEN NEW.name = 'reputation' BEGIN SELECT RAISE(ABORT, 'held'); END`,
    ),
  )

  const box = await start()
  for (let turn = 0; turn < 5; turn += 1) await post(box, `/v1/identities/${id}/token`, {})
  await box.said('follower of the event log failed, retrying')
  await box.end('SIGKILL')
  expect(over((database) => database.prepare('SELECT * FROM reputations').all())).toEqual([])
  over((database) => database.exec('DROP TRIGGER held'))

  const again = await start()
  await expect.poll(() => tokensOf(again, id)).toBe(5)
})

test('killed at any moment: what was counted is what the log says, to the last event', async () => {
  const { start, env } = desk()
  const made: string[] = []
  const acknowledged: string[] = []
  for (const enough of [7, 60]) {
    const box = await start()
    while (made.length < 3) made.push((await post(box, '/v1/identities', {})).id)
    const issuing = made.map(async (id) => {
      for (;;) {
        await post(box, `/v1/identities/${id}/token`, {})
        acknowledged.push(id)
      }
    })
    // each ends with the box
    const over = Promise.allSettled(issuing)
    while (acknowledged.length < enough) await sleep(1)
    await box.end('SIGKILL')
    await over
  }
  const last = await start()
  const all = async (): Promise<number> =>
    (await Promise.all(made.map((id) => tokensOf(last, id)))).reduce((sum, tokens) => sum + tokens, 0)
  await expect.poll(all).toBeGreaterThanOrEqual(acknowledged.length)
  expect(await last.end('SIGTERM')).toBe(0)
  const recount = boxProcess(env, ['reputation', 'recount'])
  expect(await recount.ended).toBe(0)
  expect(recount.output()).toBe('The log has events of 3 identities. All counts were correct.\n')
})

function desk(): {
  start: () => Promise<BoxProcess>
  over: <T>(work: (database: Store) => T) => T
  env: Record<string, string>
} {
  const home = mkdtempSync(join(tmpdir(), 'pillarbox-counting-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const env = {
    ...testBox,
    PILLARBOX_DATA_DIR: join(home, 'data'),
    PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
    PILLARBOX_DNS__SERVERS: '127.0.0.1:9',
  }
  return {
    env,
    start: async () => {
      const box = boxProcess(env)
      await box.said('started')
      return box
    },
    over: (work) => {
      const database = openStore(join(home, 'data', 'pillarbox.db'), { timeout: 60_000 })
      try {
        return work(database)
      } finally {
        database.close()
      }
    },
  }
}

async function tokensOf(box: BoxProcess, id: string): Promise<number> {
  const { api } = await box.said('started')
  const response = await fetch(`${api}/v1/identities/${id}/reputation`, { headers: { Authorization: `Bearer ${bootstrapKey}` } })
  return ((await response.json()) as { counters: { tokens: number } }).counters.tokens
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
