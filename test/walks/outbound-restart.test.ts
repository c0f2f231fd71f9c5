import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { allAttempts, beforeAttempts, beforeResults } from '../support/attempts.ts'
import { everyone, OutboundProcess } from '../support/outbound-process.ts'

const count = everyone.length

const timeout = { timeout: 100_000 }

const hour = 3_600_000

test('killed between 201 and claim: nobody was spoken to; then every message leaves, once', async () => {
  const desk = await OutboundProcess.open()
  desk.hold(beforeAttempts)
  const ids = await desk.send()
  await desk.box.said('queue could not be read; retrying')
  expect(await desk.statuses(ids)).toEqual(['queued'])
  await desk.kill()
  expect(desk.sink.connections).toBe(0)
  expect(desk.rows(`SELECT number FROM ${allAttempts}`)).toEqual([])
  desk.release()
  await desk.start()
  await delivered(desk, ids, { times: 1, attempts: 1 })
})

test('killed between claim and connection: nobody was spoken to; then every message leaves, once', async () => {
  const desk = await OutboundProcess.open()
  for (const number of everyone.keys()) desk.dns.fails(`far${number}.test`, 'silence')
  const ids = await desk.send()
  await expect
    .poll(() => desk.dns.queries.filter((query) => query.startsWith('MX far')).length, timeout)
    .toBeGreaterThanOrEqual(count)
  expect(await desk.statuses(ids)).toEqual(['sending'])
  await desk.kill()
  expect(desk.sink.connections).toBe(0)
  for (const number of everyone.keys()) desk.dns.fails(`far${number}.test`, null)
  await desk.start()
  await delivered(desk, ids, { times: 1, attempts: 2 })
})

/** What the other side withholds its answer to, and so where the dialogue stands; nothing was taken by then. */
const steps: [string, RegExp][] = [
  ['connection and greeting', /^<greeting>$/],
  ['greeting and EHLO', /^EHLO/],
  ['MAIL and RCPT', /^MAIL/],
  ['RCPT and DATA', /^RCPT/],
  ['DATA and 354', /^DATA/],
]

for (const [name, line] of steps) {
  test(`killed between ${name}: nothing was taken; then every message arrives, once`, async () => {
    const desk = await OutboundProcess.open()
    let silent = 0
    desk.sink.script = (command) => (line.test(command) ? ((silent += 1), null) : undefined)
    const ids = await desk.send()
    await expect.poll(() => silent, timeout).toBeGreaterThanOrEqual(1)
    await expect.poll(() => desk.statuses(ids), timeout).toEqual(['sending'])
    await desk.kill()
    desk.sink.script = undefined
    await desk.start()
    await delivered(desk, ids, { times: 1, attempts: 2 })
  })
}

test('killed in the middle of the octets: none of them is taken for a message; then every one arrives, once', async () => {
  const desk = await OutboundProcess.open()
  const deaf: Socket[] = []
  desk.sink.script = (command, { socket }) => {
    if (command !== 'DATA') return undefined
    deaf.push(socket.pause())
    return '354 Go on'
  }
  // more than lies in the buffers of a connection
  const attachments = [{ filename: 'large.bin', content: 'x'.repeat(8_000_000) }]
  const ids = await desk.send({ attachments }, everyone.slice(0, 1))
  await expect.poll(() => deaf.length, timeout).toBe(1)
  await sleep(200)
  await desk.kill()
  deaf[0]!.resume()
  await expect.poll(() => desk.sink.open, timeout).toBe(0)
  expect(desk.sink.messages.length + desk.sink.rejected.length).toBe(0)
  desk.sink.script = undefined
  await desk.start()
  await delivered(desk, ids, { times: 1, attempts: 2 })
})

test('killed between the last octet and 250: sent again, the same octets', async () => {
  const desk = await OutboundProcess.open()
  desk.sink.script = (line) => (line === '<end>' ? null : undefined)
  const ids = await desk.send()
  await expect.poll(() => desk.sink.rejected.length, timeout).toBe(count)
  await desk.kill()
  desk.sink.script = undefined
  await desk.start()
  await delivered(desk, ids, { times: 2, attempts: 2 })
})

test('killed between 250 and our record of it: sent again, the same octets and the same return path', async () => {
  const desk = await OutboundProcess.open()
  desk.hold(beforeResults)
  const ids = await desk.send()
  await expect.poll(() => desk.sink.messages.length, timeout).toBe(count)
  await desk.box.said('result of an attempt could not be stored', count)
  await desk.kill()
  expect(desk.rows("SELECT 1 FROM email_recipients WHERE status <> 'sending'")).toEqual([])
  desk.release()
  await desk.start()
  await delivered(desk, ids, { times: 2, attempts: 2 })
  for (const same of Map.groupBy(desk.sink.messages, ({ to }) => to.join()).values())
    expect(new Set(same.map(({ from }) => from)).size).toBe(1)
})

test('killed between the record of one recipient and the next: who has it is not sent it again', async () => {
  const desk = await OutboundProcess.open()
  const to = ['ann@far0.test', 'ben@far0.test', 'cas@far0.test']
  desk.sink.script = (line) => (line.startsWith('RCPT TO:<ann@') || !line.startsWith('RCPT') ? undefined : null)
  const { id } = await desk.post(`/v1/identities/${desk.ada.id}/emails`, { to, body: 'to all' })
  await expect.poll(() => desk.sink.commands.filter((line) => line.startsWith('RCPT')).length, timeout).toBeGreaterThan(1)
  await expect.poll(async () => (await desk.email(id)).deliveries[0]!.status, timeout).toBe('delivered')
  await desk.kill()
  expect(desk.sink.messages.map((message) => message.to)).toEqual([['ann@far0.test']])
  desk.sink.script = undefined
  await desk.start()
  await expect.poll(async () => (await desk.email(id)).status, timeout).toBe('delivered')
  expect(desk.sink.messages.flatMap((message) => message.to).toSorted()).toEqual(to)
  expect(new Set(desk.sink.messages.map(({ raw }) => raw)).size).toBe(1)
})

test('killed while scheduled: it leaves at its time or, when that is past, at the next start; once, and signed', async () => {
  const desk = await OutboundProcess.open()
  const ids = await desk.send({ send_at: after(hour) }, [...everyone, ...everyone])
  expect(await desk.statuses(ids)).toEqual(['scheduled'])
  // nothing leaves before the box is killed, however long the calls take
  desk.hold(beforeAttempts)
  const [early, later] = [ids.slice(0, count), ids.slice(count)]
  const soon = await desk.reschedule(early, after(500))
  const late = await desk.reschedule(later, after(5000))
  await desk.kill()
  await sleep(Math.max(0, ...soon.map((at) => Date.parse(at) - Date.now() + 100)))
  expect(desk.sink.messages).toEqual([])
  desk.release()
  await desk.start()
  await delivered(desk, early, { times: 1, attempts: 1 })
  await delivered(desk, ids, { times: 1, attempts: 1 })
  for (const { raw } of desk.sink.messages) expect(raw.match(/^DKIM-Signature:/gm)).toHaveLength(2)
  const dates = desk.sink.messages.map(({ raw }) => Date.parse(/^Date: (.*)\r$/m.exec(raw)![1]!))
  expect(dates.toSorted((one, other) => one - other)).toEqual(
    [...soon, ...late].map((at) => Math.floor(Date.parse(at) / 1000) * 1000).toSorted((one, other) => one - other),
  )
})

test('killed between the release of what was scheduled and our record of it: no recipient gets two copies', async () => {
  const desk = await OutboundProcess.open()
  desk.hold(`${beforeResults} WHEN NEW.kind <> 'email'`)
  const ids = await desk.send({ send_at: after(hour) })
  await desk.reschedule(ids, after(0))
  await desk.box.said('result of an attempt could not be stored')
  const ended = "SELECT 1 FROM deliveries_queue WHERE kind = 'email' AND state = 'done'"
  await expect.poll(() => desk.rows(ended).length, timeout).toBeGreaterThan(0)
  await expect
    .poll(() => desk.rows("SELECT 1 FROM deliveries_queue WHERE kind = 'email' AND state <> 'done'"), timeout)
    .toEqual([])
  await desk.kill()
  expect(desk.rows("SELECT 1 FROM deliveries_queue WHERE kind <> 'email' AND state = 'done'")).toEqual([])
  desk.release()
  await desk.start()
  await expect.poll(() => desk.rows("SELECT 1 FROM deliveries_queue WHERE state <> 'done'"), timeout).toEqual([])
  await delivered(desk, ids, { times: 1, attempts: 1 })
})

test('killed while cancelling: what was answered as cancelled never leaves, everything else does, and each says so', async () => {
  const desk = await OutboundProcess.open()
  const input = { send_at: after(hour) }
  const ids = (await Promise.all([1, 2, 3, 4, 5].map(() => desk.send(input)))).flat()
  const answered = new Set<string>()
  const left = [...ids]
  let killed: Promise<void> | undefined
  const cancel = async (): Promise<void> => {
    for (let id = left.shift(); id !== undefined && killed === undefined; id = left.shift()) {
      await desk.post(`/v1/identities/${desk.ada.id}/emails/${id}/cancel`, {})
      answered.add(id)
      if (answered.size > ids.length / 3) killed ??= desk.kill()
    }
  }
  // three calls are always under way, also when the box is killed
  await Promise.allSettled([cancel(), cancel(), cancel()])
  await killed
  expect(answered.size).toBeGreaterThan(ids.length / 3)
  await desk.start()
  const statuses = async (): Promise<string[]> => Promise.all(ids.map(async (id) => (await desk.email(id)).status))
  const before = await statuses()
  await desk.reschedule(
    ids.filter((_, index) => before[index] === 'scheduled'),
    after(0),
  )
  await expect.poll(statuses).not.toContain('scheduled')
  await expect.poll(async () => new Set(await statuses())).toEqual(new Set(['cancelled', 'delivered']))
  const arrived = new Set(desk.sink.messages.map(({ raw }) => idOf(raw)))
  expect(desk.sink.messages).toHaveLength(arrived.size)
  for (const id of ids) {
    const { status, message_id } = await desk.email(id)
    expect(arrived.has(message_id)).toBe(status === 'delivered')
    if (answered.has(id)) expect(status).toBe('cancelled')
  }
})

test('killed between claim and inbox, of one of our own: it is there once', async () => {
  const desk = await OutboundProcess.open()
  desk.hold("BEFORE INSERT ON emails WHEN NEW.direction = 'inbound'")
  const { id } = await desk.post(`/v1/identities/${desk.ada.id}/emails`, { to: desk.bob.email, body: 'within' })
  await expect.poll(async () => (await desk.email(id)).status, timeout).toMatch(/sending|deferred/)
  await desk.kill()
  expect(desk.rows("SELECT 1 FROM emails WHERE direction = 'inbound'")).toEqual([])
  desk.release()
  // what was put off is due at once
  desk.change("UPDATE deliveries_queue SET due_at = '2026' WHERE state = 'waiting'")
  desk.change("UPDATE delivery_lanes SET due_at = '2026' WHERE due_at IS NOT NULL")
  await desk.start()
  await expect.poll(async () => (await desk.email(id)).status, timeout).toBe('delivered')
  expect((await desk.inbox('&duplicates=true')).map(({ body_text }) => body_text)).toHaveLength(1)
})

test('killed between the inbox of one of our own and the record of it: the second copy is marked, and is no news', async () => {
  const desk = await OutboundProcess.open()
  desk.hold(beforeResults)
  const { id, message_id } = await desk.post(`/v1/identities/${desk.ada.id}/emails`, { to: desk.bob.email, body: 'within' })
  await desk.box.said('result of an attempt could not be stored')
  await desk.kill()
  desk.release()
  await desk.start()
  await expect.poll(async () => (await desk.email(id)).status, timeout).toBe('delivered')
  const [first, ...others] = await desk.inbox()
  expect(others).toEqual([])
  expect(first!.message_id).toBe(message_id)
  const all = await desk.inbox('&duplicates=true')
  expect(all.map((one) => desk.rows(`SELECT duplicate_of FROM emails WHERE id = '${one.id}'`)[0])).toEqual([
    { duplicate_of: first!.id },
    { duplicate_of: null },
  ])
  expect(desk.rows("SELECT 1 FROM events WHERE type = 'email.received'")).toHaveLength(1)
  expect(desk.sink.connections).toBe(0)
})

/** Waits until all are delivered; each was sent so many times, every time in the octets that we keep. */
async function delivered(
  desk: OutboundProcess,
  ids: string[],
  { times, attempts }: { times: number; attempts: number },
): Promise<void> {
  await expect.poll(() => desk.statuses(ids)).toEqual(['delivered'])
  const copies = Map.groupBy([...desk.sink.messages.map(({ raw }) => raw), ...desk.sink.rejected], idOf)
  for (const id of ids) {
    const { message_id, deliveries } = await desk.email(id)
    const octets = copies.get(message_id) ?? []
    expect(octets).toHaveLength(times)
    const kept = await desk.source(id)
    expect(octets.every((one) => one === kept)).toBe(true)
    expect(deliveries).toMatchObject([{ status: 'delivered', attempts, next_attempt_at: null, smtp_code: 250 }])
    const outcomes = deliveries[0]!.history!.map(({ outcome }) => outcome)
    expect(outcomes).toEqual([...Array<string>(attempts - 1).fill('interrupted'), 'delivered'])
    const told = desk.rows(`SELECT type FROM events WHERE type LIKE 'email.%' AND data LIKE '%${id}%' ORDER BY seq`)
    expect(told).toEqual([{ type: 'email.queued' }, { type: 'email.delivered' }])
  }
}

function after(milliseconds: number): string {
  return new Date(Date.now() + milliseconds).toISOString()
}

function idOf(raw: string): string | null {
  return /^Message-ID: (.*?)\r?$/im.exec(raw)?.[1] ?? null
}
