import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { bootstrapKey } from '../support/appliance.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { killsOr } from '../support/kills.ts'

test('killed in the middle, a call took effect once or never, and its key says so', async () => {
  const home = mkdtempSync(join(tmpdir(), 'pillarbox-once-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const env = { ...testBox, PILLARBOX_DATA_DIR: join(home, 'data'), PILLARBOX_BOOTSTRAP_KEY: bootstrapKey }
  let sent = 0
  for (let round = 0; round < killsOr(3); round += 1) {
    const box = boxProcess(env)
    const { api } = await box.said('started')
    // counted in answers, not in time: on a slow machine, too, it is killed with calls in hand; and each time at another step of theirs
    let left = 1 + round * round
    const enough = Promise.withResolvers<void>()
    const senders = Array.from({ length: 8 }, async () => {
      for (;;) {
        const answer = await create(api as string, (sent += 1)).catch(() => undefined)
        if (answer === undefined) return
        left -= 1
        if (left === 0) enough.resolve()
      }
    })
    await enough.promise
    await new Promise((resolve) => setTimeout(resolve, round * 3))
    await box.end('SIGKILL')
    await Promise.all(senders)
  }

  const box = boxProcess(env)
  const { api } = await box.said('started')
  const before = await made(api as string)
  for (const [number, ids] of before) expect([number, ids.length]).toEqual([number, 1])
  for (let number = 1; number <= sent; number += 1) {
    const { status, body } = await create(api as string, number)
    const took = before.get(number)
    if (status === 201) expect(took === undefined || took[0] === body.id).toBe(true)
    else expect([number, took?.length, status, body.error?.code]).toEqual([number, 1, 409, 'idempotency_interrupted'])
  }
  for (const [number, ids] of await made(api as string)) expect([number, ids.length]).toEqual([number, 1])
  await box.end('SIGTERM')
})

interface Made {
  status: number
  body: { id?: string; error?: { code: string } }
}

async function create(api: string, number: number): Promise<Made> {
  const response = await fetch(`${api}/v1/identities`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${bootstrapKey}`,
      'Content-Type': 'application/json',
      'Idempotency-Key': `number ${number}`,
    },
    body: JSON.stringify({ metadata: { number } }),
  })
  return { status: response.status, body: (await response.json()) as Made['body'] }
}

/** The identities there are, by the number of the call that made them. */
async function made(api: string): Promise<Map<number, string[]>> {
  const headers = { Authorization: `Bearer ${bootstrapKey}` }
  const found = new Map<number, string[]>()
  for (let cursor = ''; ;) {
    const response = await fetch(`${api}/v1/identities?limit=200${cursor}`, { headers })
    const { data, next_cursor } = (await response.json()) as { data: { id: string }[]; next_cursor: string | null }
    for (const { id } of data) {
      const { metadata } = (await (await fetch(`${api}/v1/identities/${id}`, { headers })).json()) as {
        metadata: { number: number }
      }
      found.set(metadata.number, [...(found.get(metadata.number) ?? []), id])
    }
    if (next_cursor === null) return found
    cursor = `&cursor=${next_cursor}`
  }
}
