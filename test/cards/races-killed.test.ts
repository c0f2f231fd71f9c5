import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { bootstrapKey } from '../support/appliance.ts'
import { blob, card } from '../support/card.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { type Ask, ledger, until } from './ledger.ts'
import { killsOr } from '../support/kills.ts'

test('killed in the middle: what is spent is what was allowed, never more than the budget', async () => {
  const home = mkdtempSync(join(tmpdir(), 'pillarbox-cards-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const env = { ...testBox, PILLARBOX_DATA_DIR: join(home, 'data'), PILLARBOX_BOOTSTRAP_KEY: bootstrapKey }
  const opened = async (): Promise<{ box: ReturnType<typeof boxProcess>; ask: Ask }> => {
    const box = boxProcess(env)
    const { api } = await box.said('started')
    return { box, ask: (...question) => asking(api as string, ...question) }
  }
  let { box, ask } = await opened()
  const { body: ada } = await ask('POST', '/v1/identities', {})
  const paths: string[] = []
  const secrets: string[] = []
  for (let round = 0; round < killsOr(3); round += 1) {
    const encrypted_data = blob()
    const { body: made } = await ask('POST', `/v1/identities/${ada.id}/cards`, card({ encrypted_data, budget_cents: 1000 }))
    paths.push(`/v1/cards/${made.id}`)
    secrets.push(encrypted_data)
  }

  const cut: number[] = []
  for (const [round, path] of paths.entries()) {
    const told = new Map<number, string>()
    const storm = Array.from({ length: 200 }, async (_, index) => {
      const { status, body } = await ask('POST', `${path}/reveal`, { amount_cents: 100 }, `reveal ${index}`)
      if (status === 200) told.set(index, body.transaction.id as string)
    })
    // at another moment each round: as soon as so many were told, or after a while
    await Promise.race([Promise.allSettled(storm), until(() => told.size > round * 2)])
    await box.end('SIGKILL')
    cut.push((await Promise.allSettled(storm)).filter(({ status }) => status === 'rejected').length)
    ;({ box, ask } = await opened())

    const before = await ledger(ask, path)
    const allowed = before.filter((row) => row.allowed)
    const { body: limits } = await ask('GET', `${path}/limits`)
    expect(limits.spent_cents).toBe(allowed.length * 100)
    expect(limits.spent_cents).toBeLessThanOrEqual(1000)
    const ids = new Set(allowed.map(({ id }) => id))
    for (const id of told.values()) expect(ids.has(id)).toBe(true)

    // every call once more with its key: what was reserved is handed out without a second charge, the rest is decided now
    const again = await Promise.all(
      Array.from({ length: 200 }, (_, index) => ask('POST', `${path}/reveal`, { amount_cents: 100 }, `reveal ${index}`)),
    )
    const passed = again.filter(({ status }) => status === 200)
    expect(again.filter(({ status }) => status !== 200 && status !== 403)).toEqual([])
    expect(passed).toHaveLength(10)
    for (const { body } of passed) expect(body.encrypted_data).toBe(secrets[round])
    for (const [index, id] of told) expect([index, again[index]!.body.transaction?.id]).toEqual([index, id])
    const after = (await ledger(ask, path)).filter((row) => row.allowed && row.reason === null)
    expect(after.map(({ spent_cents }) => spent_cents)).toEqual(Array.from({ length: 10 }, (_, index) => (index + 1) * 100))
    expect((await ask('GET', `${path}/limits`)).body).toMatchObject({ spent_cents: 1000, remaining_cents: 0 })
  }
  expect(Math.max(...cut)).toBeGreaterThan(0)
  await box.end('SIGTERM')
})

async function asking(api: string, method: string, path: string, body?: unknown, key?: string): ReturnType<Ask> {
  const response = await fetch(`${api}${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${bootstrapKey}`,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(key === undefined ? {} : { 'Idempotency-Key': key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: await response.json() }
}
