import { expect, test, vi } from 'vitest'
import { sql } from '../../src/store/database.ts'
import { movable } from '../support/held-clock.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'

const day = 86_400_000

test('a greylist that looks at the sender knows it again the next day: each attempt has the same return path', async () => {
  const clock = movable()
  const sink = await MailSink.start()
  const { box, send, until, inside } = await sendingBox(sink.port, {}, { clock })
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  sink.script = (line) => (line.startsWith('RCPT') ? '450 4.2.0 Greylisted' : undefined)
  const id = await send('bob@far.test')
  await until(id, 'deferred')
  sink.script = undefined
  clock.ahead = day
  inside().queue.wake()
  await until(id, 'delivered')
  const senders = sink.commands.filter((line) => line.startsWith('MAIL')).map((line) => /<.*>/.exec(line)![0])
  expect(senders).toHaveLength(2)
  expect(new Set(senders).size).toBe(1)
})

test('what a box brought to one of its own before it went down is there once, however long it was down', async () => {
  const clock = movable()
  const { box, send, until, inside } = await sendingBox(1, {}, { clock })
  const bob = (await box.call('POST', '/v1/identities', { name: 'Bob' })).body['id'] as string
  const id = await send('bob@pillarbox.test')
  await until(id, 'delivered')
  // what is left behind by a process that died between the two
  await vi.waitFor(
    () =>
      inside().database.transaction(async (tx) => {
        await tx.run(sql`UPDATE email_recipients SET status = 'sending' WHERE email_id = ${id}`)
        await tx.run(sql`UPDATE deliveries_queue SET state = 'running', ended_at = NULL`)
        await tx.run(sql`UPDATE deliveries_queue SET first_outcome = NULL, first_ended_at = NULL, first_answer = NULL`)
      }),
    { timeout: 100_000 },
  )
  clock.ahead = 3 * day
  await box.restart()
  expect(await until(id, 'delivered')).toMatchObject({ attempts: 2 })
  const list = async (query: string): Promise<number> =>
    (await box.call('GET', `/v1/identities/${bob}/emails${query}`)).body.data.length
  expect(await list('?duplicates=true')).toBe(2)
  expect(await list('')).toBe(1)
})
