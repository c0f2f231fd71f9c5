import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { bootstrapKey, deliver, message } from '../support/appliance.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { killsOr } from '../support/kills.ts'

const kills = killsOr(3)

test(
  `killed ${kills} times while mail flows, every message answered 250 is there once, whole`,
  { timeout: 200_000 + kills * 20_000 },
  async () => {
    const home = mkdtempSync(join(tmpdir(), 'pillarbox-kill-'))
    onTestFinished(() => rmSync(home, { recursive: true, force: true }))
    const env = {
      ...testBox,
      PILLARBOX_DATA_DIR: join(home, 'data'),
      PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
      PILLARBOX_DNS__SERVERS: '127.0.0.1:9',
      PILLARBOX_LOG__LEVEL: 'info',
    }
    const sent = new Map<string, string>()
    let number = 0
    let identity: { id: string; email: string } | undefined
    for (let round = 0; round < kills; round += 1) {
      const box = boxProcess(env)
      const { api, smtp } = await box.said('started')
      identity ??= await create(api as string)
      const before = sent.size
      const senders = Array.from({ length: 8 }, async () => {
        for (;;) {
          const id = `<${(number += 1)}@sender.test>`
          const raw = message({ Subject: `Message ${id}`, 'Message-ID': id }, `Body of ${id} ${'ü'.repeat(number % 700)}\n`)
          const reply = await deliver(smtp[0], { to: identity!.email, raw }).catch(() => '')
          if (!reply.startsWith('250')) return
          sent.set(id, raw)
        }
      })
      await new Promise((resolve) => setTimeout(resolve, 60 + ((round * 37) % 200)))
      while (sent.size === before) await new Promise((resolve) => setTimeout(resolve, 5))
      await box.end('SIGKILL')
      await Promise.all(senders)
    }

    const box = boxProcess(env)
    const { api } = await box.said('started')
    const kept = await sources(api as string, identity!.id)
    expect(await box.end('SIGTERM')).toBe(0)
    const lost = [...sent].filter(([id, raw]) => kept.get(id)?.join() !== raw)
    expect(lost.map(([id]) => `${id} ${kept.get(id)?.length ?? 0} times`)).toEqual([])
    expect(sent.size).toBeGreaterThanOrEqual(kills)

    const database = new DatabaseSync(join(home, 'data', 'pillarbox.db'), { readOnly: true })
    expect(database.prepare('PRAGMA integrity_check').all()).toMatchObject([{ integrity_check: 'ok' }])
    database.close()
  },
)

async function create(api: string): Promise<{ id: string; email: string }> {
  const response = await fetch(`${api}/v1/identities`, { method: 'POST', headers: { Authorization: `Bearer ${bootstrapKey}` } })
  return (await response.json()) as { id: string; email: string }
}

/** Message-ID → the octets received, of every message that is kept. */
async function sources(api: string, identity: string): Promise<Map<string, string[]>> {
  const headers = { Authorization: `Bearer ${bootstrapKey}` }
  const kept = new Map<string, string[]>()
  for (let cursor = ''; ;) {
    const page = await fetch(`${api}/v1/identities/${identity}/emails?limit=200${cursor}`, { headers })
    const { data, next_cursor } = (await page.json()) as {
      data: { id: string; message_id: string }[]
      next_cursor: string | null
    }
    for (const { id, message_id } of data) {
      const raw = await (await fetch(`${api}/v1/identities/${identity}/emails/${id}/raw`, { headers })).text()
      const octets = raw.slice(raw.indexOf('From: Sam'))
      kept.set(message_id, [...(kept.get(message_id) ?? []), octets])
    }
    if (next_cursor === null) return kept
    cursor = `&cursor=${next_cursor}`
  }
}
