import { expect, test } from 'vitest'
import { HeldClock } from '../support/held-clock.ts'
import { database, pair, send } from './outgoing.ts'

test('what is taken back is given back in the hour it was counted in, and no hour owes anything', async () => {
  const clock = new HeldClock()
  const world = await pair({}, clock)
  const { box, ada, bob } = world
  const { body } = await send(world, { to: bob.email, send_at: new Date(clock.now() + 30 * 60_000).toISOString() })
  // as when the box let it go late, in another hour
  const late = new Date(clock.now() + 3 * 3_600_000).toISOString()
  database(box, (db) => db.prepare('UPDATE email_recipients SET next_attempt_at = ? WHERE email_id = ?').run(late, body.id))
  expect((await box.call('POST', `/v1/identities/${ada.id}/emails/${body.id}/cancel`)).status).toBe(200)
  const counts = database(box, (db) => db.prepare('SELECT recipients FROM sent_counts').all())
  expect(counts).toEqual([{ recipients: 0 }])
})

test('a program in a loop is stopped, whatever letters its address has', async () => {
  const world = await pair({ PILLARBOX_OUTBOUND__AUTOMATIC_REPLIES: '1' })
  const first = await send(world, { to: world.bob.email, subject: 'Start' })
  // later, as nobody has that address: once it has bounced it is suppressed, and the loop is over for another reason
  const send_at = new Date(Date.now() + 3_600_000).toISOString()
  const answer = (to: string) => send(world, { to, in_reply_to: first.body.id, auto_submitted: 'auto-replied', send_at })
  expect((await answer('ÉVE@pillarbox.test')).status).toBe(201)
  const second = await answer('éve@Pillarbox.test')
  expect([second.status, second.body.error]).toMatchObject([429, { code: 'automatic_replies' }])
})
