import { expect, test } from 'vitest'
import { loggedIn, office, outbound, submit } from '../support/submission.ts'
import { database, pair, send } from './outgoing.ts'

test('who keeps as much mail as it may sends nothing more until some is deleted, and nothing is half kept', async () => {
  const world = await pair({ PILLARBOX_MAIL__QUOTA: '300 KiB' })
  const { box, ada, bob } = world
  const body = 'word '.repeat(40_000)
  const first = await send(world, { to: bob.email, body })
  expect(first.status).toBe(201)
  const rows = () =>
    database(box, (db) =>
      ['emails', 'email_recipients', 'sent_counts', 'blobs'].map((table) => [
        table,
        db
          .prepare(`SELECT count(*) AS n FROM ${table} WHERE ${table === 'emails' ? `identity_id = '${ada.id}'` : '1 = 1'}`)
          .get(),
      ]),
    )
  await box.settled()
  expect((await box.call('GET', `/v1/identities/${ada.id}/emails/${first.body.id}`)).body['status']).toBe('delivered')
  const before = rows()
  const second = await send(world, { to: 'kim@pillarbox.test', body })
  expect([second.status, second.body.error]).toMatchObject([409, { code: 'mailbox_full' }])
  expect(second.body.error['message']).toMatch(/^ada@pillarbox\.test .*mail\.quota.*delete/)
  expect(rows()).toEqual(before)
  await box.call('DELETE', `/v1/identities/${ada.id}/emails/${first.body.id}`)
  expect((await send(world, { to: bob.email, body: 'word' })).status).toBe(201)
})

test('a program hears that it may try again', async () => {
  const here = await office({ PILLARBOX_MAIL__QUOTA: '1 KiB' })
  const client = await loggedIn(here)
  const raw = `From: ada@pillarbox.test\r\n\r\n${'word '.repeat(150)}\r\n`
  const long = `${raw}${'word word\r\n'.repeat(100)}`
  expect(await submit(client, { raw: long })).toMatch(/^452 4\.2\.2 .*mail\.quota/)
  expect(await outbound(here)).toEqual([])
})
