import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { OutboundProcess } from '../support/outbound-process.ts'
import { bootstrapKey } from '../support/appliance.ts'
import { killsOr } from '../support/kills.ts'

const rounds = killsOr(3)
const each = 16

test('killed between decision and release: what was approved leaves once, what was rejected never, the rest waits', async () => {
  const desk = await OutboundProcess.open()
  const call = async (key: string, method: string, path: string, body: object): Promise<Response> => {
    const { api } = await desk.box.said('started')
    return fetch(`${api}${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
  }
  const identity_id = desk.ada.id
  const { key } = await desk.post('/v1/api-keys', { identity_id, scopes: ['messages:read', 'messages:write'] })
  await call(bootstrapKey, 'PATCH', '/v1/policy', { preset: 'all' })
  const approved = new Set<string>()
  const rejected = new Set<string>()
  let cut = 0
  for (let round = 0; round < rounds; round += 1) {
    const holds: { subject: string; id: string }[] = []
    for (let number = 0; number < each; number += 1) {
      const subject = `${round}.${number}`
      const mail = { to: `bob@far${number % 4}.test`, subject, body: 'x' }
      const sent = await call(key as string, 'POST', `/v1/identities/${identity_id}/emails`, mail)
      const email = (await sent.json()) as { hold: { id: string } }
      expect(email).toMatchObject({ status: 'held' })
      holds.push({ subject, id: email.hold.id })
    }
    const decide = async ({ subject, id }: { subject: string; id: string }, index: number): Promise<void> => {
      const how = index % 2 === 0 ? 'approve' : 'reject'
      const { status } = await call(bootstrapKey, 'POST', `/v1/holds/${id}/${how}`, {})
      expect(status).toBe(200)
      ;(how === 'approve' ? approved : rejected).add(subject)
    }
    const before = approved.size + rejected.size
    const decided = Promise.allSettled(holds.map(decide))
    // at another moment each round: as soon as so many were told
    while (approved.size + rejected.size < before + round * 2) await sleep(1)
    await desk.kill()
    cut += (await decided).filter(({ status }) => status === 'rejected').length
    await desk.start()
    for (const { id, subject } of holds) {
      const { api } = await desk.box.said('started')
      const hold = await fetch(`${api}/v1/holds/${id}`, { headers: { Authorization: `Bearer ${bootstrapKey}` } })
      const { status } = (await hold.json()) as { status: string }
      // what was acknowledged is so; of the others each is decided wholly or not at all
      if (approved.has(subject)) expect([subject, status]).toEqual([subject, 'approved'])
      else if (rejected.has(subject)) expect([subject, status]).toEqual([subject, 'rejected'])
      else if (status === 'approved') approved.add(subject)
      else if (status === 'rejected') rejected.add(subject)
      else expect([subject, status]).toEqual([subject, 'open'])
    }
  }
  expect(cut).toBeGreaterThan(0)
  const arrived = (): Set<string> => new Set(desk.sink.messages.map(({ raw }) => /^Subject: (.*)\r$/m.exec(raw)![1]!))
  await expect.poll(() => [...approved].filter((subject) => !arrived().has(subject)).length, { timeout: 100_000 }).toBe(0)
  expect([...arrived()].filter((subject) => !approved.has(subject))).toEqual([])
  // at most once more for each kill, as it may have been on its way
  const perSubject = Map.groupBy(desk.sink.messages, ({ raw }) => /^Subject: (.*)\r$/m.exec(raw)![1])
  for (const [subject, copies] of perSubject) expect([subject, copies.length <= rounds + 1]).toEqual([subject, true])
})
