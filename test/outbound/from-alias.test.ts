import { expect, test } from 'vitest'
import type { Email } from '../../src/mail/model.ts'
import { type Answer, deliver, message } from '../support/appliance.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox, type SendingBox } from '../support/outgoing.ts'
import { Dialogue } from '../support/smtp.ts'
import { loggedIn, newKey, office, submit } from '../support/submission.ts'
import { addedDomain } from '../support/verified-domain.ts'
import { field } from './outgoing.ts'

type Told = Answer<Email & { error: Record<string, string> }>

interface Shop extends SendingBox {
  sink: MailSink
  bob: string
  domain: string
}

/** A box where Ada has the alias sales@shop.example and Bob is the catch-all of that domain; far.test is another's server. */
async function shop(): Promise<Shop> {
  const sink = await MailSink.start()
  const sending = await sendingBox(sink.port)
  const { box, ada } = sending
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  const { id } = await addedDomain(box, 'shop.example')
  const bob = (await box.call('POST', '/v1/identities', { name: 'Bob' })).body['id'] as string
  await box.call('POST', `/v1/domains/${id}/aliases`, { local_part: 'sales', identity_id: ada })
  await box.call('PATCH', `/v1/domains/${id}`, { catch_all: bob })
  return { ...sending, sink, bob, domain: `/v1/domains/${id}` }
}

/** Sends the identity a message; answers the e-mail's id. */
async function received({ box }: Shop, id: string, to: string, fields: Record<string, string> = {}): Promise<string> {
  const raw = message({ From: 'Sam <sam@far.test>', To: to, Subject: 'A question', ...fields }, 'Hello?\n')
  const reply = await deliver(box.smtp, { from: 'sam@far.test', to, raw })
  if (!reply.startsWith('250')) throw new Error(reply)
  const { body } = await box.call('GET', `/v1/identities/${id}/emails?limit=1`)
  return body.data[0].id as string
}

function post({ box }: Shop, path: string, body: unknown): Promise<Told> {
  return box.call('POST', `/v1/identities/${path}`, body)
}

test('a reply is from the address the message came to, signed and bounced to in that domain, and in the same thread', async () => {
  const here = await shop()
  const original = await received(here, here.ada, 'sales+spring@shop.example')
  const { status, body } = await post(here, `${here.ada}/emails/${original}/reply`, { body_text: 'Yes.' })
  expect([status, body.from]).toEqual([201, 'sales@shop.example'])
  await here.box.settled()
  expect(here.sink.messages.length).toBe(1)
  const [left] = here.sink.messages
  expect(left!.from).toMatch(/^bounce\+[a-z2-7]{29}@shop\.example$/)
  expect(field(left!.raw, 'from')).toBe('Ada <sales@shop.example>')
  expect(field(left!.raw, 'message-id')).toMatch(/@shop\.example>$/)
  const signed = [...left!.raw.replaceAll(/\r\n[ \t]+/g, ' ').matchAll(/^DKIM-Signature:.*?\bd=([^;\s]+)/gim)].map(
    ([, domain]) => domain,
  )
  expect(signed).toEqual(['shop.example', 'shop.example'])
  const { body: threads } = await here.box.call('GET', `/v1/identities/${here.ada}/threads`)
  expect(threads.data).toMatchObject([
    { message_count: 2, participants: ['sam@far.test', 'sales+spring@shop.example', 'sales@shop.example'] },
  ])

  // an answer by a program that keeps no References finds the thread by its subject and people
  await received(here, here.ada, 'sales@shop.example', { Subject: 'Re: A question' })
  const { body: after } = await here.box.call('GET', `/v1/identities/${here.ada}/threads`)
  expect(after.data).toMatchObject([{ message_count: 3 }])
})

test('an answer named by in_reply_to is from there too, and so is what follows it; from says otherwise', async () => {
  const here = await shop()
  const original = await received(here, here.ada, 'sales@shop.example')
  const to = 'sam@far.test'
  const answer = await post(here, `${here.ada}/emails`, { to, in_reply_to: original, body_text: 'Yes.' })
  expect(answer.body.from).toBe('sales@shop.example')
  const further = await post(here, `${here.ada}/emails/${answer.body.id}/reply`, { body_text: 'And no.' })
  expect(further.body.from).toBe('sales@shop.example')
  for (const from of ['ada@pillarbox.test', 'Ada+Shop@Pillarbox.test', 'SALES@shop.example', 'sales+x@shop.example']) {
    const told = await post(here, `${here.ada}/emails/${original}/reply`, { body_text: 'Yes.', from })
    expect([told.status, told.body.from]).toEqual([201, from.toLowerCase()])
  }
  expect((await post(here, `${here.ada}/emails`, { to, body_text: 'New.' })).body.from).toBe('ada@pillarbox.test')
  const forwarded = { to, from: 'sales@shop.example' }
  expect((await post(here, `${here.ada}/emails/${original}/forward`, forwarded)).body.from).toBe('sales@shop.example')
})

test('a catch-all answers from the very address that was caught, and from any that it would catch', async () => {
  const here = await shop()
  const original = await received(here, here.bob, 'Hello.There@shop.example')
  const { body } = await post(here, `${here.bob}/emails/${original}/reply`, { body_text: 'Yes.' })
  expect(body.from).toBe('hello.there@shop.example')
  const input = { to: 'sam@far.test', from: 'anything@shop.example' }
  expect((await post(here, `${here.bob}/emails`, input)).body.from).toBe('anything@shop.example')
})

test('nobody sends from an address whose mail is another’s, reserved, or elsewhere', async () => {
  const here = await shop()
  const gone = (await here.box.call('POST', '/v1/identities', { email_username: 'gone', email_domain: 'shop.example' })).body[
    'id'
  ]
  await here.box.call('DELETE', `/v1/identities/${gone}`)
  const to = 'sam@far.test'
  for (const [who, from] of [
    [here.ada, 'bob@pillarbox.test'],
    [here.ada, 'anything@shop.example'],
    [here.bob, 'sales@shop.example'],
    [here.bob, 'gone@shop.example'],
    [here.bob, 'postmaster@shop.example'],
    [here.bob, 'security@shop.example'],
    [here.ada, 'ada@elsewhere.test'],
  ] as const) {
    const { status, body } = await post(here, `${who}/emails`, { to, from })
    expect([from, status, body.error]).toMatchObject([from, 400, { param: 'from', code: 'sender_not_allowed' }])
  }
  for (const from of ['', 'sales', 'sales@shop.example\r\nBcc: eve@far.test', 'a@shop.example, b@shop.example']) {
    expect([from, (await post(here, `${here.ada}/emails`, { to, from })).body.error['param']]).toEqual([from, 'from'])
  }
  // once the alias is another's, a reply is from the identity's own address again
  const original = await received(here, here.ada, 'sales@shop.example')
  const { body: list } = await here.box.call('GET', `${here.domain}/aliases`)
  await here.box.call('PATCH', `${here.domain}/aliases/${list.data[0].id}`, { identity_id: here.bob })
  const { body } = await post(here, `${here.ada}/emails/${original}/reply`, { body_text: 'Yes.' })
  expect(body.from).toBe('ada@pillarbox.test')
})

test('a reply to all leaves out every address of one’s own', async () => {
  const here = await shop()
  const To = 'sales@shop.example, Ada <ada@pillarbox.test>, tom@far.test'
  const original = await received(here, here.ada, 'sales@shop.example', { To, Cc: 'Sales+news@shop.example, kim@far.test' })
  const { body } = await post(here, `${here.ada}/emails/${original}/reply`, { body_text: 'Yes.', reply_all: true })
  expect([body.to, body.cc.map(({ address }) => address)]).toEqual(['sam@far.test, tom@far.test', ['kim@far.test']])
})

test('a message scheduled from an alias leaves signed by its domain, and one that is cancelled gives its room back there', async () => {
  const here = await shop()
  const input = { to: 'sam@far.test', from: 'sales@shop.example', send_at: new Date(Date.now() + 1000).toISOString() }
  await post(here, `${here.ada}/emails`, input)
  await expect.poll(() => here.sink.messages.length, { interval: 50 }).toBe(1)
  expect(here.sink.messages[0]!.raw.replaceAll(/\r\n[ \t]+/g, ' ')).toMatch(/^DKIM-Signature:.*\bd=shop\.example;/im)
  const later = { ...input, send_at: new Date(Date.now() + 3_600_000).toISOString() }
  const { body } = await post(here, `${here.ada}/emails`, later)
  const cancelled = await post(here, `${here.ada}/emails/${body.id}/cancel`, {})
  expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelled'])
})

test('a program that submits by SMTP sends from an alias as well, by the name of either, and from nothing else', async () => {
  const here = await office()
  const { id } = await addedDomain(here.box, 'shop.example')
  await here.box.call('POST', `/v1/domains/${id}/aliases`, { local_part: 'sales', identity_id: here.ada })
  const { key } = await newKey(here.box, { identity_id: here.ada })
  for (const user of ['ada@pillarbox.test', 'Sales@shop.example']) {
    const client = await loggedIn(here, { user, key })
    const from = 'sales@shop.example'
    expect(await submit(client, { from, raw: fromSales('Sales@shop.example') })).toMatch(/^250 /)
    expect(await submit(client, { from, raw: fromSales('other@shop.example') })).toMatch(/^553 5\.7\.1|^550 5\.7\.1/)
    expect(await submit(client, { from: 'other@shop.example', raw: fromSales(from) })).toMatch(/^553 5\.7\.1|^550 5\.7\.1/)
    client.destroy()
  }
  const { body } = await here.box.call('GET', `/v1/identities/${here.ada}/emails?direction=outbound`)
  expect(body.data.map(({ from }) => from)).toEqual(['sales@shop.example', 'sales@shop.example'])
})

test('a catch-all sends from no address that looks like another’s and that no mail would reach', async () => {
  const here = await office()
  const { box } = here
  const { id } = await addedDomain(box, 'shop.example')
  for (const name of ['carol', 'kate']) {
    await box.call('POST', '/v1/identities', { name, email_username: name, email_domain: 'shop.example' })
  }
  await box.call('PATCH', `/v1/domains/${id}`, { catch_all: here.ada })
  const { key } = await newKey(box, { identity_id: here.ada })
  const client = await loggedIn(here, { key })
  const write = (from: string): Promise<string> => submit(client, { raw: Buffer.from(fromSales(from)).toString('latin1') })
  expect(await write('anything@shop.example')).toMatch(/^250 /)
  // a zero-width space, a soft hyphen
  for (const from of ['carol\u200B@shop.example', 'car\u00ADol@shop.example'])
    expect([from, await write(from)]).toEqual([from, expect.stringMatching(/^55\d 5\.7\.1/)])
  client.destroy()
  // the sign for kelvin is no spelling of k, where mail comes in as where it leaves
  const server = await Dialogue.hello(box.smtp.port)
  await server.say('MAIL FROM:<sam@far.test> SMTPUTF8')
  expect(await server.say('RCPT TO:<\u212Aate@shop.example>')).toMatch(/^250 /)
  await server.say('DATA')
  expect(await server.say(`${fromSales('sam@far.test')}\r\n.`)).toMatch(/^250 /)
  server.destroy()
  const { body } = await box.call('GET', `/v1/identities/${here.ada}/emails?direction=inbound`)
  expect(body.data.map(({ to }) => to)).toEqual(['\u212Aate@shop.example'])
})

function fromSales(from: string): string {
  return message({ From: `Sales <${from}>`, To: 'bob@elsewhere.test' }, 'Hi.\n')
}
