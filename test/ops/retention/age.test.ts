import { statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { message, deliver } from '../../support/appliance.ts'
import { says, WebhookSink } from '../../support/webhook-sink.ts'
import { day, kept } from './box.ts'

describe('the octets of mail', () => {
  const files = message(
    { Subject: 'With a file', 'Content-Type': 'multipart/mixed; boundary=b' },
    '--b\n\nYour code is 493817\n--b\nContent-Type: text/plain\nContent-Disposition: attachment; filename=a.txt\n\nSome notes\n--b--\n',
  )

  test('go after their time; text, codes and attachments’ names stay, and the room is free', async () => {
    const { box, at, ada, clock, job, mail, rows } = await kept({ PILLARBOX_RETENTION__RAW: '90 d' })
    const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
    await deliver(box.smtp, { to: [ada.email, bob['email'] as string], raw: files })
    const { body: list } = await box.call('GET', `${at}/emails`)
    const id = list.data[0].id as string
    clock.advance(45 * day)
    const young = await mail('Young')
    clock.advance(45 * day + 1)
    const send_at = new Date(clock.now() + 30 * day).toISOString()
    await job('let-go-of-raw-mail')
    const { body: email } = await box.call('GET', `${at}/emails/${id}`)
    expect(email).toMatchObject({
      body_text: expect.stringContaining('493817'),
      codes: ['493817'],
      attachments: [{ filename: 'a.txt' }],
    })
    for (const path of ['raw', 'attachments/0']) {
      const { status, body } = await box.call('GET', `${at}/emails/${id}/${path}`)
      expect([path, status, body.error]).toMatchObject([path, 404, { code: 'raw_expired' }])
    }
    expect((await box.call('GET', `${at}/emails/${id}/attachments`)).body.data).toHaveLength(1)
    const forward = await box.call('POST', `${at}/emails/${id}/forward`, { to: 'postmaster@pillarbox.test', send_at })
    expect([forward.status, forward.body.error.code]).toEqual([404, 'raw_expired'])
    expect((await box.call('GET', `${at}/emails/${young}/raw`)).status).toBe(200)
    const { body: other } = await box.call('GET', `${at}/emails/${young}`)
    expect((await box.call('GET', at)).body['storage']).toMatchObject({ used: other['size'] })
    expect((await box.call('GET', '/v1/billing/subscription')).body['usage'].storage_bytes).toBe(other['size'])
    expect(rows('SELECT length(bytes) AS n FROM blobs ORDER BY id LIMIT 1')).toEqual([{ n: 0 }])
    // what is deleted later takes nothing from the room of others
    await box.call('DELETE', `${at}/emails/${id}?purge=true`)
    expect((await box.call('GET', '/v1/billing/subscription')).body['usage'].storage_bytes).toBe(other['size'])
    expect((await box.call('GET', `/v1/identities/${bob.id}/emails`)).body.data).toMatchObject([{ subject: 'With a file' }])
  })

  test('stay for what waits to be sent, and where nothing is said', async () => {
    const { box, at, clock, job } = await kept({ PILLARBOX_RETENTION__RAW: '7 d' })
    const send_at = new Date(clock.now() + 20 * day).toISOString()
    const { body: later } = await box.call('POST', `${at}/emails`, { to: 'postmaster@pillarbox.test', body: 'Later', send_at })
    clock.advance(10 * day)
    await job('let-go-of-raw-mail')
    expect((await box.call('GET', `${at}/emails/${later.id}/raw`)).status).toBe(200)
    const usual = await kept()
    const id = await usual.mail('Old')
    usual.clock.advance(3650 * day)
    await usual.job('let-go-of-raw-mail')
    expect((await usual.box.call('GET', `${usual.at}/emails/${id}/raw`)).status).toBe(200)
  })
})

describe('the log', () => {
  test('forgets what is older than a year: since with such an event is refused, the mail is still there', async () => {
    const { box, at, clock, job, mail, rows } = await kept()
    const id = await mail('Old')
    const { body: before } = await box.call('GET', `${at}/events`)
    const old = before.data[0].id as string
    clock.advance(200 * day)
    await mail('Young')
    const young = (await box.call('GET', `${at}/events`)).body.data[0].id as string
    clock.advance(166 * day)
    await job('forget-events')
    expect((await box.call('GET', `${at}/events`)).body.data).toMatchObject([{ id: young }])
    for (const path of [`events?since=${old}`, `wait?timeout=0&since=${old}`]) {
      const { status, body } = await box.call('GET', `${at}/${path}`)
      expect([path, status, body.error]).toMatchObject([path, 400, { code: 'since_expired', param: 'since' }])
    }
    expect((await box.call('GET', `${at}/emails/${id}`)).status).toBe(200)
    // the newest stays, however old: new events come after it
    clock.advance(3650 * day)
    await job('forget-events')
    expect(rows('SELECT count(*) AS n FROM events')).toEqual([{ n: 1 }])
    await mail('Next')
    expect((await box.call('GET', `${at}/events`)).body.data).toMatchObject([{ data: { subject: 'Next' } }, { id: young }])
  })

  test('forgets what was written while the clock was ahead with what came before and after it', async () => {
    const { clock, job, mail, rows } = await kept({ PILLARBOX_RETENTION__EVENTS: '1 d' })
    await mail('Old')
    clock.advance(400 * day)
    for (let number = 0; number < 70; number += 1) await mail(`Ahead ${number}`)
    clock.advance(-400 * day)
    await mail('After')
    await job('forget-events')
    expect(rows('SELECT count(*) AS n FROM events WHERE resource_id IS NOT NULL')[0]!['n']).toBeGreaterThan(71)
    clock.advance(3 * day)
    await mail('New')
    await job('forget-events')
    expect(rows('SELECT count(*) AS n FROM events')).toEqual([{ n: 1 }])
  })

  test('keeps what a webhook has yet to be told, and what nobody has read', async () => {
    const { box, at, clock, job, mail } = await kept({
      PILLARBOX_RETENTION__EVENTS: '1 d',
      PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
    })
    const sink = await WebhookSink.start()
    sink.behaviour = says(503)
    await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['email.received'] })
    await mail('Told late')
    await box.settled()
    const told = sink.received[0]!.body
    clock.advance(2 * day)
    await box.call('PATCH', at, { metadata: { some: 'thing' } })
    await job('forget-events')
    const { body: left } = await box.call('GET', `${at}/events`)
    expect(left.data.map(({ id, type }) => [id === told.id, type])).toEqual([
      [false, 'identity.updated'],
      [true, 'email.received'],
    ])
  })

  test('forgets in pieces, and what was in the trash with it', async () => {
    const { box, at, clock, job, mail, rows } = await kept({ PILLARBOX_RETENTION__EVENTS: '1 d' })
    const id = await mail('Thrown away')
    for (let turn = 0; turn < 150; turn += 1) await box.call('PATCH', at, { metadata: { turn } })
    await box.call('DELETE', `${at}/emails/${id}`)
    clock.advance(2 * day)
    await box.call('PATCH', at, { metadata: { last: true } })
    await box.settled()
    await job('forget-events')
    expect(rows('SELECT count(*) AS n FROM events')).toEqual([{ n: 1 }])
    expect(rows('SELECT * FROM hidden_events')).toEqual([])
    expect((await box.call('POST', `${at}/emails/${id}/restore`)).status).toBe(200)
  })
})

test('it is kept for 30 days how deliveries went, or as long as is said', async () => {
  for (const [env, days] of [
    [{}, 30],
    [{ PILLARBOX_RETENTION__DELIVERIES: '3 d' }, 3],
  ] as const) {
    const { box, at, clock, job, rows } = await kept(env)
    await box.call('POST', `${at}/emails`, { to: 'postmaster@pillarbox.test', body: 'x' })
    await box.settled()
    expect(rows(`SELECT state FROM deliveries_queue WHERE kind = 'email'`)).toEqual([{ state: 'done' }])
    const clear = async (): Promise<number> => {
      await job('clear-deliveries')
      return rows('SELECT * FROM deliveries_queue').length
    }
    clock.advance(days * day)
    expect(await clear()).toBe(1)
    clock.advance(1)
    expect(await clear()).toBe(0)
  }
})

test('room that deleted mail took in the file is given back to the disk', async () => {
  const { box, at, mail, job } = await kept()
  const file = join(box.directory, 'data', 'pillarbox.db')
  const ids: string[] = []
  const noise = Array.from({ length: 40_000 }, (_, line) => `${Math.sin(line)} ${Math.cos(line)} ${Math.tan(line)}\n`).join('')
  for (let turn = 0; turn < 6; turn += 1) ids.push(await mail(`Large ${turn}`, noise))
  await mail('Small')
  for (const id of ids) await box.call('DELETE', `${at}/emails/${id}?purge=true`)
  await box.restart()
  const before = statSync(file).size
  await job('empty-trash')
  await box.restart()
  const after = statSync(file).size
  expect(before).toBeGreaterThan(4 * 1024 * 1024)
  expect(after).toBeLessThan(before / 1.5)
  expect((await box.call('GET', `${at}/emails`)).body.data).toMatchObject([{ subject: 'Small' }])
})
