import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { bootstrapKey } from '../support/appliance.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { says, WebhookSink } from '../support/webhook-sink.ts'
import { killsOr } from '../support/kills.ts'

const kills = killsOr(2)

type Answer = ReturnType<typeof JSON.parse>

test(
  `killed ${kills} times between commit, fan-out and delivery, every event reaches a slow endpoint, each under one id`,
  { timeout: 200_000 + kills * 20_000 },
  async () => {
    const home = mkdtempSync(join(tmpdir(), 'pillarbox-fan-out-'))
    onTestFinished(() => rmSync(home, { recursive: true, force: true }))
    const env = {
      ...testBox,
      PILLARBOX_DATA_DIR: join(home, 'data'),
      PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
      PILLARBOX_DNS__SERVERS: '127.0.0.1:9',
      PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
    }
    const sink = await WebhookSink.start()
    sink.behaviour = (response) => void setTimeout(() => response.writeHead(200).end(), 40)
    const acknowledged = new Set<string>()
    let webhook = ''
    for (let round = 0; round < kills; round += 1) {
      const box = boxProcess(env)
      const { api } = await box.said('started')
      if (webhook === '')
        webhook = (await call(api, 'POST', '/v1/webhooks', { url: sink.url, events: ['identity.created'] })).id as string
      const before = acknowledged.size
      const makers = Array.from({ length: 4 }, async () => {
        for (let made = 0; made < 200; made += 1) {
          const identity = await call(api, 'POST', '/v1/identities').catch(() => undefined)
          if (!identity) return
          acknowledged.add(identity.id as string)
        }
      })
      // every other time right after a first answer: committed, and perhaps not fanned out
      const enough = round % 2 === 0 ? 1 : 10 + ((round * 37) % 60)
      while (acknowledged.size < before + enough) await new Promise((resolve) => setTimeout(resolve, 1))
      await box.end('SIGKILL')
      await Promise.all(makers)
    }
    sink.behaviour = says(204)
    const box = boxProcess(env)
    await box.said('started')
    const told = (): Set<string | null> => new Set(sink.received.map(({ body }) => body.identity_id))
    await expect.poll(() => [...acknowledged].filter((id) => !told().has(id)), { interval: 100 }).toEqual([])
    expect(acknowledged.size).toBeGreaterThanOrEqual(kills)

    const ids = Map.groupBy(sink.received, ({ body }) => body.identity_id)
    for (const [identity, all] of ids) {
      expect(new Set(all.map(({ headers }) => headers['webhook-id'])).size, `ids of ${identity}`).toBe(1)
      expect(new Set(all.map(({ raw }) => raw)).size, `octets of ${identity}`).toBe(1)
    }
    // only what was under way at a kill comes twice: sixteen to one endpoint
    expect(sink.received.length - ids.size).toBeLessThanOrEqual(16 * kills)
    expect(await box.end('SIGTERM')).toBe(0)
  },
)

async function call(api: string, method: string, path: string, body?: unknown): Promise<Answer> {
  const response = await fetch(`${api}${path}`, {
    method,
    headers: { Authorization: `Bearer ${bootstrapKey}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return response.json()
}
