import { openStore } from '../../support/open-store.ts'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { Statements } from '../../../src/store/sqlite/statements.ts'
import { deliver, message } from '../../support/appliance.ts'
import { Dialogue } from '../../support/smtp.ts'
import { upgraded } from '../../support/upgraded.ts'
import { day, kept } from './box.ts'

const secret = 'xyzzyplugh'

describe('a deleted e-mail', () => {
  test('is nowhere but in the trash, and is whole again when it is restored', async () => {
    const { box, at, mail } = await kept()
    const other = await mail('Confidential', 'Another of the thread\n')
    const id = await mail('Confidential', `The word is ${secret}\n`)
    const before = await Promise.all(
      [`emails/${id}`, 'emails', 'threads', 'messages', 'events?type=email.received', `emails/search?query=${secret}`].map(
        async (path) => [path, (await box.call('GET', `${at}/${path}`)).body],
      ),
    )
    expect((await box.call('DELETE', `${at}/emails/${id}`)).body).toEqual({ id, deleted: true })
    expect((await box.call('DELETE', `${at}/emails/${id}`)).status).toBe(404)
    for (const [method, path, body] of [
      ['GET', ''],
      ['PATCH', '', { read: true }],
      ['GET', '/raw'],
      ['GET', '/attachments'],
    ] as const) {
      expect([path, (await box.call(method, `${at}/emails/${id}${path}`, body)).status]).toEqual([path, 404])
    }
    for (const path of [
      'emails?direction=all&duplicates=true',
      'threads',
      'messages',
      `emails/search?query=${secret}`,
      'events',
      'wait?timeout=0',
    ]) {
      const { status, body } = await box.call('GET', `${at}/${path}`)
      expect([path, status]).toEqual([path, 200])
      expect(JSON.stringify(body)).not.toContain(secret)
    }
    const { body: threads } = await box.call('GET', `${at}/threads`)
    expect(threads.data).toMatchObject([{ message_count: 1, unread_count: 1, snippet: 'Another of the thread' }])
    const { body: trash } = await box.call('GET', `${at}/emails?trash=true`)
    expect(trash.data).toMatchObject([{ id, subject: 'Confidential', deleted_at: expect.stringMatching(/^2026-11-20T/) }])

    const restored = await box.call('POST', `${at}/emails/${id}/restore`)
    expect([restored.status, restored.body['body_text']]).toEqual([200, expect.stringContaining(secret)])
    for (const [path, body] of before)
      expect([path, (await box.call('GET', `${at}/${path as string}`)).body]).toEqual([path, body])
    expect((await box.call('GET', `${at}/emails?trash=true`)).body.data).toEqual([])
    expect((await box.call('POST', `${at}/emails/${id}/restore`)).status).toBe(404)
    expect((await box.call('GET', `${at}/emails/${other}`)).status).toBe(200)
  })

  test('brings its thread back when it was the only one of it', async () => {
    const { box, at, mail } = await kept()
    const id = await mail('Alone')
    const { body: before } = await box.call('GET', `${at}/threads`)
    await box.call('DELETE', `${at}/emails/${id}`)
    expect((await box.call('GET', `${at}/threads`)).body.data).toEqual([])
    await box.call('POST', `${at}/emails/${id}/restore`)
    expect((await box.call('GET', `${at}/threads`)).body).toEqual(before)
    // and what answers it joins it
    const raw = message({ Subject: 'Re: Alone', 'Message-ID': '<answer@sender.test>' }, 'Yes\n')
    await deliver(box.smtp, { to: (await box.call('GET', at)).body['email'] as string, raw })
    expect((await box.call('GET', `${at}/threads`)).body.data).toMatchObject([{ id: before.data[0].id, message_count: 2 }])
  })

  test('is found again when it is restored, also one whose search entry an older version deleted', async () => {
    const { box, at, mail } = await kept()
    const id = await mail('Confidential', `The word is ${secret}\n`)
    const found = async () => (await box.call('GET', `${at}/emails/search?query=${secret}`)).body.data.map((one) => one.id)
    for (const older of [false, true]) {
      await box.call('DELETE', `${at}/emails/${id}`)
      if (older) change(box.directory, 'DELETE FROM emails_search')
      expect(await found()).toEqual([])
      expect((await box.call('POST', `${at}/emails/${id}/restore`)).status).toBe(200)
      expect(await found()).toEqual([id])
    }
  })

  test('goes for good after 30 days, and nothing of it is left', async () => {
    const { box, at, clock, mail, job, rows, ada } = await kept()
    const id = await mail('Confidential', `The word is ${secret}\n`)
    const living = await mail('Living')
    const seq = rows(`SELECT seq FROM emails WHERE id = '${id}'`)[0]!['seq'] as number
    await box.call('DELETE', `${at}/emails/${id}`)
    clock.advance(30 * day - 1)
    await job('empty-trash')
    expect((await box.call('GET', `${at}/emails?trash=true`)).body.data).toHaveLength(1)
    clock.advance(1)
    await job('empty-trash')
    expect((await box.call('GET', `${at}/emails?trash=true`)).body.data).toEqual([])
    expect((await box.call('POST', `${at}/emails/${id}/restore`)).status).toBe(404)
    for (const table of ['trash', 'emails_trash', 'hidden_events'])
      expect([table, rows(`SELECT * FROM ${table}`)]).toEqual([table, []])
    expect(rows(`SELECT rowid FROM emails_search WHERE rowid = ${seq}`)).toEqual([])
    expect(rows('SELECT count(*) AS n FROM blobs')).toMatchObject([{ n: 2 }])
    const { body: email } = await box.call('GET', `${at}/emails/${living}`)
    expect(rows(`SELECT stored_bytes FROM identities WHERE id = '${ada.id}'`)).toMatchObject([{ stored_bytes: email['size'] }])
    const { body: events } = await box.call('GET', `${at}/events?type=email.received`)
    expect(events.data.at(-1)).toMatchObject({ data: { id, deleted: true } })
  })

  test('goes at once with purge, from the trash too, and where there is no trash', async () => {
    const { box, at, mail, rows } = await kept()
    const [one, two] = [await mail('One'), await mail('Two')]
    expect((await box.call('DELETE', `${at}/emails/${one}?purge=true`)).body).toEqual({ id: one, deleted: true })
    await box.call('DELETE', `${at}/emails/${two}`)
    expect((await box.call('GET', `${at}/emails?trash=true`)).body.data).toMatchObject([{ id: two }])
    expect((await box.call('DELETE', `${at}/emails/${two}?purge=true`)).status).toBe(200)
    expect((await box.call('DELETE', `${at}/emails/${two}?purge=true`)).status).toBe(404)
    expect(rows('SELECT (SELECT count(*) FROM blobs) + (SELECT count(*) FROM emails_trash) AS n')).toMatchObject([{ n: 0 }])
    const none = await kept({ PILLARBOX_RETENTION__TRASH: '0' })
    const three = await none.mail('Three')
    await none.box.call('DELETE', `${none.at}/emails/${three}`)
    expect((await none.box.call('GET', `${none.at}/emails?trash=true`)).body.data).toEqual([])
    expect(none.rows('SELECT count(*) AS n FROM blobs')).toMatchObject([{ n: 0 }])
  })

  test('is another’s: nobody else lists, restores or purges it', async () => {
    const { box, at, mail } = await kept()
    const id = await mail('Mine')
    await box.call('DELETE', `${at}/emails/${id}`)
    const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
    const { body: key } = await box.call('POST', '/v1/api-keys', { identity_id: bob.id })
    for (const [path, options] of [
      [`/v1/identities/${bob.id}`, {}],
      [at, { key: key['key'] as string }],
    ] as const) {
      expect((await box.call('POST', `${path}/emails/${id}/restore`, undefined, options)).status).toBe(404)
      expect((await box.call('DELETE', `${path}/emails/${id}?purge=true`, undefined, options)).status).toBe(404)
      expect((await box.call('GET', `${path}/emails?trash=true`, undefined, options)).body.data ?? []).toEqual([])
    }
    expect((await box.call('POST', `${at}/emails/${id}/restore`)).status).toBe(200)
  })

  test('shares its octets with the copies of others, who keep them', async () => {
    const { box, at, ada, clock, job } = await kept()
    const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
    const raw = message({ Subject: 'For two', 'Message-ID': '<two@sender.test>' }, `The word is ${secret}\n`)
    await deliver(box.smtp, { to: [ada.email, bob['email'] as string], raw })
    const { body: mine } = await box.call('GET', `${at}/emails`)
    await box.call('DELETE', `${at}/emails/${mine.data[0].id}`)
    clock.advance(31 * day)
    await job('empty-trash')
    const { body: theirs } = await box.call('GET', `/v1/identities/${bob.id}/emails`)
    const source = await box.call<string>('GET', `/v1/identities/${bob.id}/emails/${theirs.data[0].id}/raw`)
    expect(source.body).toContain(secret)
  })
})

test('a message that waits to be sent is not sent once it was deleted, nor when it is restored', async () => {
  const { box, at, rows } = await kept()
  const send_at = '2026-11-21T10:00:00.000Z'
  const { body: sent } = await box.call('POST', `${at}/emails`, {
    to: 'postmaster@pillarbox.test',
    subject: 'Later',
    body: 'x',
    send_at,
  })
  await box.call('DELETE', `${at}/emails/${sent.id}`)
  const restored = await box.call('POST', `${at}/emails/${sent.id}/restore`)
  expect(restored.body).toMatchObject({
    status: 'cancelled',
    deliveries: [{ status: 'cancelled' }],
    body_text: expect.stringContaining('x'),
  })
  expect(rows(`SELECT count(*) AS n FROM deliveries_queue WHERE state = 'waiting'`)).toMatchObject([{ n: 0 }])
  const { body: events } = await box.call('GET', `${at}/events?type=email.queued`)
  expect(events.data).toMatchObject([{ data: { id: sent.id, subject: 'Later' } }])
})

describe('room', () => {
  const body = `${'word '.repeat(14)}\n`.repeat(100)

  test('is taken by the trash, which makes way for mail that comes, the oldest first', async () => {
    const { box, at, mail, ada } = await kept({ PILLARBOX_MAIL__QUOTA: '24 KiB' })
    const [one, two, three] = [await mail('One', body), await mail('Two', body), await mail('Three', body)]
    const { size } = (await box.call('GET', `${at}/emails/${one}`)).body as unknown as { size: number }
    await box.call('DELETE', `${at}/emails/${one}`)
    await box.call('DELETE', `${at}/emails/${two}`)
    expect((await box.call('GET', at)).body['storage']).toEqual({
      used: 3 * size + 4,
      limit: 24 * 1024,
      media: 0,
      trash: 2 * size,
    })
    const four = await mail('Four', body)
    expect((await box.call('GET', `${at}/emails?trash=true`)).body.data.map((row) => row.id)).toEqual([two])
    expect((await box.call('GET', `${at}/emails`)).body.data.map((row) => row.id)).toEqual([four, three])
    // what would not fit even then takes nothing from the trash
    const huge = message({ Subject: 'Huge' }, body.repeat(3))
    expect(await deliver(box.smtp, { to: ada.email, raw: huge })).toMatch(/^452 4\.2\.2 /)
    expect((await box.call('GET', `${at}/emails?trash=true`)).body.data).toHaveLength(1)
  })

  test('is made for each copy of a message to several addresses of one mailbox', async () => {
    const { box, at, mail, ada } = await kept({ PILLARBOX_MAIL__QUOTA: '24 KiB' })
    for (const subject of ['One', 'Two', 'Three']) await box.call('DELETE', `${at}/emails/${await mail(subject, body)}`)
    const to = ['one', 'two'].map((tag) => ada.email.replace('@', `+${tag}@`))
    expect(await deliver(box.smtp, { to, raw: message({ Subject: 'Four' }, body) })).toMatch(/^250 /)
    expect((await box.call('GET', `${at}/emails?trash=true`)).body.data).toHaveLength(1)
    expect((await box.call('GET', `${at}/emails`)).body.data).toHaveLength(2)
  })

  test('is not made for who only says what it would send', async () => {
    const { box, at, mail, ada } = await kept({ PILLARBOX_MAIL__QUOTA: '16 KiB' })
    for (const subject of ['One', 'Two']) await box.call('DELETE', `${at}/emails/${await mail(subject, body)}`)
    const client = await Dialogue.hello(box.smtp.port)
    for (let turn = 0; turn < 3; turn += 1) {
      expect(await client.say('MAIL FROM:<sam@sender.test> SIZE=10000')).toMatch(/^250 /)
      expect(await client.say(`RCPT TO:<${ada.email}>`)).toMatch(/^250 /)
      await client.say('RSET')
    }
    client.destroy()
    expect((await box.call('GET', `${at}/emails?trash=true`)).body.data).toHaveLength(2)
  })

  test('is there for what is sent, and for pictures, once the trash has made way', async () => {
    const { box, at, ada, mail } = await kept({ PILLARBOX_LIMITS__STORAGE_BYTES: '24 KiB' })
    for (const subject of ['One', 'Two', 'Three']) await box.call('DELETE', `${at}/emails/${await mail(subject, body)}`)
    const input = { to: 'postmaster@pillarbox.test', body, send_at: '2026-11-21T10:00:00.000Z' }
    expect((await box.call('POST', `${at}/emails`, input)).status).toBe(201)
    expect((await box.call('GET', `${at}/emails?trash=true`)).body.data).toHaveLength(2)
    const media = [{ content_type: 'image/png', content: Buffer.alloc(8000).toString('base64') }]
    const { body: sms } = await box.call('POST', '/v1/sms/loopback/inject', {
      from: '+15550100199',
      to: ada.phone_number,
      body: 'Look',
      media,
    })
    expect(sms['media']).toMatchObject([{ status: 'kept' }])
    expect((await box.call('GET', `${at}/emails?trash=true`)).body.data).toHaveLength(1)
  })

  test('that the trash takes is known at each step, and no call adds up its items', async () => {
    const { box, at, ada, clock, job, mail, rows } = await kept({ PILLARBOX_RETENTION__RAW: '7 d' })
    const counted = async (): Promise<number> => {
      const trash = (await box.call('GET', at)).body['storage'].trash as number
      expect(rows('SELECT coalesce(sum(octets), 0) AS trash FROM trash')).toEqual([{ trash }])
      return trash
    }
    const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
    const one = await mail('One', body)
    await deliver(box.smtp, { to: [ada.email, bob['email'] as string], raw: message({ Subject: 'Two' }, body) })
    const two = (await box.call('GET', `${at}/emails?limit=1`)).body.data[0].id
    for (const id of [one, two]) await box.call('DELETE', `${at}/emails/${id}`)
    await box.call('POST', '/v1/sms/loopback/inject', { from: '+15550100199', to: ada.phone_number, body: 'Hello' })
    const { body: list } = await box.call('GET', `${at}/sms`)
    await box.call('DELETE', `${at}/sms/${list.data[0].id}`)
    const all = await counted()
    expect(all).toBeGreaterThan(2 * body.length)
    await box.call('POST', `${at}/emails/${one}/restore`)
    const less = await counted()
    expect(all - less).toBeGreaterThan(body.length)
    clock.advance(8 * day)
    await job('let-go-of-raw-mail')
    const texts = await counted()
    expect(less - texts).toBeGreaterThan(body.length)
    await box.call('DELETE', `${at}/emails/${two}?purge=true`)
    expect(await counted()).toBeLessThanOrEqual(texts)
    const prepared = vi.spyOn(Statements.prototype, 'prepare')
    await box.call('GET', at)
    expect(prepared.mock.calls.flat().filter((text) => /\btrash\b/.test(text))).toEqual([])
    await box.call('POST', `${at}/trash/empty`)
    expect(await counted()).toBe(0)
  })

  test('that the trash takes is counted by the upgrade', () => {
    const database = upgraded('0040', (old) => {
      old.exec(`INSERT INTO identities (id, account_id, name, name_key, email, date_of_birth, status, metadata, created_at, updated_at)
          VALUES ('ada', 'one', 'Ada', 'ada', 'ada@box.test', '', 'active', '{}', '', ''), ('bob', 'one', 'Bob', 'bob', 'bob@box.test', '', 'active', '{}', '', '');
        INSERT INTO trash (id, kind, account_id, identity_id, octets, deleted_at)
          VALUES ('e1', 'email', 'one', 'ada', 300, '2026'), ('s1', 'sms', 'one', 'ada', 20, '2026')`)
    })
    expect(
      database
        .prepare('SELECT id, trash_bytes FROM identities ORDER BY id')
        .all()
        .map((row) => ({ ...row })),
    ).toEqual([
      { id: 'ada', trash_bytes: 320 },
      { id: 'bob', trash_bytes: 0 },
    ])
  })

  test('is free when the trash is emptied', async () => {
    const { box, at, mail } = await kept()
    const id = await mail('One', body)
    await box.call('DELETE', `${at}/emails/${id}`)
    expect((await box.call('POST', `${at}/trash/empty`)).body).toMatchObject({ purged: 1 })
    expect((await box.call('GET', at)).body['storage']).toMatchObject({ used: 0, trash: 0 })
    expect((await box.call('POST', `${at}/emails/${id}/restore`)).status).toBe(404)
  })
})

describe('a deleted text message', () => {
  test('is nowhere but in the trash, and whole again when it is restored; after 30 days it is gone', async () => {
    const { box, at, ada, clock, job, rows } = await kept()
    const media = [{ content_type: 'image/png', content: Buffer.from('a picture').toString('base64') }]
    const { body: sms } = await box.call('POST', '/v1/sms/loopback/inject', {
      from: '+15550100199',
      to: ada.phone_number,
      body: secret,
      media,
    })
    const { body: before } = await box.call('GET', `${at}/sms/${sms.id}`)
    expect((await box.call('DELETE', `${at}/sms/${sms.id}`)).status).toBe(200)
    for (const path of ['sms', 'messages', 'events?type=sms.received']) {
      expect([path, JSON.stringify((await box.call('GET', `${at}/${path}`)).body).includes(secret)]).toEqual([path, false])
    }
    expect((await box.call('GET', `${at}/sms/${sms.id}/media/0`)).status).toBe(404)
    expect((await box.call('GET', `${at}/sms?trash=true`)).body.data).toMatchObject([
      { id: sms.id, deleted_at: expect.any(String) },
    ])
    expect((await box.call('POST', `${at}/sms/${sms.id}/restore`)).body).toEqual(before)
    const { body: picture } = await box.call('GET', `${at}/sms/${sms.id}/media/0`)
    expect((await box.call<string>('GET', picture['url'] as string, undefined, { key: null })).body).toBe('a picture')
    expect(JSON.stringify((await box.call('GET', `${at}/events?type=sms.received`)).body)).toContain(secret)

    await box.call('DELETE', `${at}/sms/${sms.id}`)
    clock.advance(30 * day)
    await job('empty-trash')
    for (const table of ['sms', 'sms_trash', 'sms_media', 'trash', 'blobs', 'hidden_events']) {
      expect([table, rows(`SELECT * FROM ${table}`)]).toEqual([table, []])
    }
    expect((await box.call('GET', '/v1/billing/subscription')).body['usage'].storage_bytes).toBe(0)
  })
})

test('what a deleted identity leaves goes after the same time, and its account’s use stays right', async () => {
  const { box, at, ada, clock, job, mail, rows } = await kept()
  await mail('One')
  await box.call('DELETE', `${at}/emails/${await mail('Two')}`)
  await box.call('POST', '/v1/sms/loopback/inject', { from: '+15550100199', to: ada.phone_number, body: 'Hello' })
  await box.call('DELETE', at)
  clock.advance(30 * day - 1)
  await job('empty-trash')
  expect(rows('SELECT count(*) AS n FROM emails')).toMatchObject([{ n: 1 }])
  clock.advance(1)
  await job('empty-trash')
  const tables = ['emails', 'emails_trash', 'sms', 'sms_trash', 'threads', 'blobs', 'trash', 'hidden_events', 'identity_remains']
  for (const table of tables) expect([table, rows(`SELECT * FROM ${table}`)]).toEqual([table, []])
  expect(
    rows(`SELECT data FROM events WHERE type IN ('email.received', 'sms.received')`).map(({ data }) =>
      JSON.parse(data as string),
    ),
  ).toEqual(Array.from({ length: 3 }, () => ({ id: expect.any(String), deleted: true })))
  expect((await box.call('GET', '/v1/billing/subscription')).body['usage'].storage_bytes).toBe(0)
})

test('the tables of the trash have every column of those whose rows they take', async () => {
  const { box } = await kept()
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { readOnly: true })
  for (const table of ['emails', 'sms']) {
    const columns = (name: string) =>
      database
        .prepare(`SELECT name FROM pragma_table_info('${name}')`)
        .all()
        .map((row) => String(row['name']))
    expect(columns(`${table}_trash`).toSorted()).toEqual([...columns(table), 'deleted_at'].toSorted())
  }
  database.close()
})

/** Changes the file by another connection. */
function change(directory: string, statement: string): void {
  const database = openStore(join(directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  database.exec(statement)
  database.close()
}
