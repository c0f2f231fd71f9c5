import { expect, test, vi } from 'vitest'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'
import { addedDomain } from '../support/verified-domain.ts'
import { sql } from '../../src/store/database.ts'

async function two() {
  const sink = await MailSink.start()
  const sending = await sendingBox(sink.port)
  const { body } = await sending.box.call('POST', '/v1/identities', { name: 'Bob' })
  return { sink, bob: body['id'] as string, ...sending }
}

test('mail between two of one box is kept for both, and no server hears of it', async () => {
  const { sink, bob, ada, box, send, until, events } = await two()
  const id = await send('bob+notes@pillarbox.test', { fields: { Subject: 'Between us' } })
  expect(await until(id, 'delivered')).toMatchObject({ mx: 'pillarbox.test', tls: null, attempts: 1 })
  expect(await events(id)).toEqual(['email.delivered'])
  const { body } = await box.call('GET', `/v1/identities/${bob}/emails`)
  expect(body.data).toMatchObject([
    {
      subject: 'Between us',
      from: 'ada@pillarbox.test',
      to: 'bob+notes@pillarbox.test',
      tag: 'notes',
      verified_domain: 'pillarbox.test',
    },
  ])
  const threads = await Promise.all([ada, bob].map((who) => box.call('GET', `/v1/identities/${who}/threads`)))
  for (const one of threads) expect(one.body.data).toMatchObject([{ subject: 'Between us', message_count: 1 }])
  const raw = await box.call<string>('GET', `/v1/identities/${bob}/emails/${body.data[0]!['id']}/raw`)
  expect(raw.body).toMatch(/^Return-Path: <bounce\+[a-z2-7]{29}@pillarbox\.test>\r\n/)
  expect(raw.body).toContain('X-Signed: yes\r\nFrom: Ada')
  expect(sink.connections).toBe(0)
})

test('whom the box has not, and whom it takes nothing for now, is answered as by any server', async () => {
  const { bob, box, send, until } = await two()
  expect(await until(await send('nobody@pillarbox.test'), 'bounced')).toMatchObject({ smtp_code: 550, enhanced_code: '5.1.1' })
  await box.call('PATCH', `/v1/identities/${bob}`, { status: 'suspended' })
  expect(await until(await send('bob@pillarbox.test'), 'deferred')).toMatchObject({ smtp_code: 450, enhanced_code: '4.2.1' })
})

test('what changed since a message was queued is heeded before it leaves', async () => {
  const { sink, ada, box, send, until, inside, events } = await two()
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  await box.call('POST', '/v1/suppressions', { email: 'eve@far.test' })
  const suppressed = await send('eve@far.test')
  expect(await until(suppressed, 'failed')).toMatchObject({ response: 'eve@far.test is suppressed' })
  expect(await events(suppressed)).toEqual(['email.failed'])
  await box.call('PATCH', `/v1/identities/${ada}`, { status: 'suspended' })
  expect(await until(await send('bob@far.test'), 'deferred')).toMatchObject({ response: expect.stringContaining('suspended') })
  await inside().database.transaction((tx) => tx.run(sql`UPDATE domains SET status = 'pending'`))
  await box.restart()
  await box.call('PATCH', `/v1/identities/${ada}`, { status: 'active' })
  expect(await until(await send('carl@far.test'), 'deferred')).toMatchObject({
    response: expect.stringContaining('not verified'),
  })
  await until(await send('bob@pillarbox.test'), 'delivered')
  expect(sink.connections).toBe(0)
})

test('what waited because its sender was suspended leaves when it is active again; what waits for others goes on waiting', async () => {
  const { sink, ada, box, send, until } = await two()
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  sink.script = (line) => (line.startsWith('RCPT TO:<busy') ? '450 4.3.2 Later' : undefined)
  const busy = await send('busy@far.test')
  const before = await until(busy, 'deferred')
  await box.call('PATCH', `/v1/identities/${ada}`, { status: 'suspended' })
  const held = [await send('carl@far.test'), await send('bob@pillarbox.test')]
  for (const id of held) expect(await until(id, 'deferred')).toMatchObject({ response: expect.stringContaining('suspended') })
  await box.call('PATCH', `/v1/identities/${ada}`, { metadata: { still: 'suspended' } })
  expect((await box.call('PATCH', `/v1/identities/${ada}`, { status: 'active' })).status).toBe(200)
  for (const id of held) expect(await until(id, 'delivered')).toMatchObject({ attempts: 2 })
  expect(await until(busy, 'deferred')).toEqual(before)
})

test('it leaves all the same where a stop of the box interrupted that', async () => {
  const { ada, box, send, until, inside } = await two()
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  await box.call('PATCH', `/v1/identities/${ada}`, { status: 'suspended' })
  const held = await send('carl@far.test')
  await until(held, 'deferred')
  // as the transaction of the call leaves it
  await inside().database.transaction((tx) => tx.run(sql`UPDATE identities SET status = 'active' WHERE id = ${ada}`))
  await box.app.jobs.find(({ name }) => name === 'retry-mail-of-resumed-identities')!.run()
  expect(await until(held, 'delivered')).toMatchObject({ attempts: 2 })
})

test('a message over which the box goes down is tried apart from others, then set aside, and others go on', async () => {
  const { sink, box, send, until, inside } = await two()
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  sink.script = (line) => (line.startsWith('RCPT TO:<poison') ? '450 4.3.0 Later' : undefined)
  const id = await send('poison@far.test')
  const { delivery_id } = await vi.waitFor(
    async () => {
      await until(id, 'deferred')
      return (await inside().database.get<{ delivery_id: string }>(
        sql`SELECT delivery_id FROM email_recipients WHERE email_id = ${id}`,
      ))!
    },
    { timeout: 100_000 },
  )
  // what is left behind by a process that died in an attempt, three times each
  const past = new Date(0).toISOString()
  const crashes = (from: number): Promise<void> =>
    inside().database.transaction(async (tx) => {
      const row = await tx.get<{ seq: number }>(
        sql`UPDATE deliveries_queue SET attempts = ${from + 2}, due_at = ${past} WHERE id = ${delivery_id} RETURNING seq`,
      )
      for (const number of [from, from + 1, from + 2]) {
        await tx.run(
          sql`INSERT INTO delivery_attempts (delivery_seq, number, started_at, ended_at, outcome)
            VALUES (${row!.seq}, ${number}, ${past}, ${past}, 'interrupted')`,
        )
      }
      await tx.run(sql`UPDATE delivery_lanes SET due_at = ${past} WHERE lane = 'far.test'`)
    })
  const tried = async (): Promise<string | null> => (await until(id, /deferred|failed/)).response
  for (const from of [2, 6]) {
    await crashes(from)
    inside().queue.wake()
    await vi.waitFor(async () => expect((await until(id, 'deferred')).attempts).toBe(from + 3), 100_000)
    expect(await tried()).toMatch(/^the box crashed repeatedly/)
  }
  await crashes(10)
  sink.script = undefined
  inside().queue.wake()
  expect(await until(id, 'failed')).toMatchObject({
    response: 'the box crashed 9 times while sending this message; it is not retried',
  })
  await until(await send('bob@far.test'), 'delivered')
  expect(sink.messages.map(({ to }) => to)).toEqual([['bob@far.test']])
})

test('identities of different domains of the box write to each other, and answers find the way back', async () => {
  const { sink, ada, box, until } = await two()
  await addedDomain(box, 'other.test')
  const { body: zoe } = await box.call('POST', '/v1/identities', { name: 'Zoe', email_domain: 'other.test' })
  const { body: sent } = await box.call('POST', `/v1/identities/${ada}/emails`, { to: 'Zoe <ZOE@Other.test>', body: 'Hi' })
  expect(await until(sent.id, 'delivered')).toMatchObject({ mx: 'pillarbox.test', tls: null })
  const { body: inbox } = await box.call('GET', `/v1/identities/${zoe.id}/emails`)
  expect(inbox.data).toMatchObject([{ from: 'ada@pillarbox.test', verified_domain: 'pillarbox.test' }])
  const answer = await box.call('POST', `/v1/identities/${zoe.id}/emails/${inbox.data[0].id}/reply`, { body: 'Hi too' })
  expect(answer.status).toBe(201)
  await vi.waitFor(
    async () => {
      const { body } = await box.call('GET', `/v1/identities/${ada}/emails`)
      expect(body.data).toMatchObject([{ from: 'zoe@other.test', verified_domain: 'other.test', thread_id: sent.thread_id }])
    },
    { timeout: 100_000 },
  )
  expect(sink.connections).toBe(0)
})

test('who is deleted while a message is put off, or waits for its time, sends nothing more', async () => {
  const { sink, ada, box, inside, email } = await two()
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  sink.script = (line) => (line.startsWith('RCPT TO:<late') ? '451 4.3.0 Later' : undefined)
  const write = async (to: string, more = {}): Promise<string> => {
    const { status, body } = await box.call('POST', `/v1/identities/${ada}/emails`, { to, ...more })
    expect(status).toBe(201)
    return body.id as string
  }
  const late = await write('late@far.test')
  await vi.waitFor(async () => expect((await email(late)).status).toBe('deferred'), 100_000)
  const gone = await write('late2@far.test')
  await vi.waitFor(async () => expect((await email(gone)).status).toBe('deferred'), 100_000)
  await write('eve@far.test', { send_at: new Date(Date.now() + 3_600_000).toISOString() })
  await box.call('DELETE', `/v1/identities/${ada}/emails/${gone}`)
  await box.call('DELETE', `/v1/identities/${ada}`)
  const before = sink.commands.length
  sink.script = undefined
  const { database, queue } = inside()
  await database.transaction(async (tx) => {
    await tx.run(sql`UPDATE deliveries_queue SET due_at = created_at WHERE state = 'waiting'`)
    await tx.run(sql`UPDATE delivery_lanes SET due_at = '2020-01-01T00:00:00.000Z'`)
  })
  queue.wake()
  const states = (): Promise<{ state: string }[]> =>
    database.all(sql`SELECT DISTINCT state FROM deliveries_queue WHERE kind = 'email'`)
  await vi.waitFor(async () => expect(await states()).toEqual([{ state: 'failed' }]), { timeout: 100_000 })
  const rows = await database.all<{ address: string; status: string }>(
    sql`SELECT address, status FROM email_recipients ORDER BY seq`,
  )
  expect(rows.map((row) => ({ ...row }))).toEqual([
    { address: 'late@far.test', status: 'cancelled' },
    { address: 'late2@far.test', status: 'cancelled' },
    { address: 'eve@far.test', status: 'cancelled' },
  ])
  expect(sink.commands.slice(before).filter((line) => /^(?:MAIL|RCPT|DATA)/.test(line))).toEqual([])
})
