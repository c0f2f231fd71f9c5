import { expect, test } from 'vitest'
import type { Email } from '../../src/mail/model.ts'
import { deliver, message } from '../support/appliance.ts'
import { database, field, pair, type Pair, send, source, verified } from './outgoing.ts'

const report = { From: 'Carl <carl@reporter.test>', Subject: 'Abuse from your host', 'Message-ID': '<abuse@reporter.test>' }

test('what comes for postmaster and abuse is passed on whole', async () => {
  const world = await scene('admin@example.net')
  await deliver(world.box.smtp, { from: 'carl@reporter.test', to: 'abuse@pillarbox.test', raw: message(report, 'Look at this.') })
  const [forward] = await forwards(world, 1)
  expect(forward).toMatchObject({
    from: 'postmaster@pillarbox.test',
    to: 'admin@example.net',
    subject: 'Fwd: Abuse from your host',
    automated: true,
    labels: ['forwarded'],
    attachments: [{ content_type: 'message/rfc822' }],
  })
  const raw = await source(world, forward!.id, forward!.identity_id)
  expect(field(raw, 'auto-submitted')).toBe('auto-generated')
  expect(raw).toContain('Message-ID: <abuse@reporter.test>\r\n')
  expect(raw).toContain('Look at this.')
})

test('not what could be an answer to that', async () => {
  const world = await scene('admin@example.net')
  const { smtp } = world.box
  const to = 'postmaster@pillarbox.test'
  await deliver(smtp, { from: 'carl@reporter.test', to, raw: message(report, 'first') })
  const [first] = await forwards(world, 1)
  await deliver(smtp, { from: '', to, raw: message({ ...report, 'Message-ID': '<1@x.test>' }, 'bounce') })
  await deliver(smtp, {
    from: 'admin@example.net',
    to,
    raw: message({ From: 'admin@example.net', 'Message-ID': '<2@x.test>' }, 'answer'),
  })
  const away = { From: 'away@other.test', 'Message-ID': '<3@x.test>', 'In-Reply-To': first!.message_id! }
  await deliver(smtp, { from: 'away@other.test', to, raw: message(away, 'I am away') })
  await deliver(smtp, { from: 'carl@reporter.test', to, raw: message({ ...report, 'Message-ID': '<4@x.test>' }, 'last') })
  const all = await forwards(world, 2)
  expect(all).toHaveLength(2)
  expect(await source(world, all[0]!.id, all[0]!.identity_id)).toContain('<4@x.test>')
  await world.box.settled()
  expect(handled(world)).toBe(5)
})

test('nothing when mail.postmaster is this very mailbox', async () => {
  const world = await scene('postmaster@pillarbox.test')
  await deliver(world.box.smtp, { from: 'carl@reporter.test', to: 'postmaster@pillarbox.test', raw: message(report, 'round') })
  await world.box.settled()
  expect(handled(world)).toBe(1)
  expect(await forwards(world, 0)).toEqual([])
})

test('mail for others goes to nobody else', async () => {
  const world = await scene('admin@example.net')
  await deliver(world.box.smtp, { from: 'carl@reporter.test', to: world.ada.email, raw: message(report, 'private') })
  expect((await send(world, { to: world.bob.email })).status).toBe(201)
  expect(handled(world)).toBe(0)
})

async function scene(address: string): Promise<Pair> {
  const world = await pair({ PILLARBOX_MAIL__POSTMASTER: address })
  await verified(world)
  return world
}

/** What the operator's mailbox has sent, newest first, once there are so many. */
async function forwards({ box }: Pair, count: number): Promise<Email[]> {
  await box.settled()
  const { body } = await box.call('GET', '/v1/identities')
  const operator = body.data.find(({ email }) => email === 'postmaster@pillarbox.test')
  if (!operator && count === 0) return []
  const path = `/v1/identities/${operator.id}/emails`
  const list = await box.call('GET', `${path}?direction=outbound`)
  expect(list.body.data.length).toBeGreaterThanOrEqual(count)
  return Promise.all(list.body.data.map(async ({ id }) => (await box.call<Email>('GET', `${path}/${id}`)).body))
}

/** Messages for the operator that were looked at to the end. */
function handled({ box }: Pair): number {
  const query = `SELECT count(*) AS n FROM deliveries_queue WHERE kind = 'operator-mail' AND state = 'done'`
  return database(box, (db) => (db.prepare(query).get() as { n: number }).n)
}
