import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { HeldClock } from '../support/held-clock.ts'
import { database, field, pair, send, source, verified } from './outgoing.ts'

describe('sending', () => {
  test('answers the stored message, where it is, and tells the log', async () => {
    const world = await pair()
    const { box, ada, bob } = world
    const input = {
      to: `Bob <${bob.email}>`,
      cc: ['Käthe <kathe@pillarbox.test>'],
      bcc: 'zoe@pillarbox.test',
      subject: 'Größe',
      body: 'Hi',
    }
    const { status, body, headers } = await send(world, { ...input, labels: ['out'] })
    expect(status).toBe(201)
    expect(headers.get('location')).toBe(`/v1/identities/${ada.id}/emails/${body.id}`)
    expect(body).toMatchObject({
      direction: 'outbound',
      status: 'queued',
      read: true,
      from: ada.email,
      from_name: 'Ada',
      to: bob.email,
      cc: [{ address: 'kathe@pillarbox.test', name: 'Käthe' }],
      bcc: [{ address: 'zoe@pillarbox.test', name: '' }],
      subject: 'Größe',
      body_text: 'Hi',
      labels: ['out'],
      send_at: null,
    })
    expect(body.deliveries.map(({ recipient, status: state }) => [recipient, state])).toEqual([
      [bob.email, 'queued'],
      ['kathe@pillarbox.test', 'queued'],
      ['zoe@pillarbox.test', 'queued'],
    ])
    const listed = await box.call('GET', `/v1/identities/${ada.id}/emails?direction=outbound`)
    expect(listed.body.data.map(({ id }) => id)).toEqual([body.id])
    const events = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.queued`)
    expect(events.body.data).toMatchObject([{ event: 'email.queued', data: { id: body.id, body_text: 'Hi', status: 'queued' } }])

    const raw = await source(world, body.id)
    expect(field(raw, 'from')).toBe(`Ada <${ada.email}>`)
    expect(field(raw, 'to')).toBe(`Bob <${bob.email}>`)
    expect(field(raw, 'message-id')).toMatch(/^<[\w-]+@pillarbox\.test>$/)
    expect(field(raw, 'message-id')).toBe(body.message_id)
    expect(field(raw, 'date')).toMatch(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000$/)
    expect(field(raw, 'mime-version')).toBe('1.0')
    expect(raw).not.toMatch(/zoe@|^bcc:/im)
    expect(raw.match(/^date:/gim)).toHaveLength(1)
  })

  test('needs no more than a recipient, and then sends an empty text', async () => {
    const world = await pair()
    const { status, body } = await send(world, { to: world.bob.email })
    expect([status, body.subject, body.body_text]).toEqual([201, '', null])
    expect(await source(world, body.id)).toMatch(/^Content-Type: text\/plain(?:; charset=utf-8)?\r\n\r\n\s*$/m)
  })

  test('by its other path, with HTML alone, and with files alone', async () => {
    const world = await pair()
    const { box, ada, bob } = world
    const html = await box.call('POST', `/v1/identities/${ada.id}/emails/send`, { to: [bob.email], body_html: '<p>Hi</p>' })
    expect(html.body).toMatchObject({ body_text: null, body_html: '<p>Hi</p>\n' })
    const file = await send(world, { to: bob.email, attachments: [{ filename: 'a.pdf', content: 'aGk=' }] })
    expect(file.body.attachments).toMatchObject([
      { filename: 'a.pdf', content_type: 'application/pdf', size: 2, disposition: 'attachment' },
    ])
    expect(file.body.body_text).toBeNull()
  })

  test('the same Idempotency-Key sends once', async () => {
    const world = await pair()
    const input = { to: world.bob.email, body: 'once' }
    const [one, two] = [
      await send(world, input, { 'Idempotency-Key': 'k' }),
      await send(world, input, { 'Idempotency-Key': 'k' }),
    ]
    expect(two.body.id).toBe(one.body.id)
    expect(two.headers.get('idempotency-replayed')).toBe('true')
    expect(two.headers.get('location')).toBe(one.headers.get('location'))
    const { body } = await world.box.call('GET', `/v1/identities/${world.ada.id}/emails?direction=outbound`)
    expect(body.data).toHaveLength(1)
  })

  test('a recipient who is named twice has one copy', async () => {
    const world = await pair()
    const { body } = await send(world, {
      to: [world.bob.email, 'BOB@Pillarbox.test'],
      cc: world.bob.email,
      bcc: 'eve@pillarbox.test',
    })
    expect(body.deliveries.map(({ recipient }) => recipient)).toEqual([world.bob.email, 'eve@pillarbox.test'])
  })

  test('files are kept to the octet, inline ones beside the HTML', async () => {
    const world = await pair()
    const octets = Buffer.from(Array.from({ length: 5000 }, (_, index) => (index * 7) % 256))
    const attachments = [
      { filename: 'über "Geld".bin', content: octets.toString('base64') },
      { filename: 'logo.png', content: octets.toString('base64'), content_id: '<logo>' },
      { filename: 'empty.txt', content: '' },
    ]
    const { body } = await send(world, { to: world.bob.email, body_html: '<img src="cid:logo">', attachments })
    const sha256 = createHash('sha256').update(octets).digest('hex')
    expect(body.attachments).toMatchObject([
      { filename: 'logo.png', content_id: 'logo', disposition: 'inline', sha256, content_type: 'image/png' },
      { content_type: 'application/octet-stream', disposition: 'attachment', sha256, size: 5000 },
      { filename: 'empty.txt', size: 0 },
    ])
    expect(await source(world, body.id)).toMatch(/Content-Type: multipart\/related/)
  })

  test('a suspended identity sends nothing', async () => {
    const world = await pair()
    await world.box.call('PATCH', `/v1/identities/${world.ada.id}`, { status: 'suspended' })
    const { status, body } = await send(world, { to: world.bob.email })
    expect([status, body.error['code']]).toEqual([409, 'identity_suspended'])
  })
})

describe('whom mail may go to', () => {
  test('others only from a verified domain', async () => {
    const world = await pair()
    const refused = await send(world, { to: [world.bob.email, 'eve@elsewhere.test'] })
    expect([refused.status, refused.body.error['code']]).toEqual([409, 'domain_not_verified'])
    await verified(world)
    expect((await send(world, { to: [world.bob.email, 'eve@elsewhere.test'] })).status).toBe(201)
  })

  test('nobody elsewhere when the box sends nothing, but by a relay of their own', async () => {
    const file = join(folder(), 'pillarbox.yaml')
    writeFileSync(file, 'outbound: { mode: none, relays: [{ domains: [near.test], host: relay.test }] }\n')
    const world = await pair({ PILLARBOX_CONFIG: file })
    await verified(world)
    const { status, body } = await send(world, { to: world.bob.email, cc: 'eve@elsewhere.test' })
    expect([status, body.error]).toMatchObject([400, { param: 'cc', code: 'outbound_off' }])
    expect((await send(world, { to: [world.bob.email, 'eve@near.test'] })).status).toBe(201)
  })

  test('no one who is suppressed; all of them are named', async () => {
    const world = await pair()
    for (const email of ['one@pillarbox.test', 'Two@pillarbox.test']) await world.box.call('POST', '/v1/suppressions', { email })
    const { status, body } = await send(world, { to: world.bob.email, bcc: ['ONE@pillarbox.test', 'two@pillarbox.test'] })
    expect([status, body.error]).toMatchObject([400, { param: 'bcc', code: 'recipient_suppressed' }])
    expect(body.error['message']).toMatch(/ONE@pillarbox\.test, two@pillarbox\.test are suppressed/)
  })

  test('invalid ones are named one by one', async () => {
    const world = await pair()
    const { status, body } = await send(world, {
      to: [world.bob.email],
      cc: ['nobody', 'a@b.test, c@d.test'],
      bcc: 'x@[127.0.0.1]',
    })
    expect([status, body.error]).toMatchObject([400, { param: 'cc', code: 'invalid_recipient' }])
    expect(body.error['message']).toBe(
      'cc: "nobody" is not an e-mail address such as ada@example.com; cc: "a@b.test, c@d.test" contains several addresses; send a list; ' +
        'bcc: "x@[127.0.0.1]" has no domain that can receive mail.',
    )
  })

  test('no more than a hundred together', async () => {
    const world = await pair()
    const { status, body } = await send(world, { to: many(60, 'a'), cc: many(41, 'b') })
    expect([status, body.error['code']]).toEqual([400, 'too_many_recipients'])
    expect((await send(world, { to: many(60, 'a'), cc: many(40, 'b') })).body.deliveries).toHaveLength(100)
  })
})

describe('addresses beyond ASCII', () => {
  test('a domain goes out as A-labels, a local part as UTF-8', async () => {
    const world = await pair()
    await verified(world)
    const { body } = await send(world, { to: ['Jõ <post@JÕGEVA.test>', 'käthe@bücher.test'], body: 'Hi' })
    expect(body.deliveries.map(({ recipient }) => recipient)).toEqual(['post@xn--jgeva-dua.test', 'käthe@xn--bcher-kva.test'])
    expect(body.recipients.to).toEqual([
      { address: 'post@xn--jgeva-dua.test', name: 'Jõ' },
      { address: 'käthe@xn--bcher-kva.test', name: '' },
    ])
    const to = Buffer.from(field(await source(world, body.id), 'to')!, 'latin1').toString()
    expect(to).toContain('post@xn--jgeva-dua.test')
    expect(to).toContain('käthe@')
  })
})

describe('how much', () => {
  const large = 'x'.repeat(70)

  test('25 MiB composed go, more do not, and the parameter is named', async () => {
    const { box, ada, bob } = await pair()
    const call = async (input: object) => box.call('POST', `/v1/identities/${ada.id}/emails`, { to: bob.email, ...input })
    const sent = await call({ attachments: filled(19_000_000) })
    expect([sent.status, sent.body.attachments[0].size]).toEqual([201, 19_000_000])
    const overweight = await call({ attachments: filled(19_500_000) })
    expect([overweight.status, overweight.body.error]).toMatchObject([400, { code: 'message_too_large' }])
    expect(overweight.body.error.param).toMatch(/^attachments/)
    const wordy = await call({ body_text: `${large}\n`.repeat(400_000) })
    expect([wordy.status, wordy.body.error]).toMatchObject([400, { code: 'message_too_large', param: 'body_text' }])
    expect((await call({ body_text: '\n'.repeat(2_000_000), body_html: 'x'.repeat(2_400_000) })).body.error).toMatchObject({
      code: 'message_too_large',
      param: 'body_text',
      message:
        'The text and HTML of the message are too long: the limit is 4194304 bytes (4 MiB), with two bytes for each line end. Send longer text as an attachment.',
    })
    const ends = await call({ body_text: '\n'.repeat(2_150_000) })
    expect(ends.body.error).toMatchObject({ code: 'message_too_large', param: 'body_text' })
    const lines = await call({ body_text: `a\rb\r\nc\nd${'\n'.repeat(1_000_000)}` })
    expect([lines.status, lines.body.body_text.slice(0, 9)]).toEqual([201, 'a\rb\r\nc\nd\n'])
  })

  test('the rates by the hour, and what is on the box counts for the identity only', async () => {
    const clock = new HeldClock()
    const world = await pair({ PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: '5', PILLARBOX_OUTBOUND__RATE_PER_DOMAIN: '2' }, clock)
    await verified(world)
    const { box, bob } = world
    expect((await send(world, { to: ['a@elsewhere.test', 'b@elsewhere.test', bob.email] })).status).toBe(201)
    const domain = await send(world, { to: 'c@elsewhere.test' })
    expect([domain.status, domain.body.error]).toMatchObject([429, { code: 'send_rate' }])
    expect(domain.headers.get('retry-after')).toBe(String(55 * 60))
    // another identity of the domain is held by it too, and may still write to those on the box
    const other = async (to: string) => box.call('POST', `/v1/identities/${bob.id}/emails`, { to })
    expect((await other('c@elsewhere.test')).status).toBe(429)
    expect((await other('ada@pillarbox.test')).status).toBe(201)
    expect((await send(world, { to: ['x@pillarbox.test', bob.email] })).status).toBe(201)
    expect((await send(world, { to: bob.email })).status).toBe(429)
    const never = await send(world, { to: ['1', '2', '3', '4', '5', '6'].map((name) => `${name}@pillarbox.test`) })
    expect([never.status, never.body.error['param']]).toEqual([400, 'to'])
    clock.advance(55 * 60_000)
    expect((await send(world, { to: ['c@elsewhere.test', bob.email] })).status).toBe(201)
  })

  test('a new domain more from day to day', async () => {
    const clock = new HeldClock()
    const world = await pair(
      {
        PILLARBOX_OUTBOUND__WARM_UP__FIRST_DAY: '2',
        PILLARBOX_OUTBOUND__WARM_UP__GROWTH: '2',
        PILLARBOX_OUTBOUND__WARM_UP__DAYS: '3',
      },
      clock,
    )
    await verified(world)
    const burst = async (): Promise<number> => {
      for (let count = 0; count < 12; count += 1) {
        const { status } = await send(world, { to: `r${count}@elsewhere.test` })
        if (status === 429) return count
      }
      return Infinity
    }
    const days: number[] = []
    for (let day = 0; day < 4; day += 1) {
      days.push(await burst())
      expect((await send(world, { to: world.bob.email })).status).toBe(201)
      clock.advance(86_400_000)
    }
    expect(days).toEqual([2, 4, 8, Infinity])
  })
})

test('a caller bound to another identity hears nothing of this one', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const { body: key } = await box.call('POST', '/v1/api-keys', {
    label: 'b',
    scopes: ['messages:write', 'messages:read'],
    identity_id: bob.id,
  })
  const told = await box.call('POST', `/v1/identities/${ada.id}/emails`, { to: bob.email }, { key: key.key ?? key.secret })
  expect(told.status).toBe(404)
  expect(database(box, (db) => db.prepare('SELECT count(*) AS n FROM emails').get())).toEqual({ n: 0 })
})

function filled(size: number): object[] {
  return [{ filename: 'a.bin', content: Buffer.alloc(size, 7).toString('base64') }]
}

function many(count: number, prefix: string): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}@pillarbox.test`)
}
