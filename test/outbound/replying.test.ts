import { describe, expect, test } from 'vitest'
import type { Email } from '../../src/mail/model.ts'
import { type Answer, appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { field, living, pair, type Pair, send, source, verified } from './outgoing.ts'

type Told = Answer<Email & { error: Record<string, string> }>

const sam = 'sam@sender.test'
const letter = {
  From: `Sam Sender <${sam}>`,
  To: 'Ada <ada@pillarbox.test>, Tom <tom@sender.test>',
  Cc: 'Kim <kim@sender.test>, ada+news@pillarbox.test',
  Subject: 'Lunch?',
  'Message-ID': '<2@sender.test>',
  References: '<0@sender.test> <1@sender.test>',
}

describe('a reply', () => {
  test('goes to the sender, in the thread, with what it answers quoted below', async () => {
    const { world, original } = await scene(letter, 'Dear Ada,\n\nlunch at noon?\n> maybe')
    const { status, body, headers } = await reply(world, original.id, { body_text: 'Yes.' })
    expect(status).toBe(201)
    expect(headers.get('location')).toBe(`/v1/identities/${world.ada.id}/emails/${body.id}`)
    expect(body).toMatchObject({
      to: sam,
      cc: [],
      subject: 'Re: Lunch?',
      in_reply_to: '<2@sender.test>',
      references: ['<0@sender.test>', '<1@sender.test>', '<2@sender.test>'],
      thread_id: original.thread_id,
      text: 'Yes.',
      automated: false,
    })
    expect(body.body_text).toBe(
      'Yes.\n\nOn Fri, 20 Nov 2026 at 10:05 UTC, Sam Sender <sam@sender.test> wrote:\n> Dear Ada,\n>\n> lunch at noon?\n>> maybe\n',
    )
    expect(field(await source(world, body.id), 'to')).toBe(`Sam Sender <${sam}>`)
    const { body: thread } = await world.box.call('GET', `/v1/identities/${world.ada.id}/threads/${original.thread_id}`)
    expect(thread.messages.map(({ id }: Email) => id)).toEqual([original.id, body.id])
  })

  test('to all leaves out oneself, and keeps who was in copy there', async () => {
    const { world, original } = await scene(letter)
    const { body } = await reply(world, original.id, { body_text: 'Yes.', reply_all: true, cc: 'lee@sender.test', bcc: sam })
    expect(body.recipients).toEqual({
      to: [
        { address: sam, name: 'Sam Sender' },
        { address: 'tom@sender.test', name: 'Tom' },
      ],
      cc: [
        { address: 'kim@sender.test', name: 'Kim' },
        { address: 'lee@sender.test', name: '' },
      ],
      bcc: [],
    })
  })

  test('follows Reply-To', async () => {
    const { world, original } = await scene({ ...letter, 'Reply-To': 'Desk <desk@sender.test>' })
    expect((await reply(world, original.id, {})).body.recipients.to).toEqual([{ address: 'desk@sender.test', name: '' }])
  })

  test('in HTML quotes as HTML, and what was written there is only text', async () => {
    const { world, original } = await scene({ ...letter, 'Content-Type': 'text/html' }, '<p>a &lt;b&gt;<script>x()</script></p>')
    const { body } = await reply(world, original.id, { body_html: '<html><body><p>Yes.</p></body></html>' })
    expect(body.body_text).toBeNull()
    expect(body.body_html).toMatch(
      /^<html><body><p>Yes\.<\/p><br><div>On Fri.* wrote:<\/div><blockquote [^>]*>.*a .*<\/blockquote><\/body><\/html>\s*$/s,
    )
    expect(body.body_html).not.toContain('<script')
  })

  test('need not quote, nor keep the subject, and does not double Re:', async () => {
    const { world, original } = await scene({ ...letter, Subject: 'RE: Lunch?' })
    expect((await reply(world, original.id, { body: 'Yes.', quote: false })).body).toMatchObject({
      subject: 'RE: Lunch?',
      body_text: 'Yes.',
    })
    expect((await reply(world, original.id, { body: 'Yes.', subject: 'Dinner' })).body).toMatchObject({
      subject: 'Dinner',
      thread_id: original.thread_id,
    })
  })

  test('keeps the thread of a message without a Message-ID', async () => {
    const { world, original } = await scene({ From: letter.From, To: 'ada@pillarbox.test', Subject: 'Bare' })
    const { body } = await reply(world, original.id, { body: 'Yes.', subject: 'Other' })
    expect(body).toMatchObject({ thread_id: original.thread_id, in_reply_to: null, references: [] })
  })

  test('names the first and the latest of a long conversation', async () => {
    const ids = Array.from({ length: 90 }, (_, index) => `<${index}@sender.test>`)
    const { world, original } = await scene({ ...letter, 'Message-ID': '<last@sender.test>', References: ids.join('\r\n ') })
    const { body } = await reply(world, original.id, { body: 'Yes.' })
    expect(body.references).toHaveLength(21)
    expect([body.references[0], body.references.at(-1)]).toEqual(['<0@sender.test>', '<last@sender.test>'])
  })

  test('to a message of one’s own goes to its recipients', async () => {
    const { world } = await scene(letter)
    await world.box.call('POST', '/v1/identities', { name: 'Zoe' })
    const { body: own } = await send(world, {
      to: 'Bob <bob@pillarbox.test>',
      cc: 'zoe@pillarbox.test',
      subject: 'Plan',
      body: 'a',
    })
    const { body } = await reply(world, own.id, { body: 'and b' })
    expect(body).toMatchObject({
      to: 'bob@pillarbox.test',
      cc: [],
      in_reply_to: own.message_id,
      thread_id: own.thread_id,
      subject: 'Re: Plan',
    })
    expect((await reply(world, own.id, { reply_all: true })).body.cc).toEqual([{ address: 'zoe@pillarbox.test', name: '' }])
  })

  test('to a bounce is a conflict', async () => {
    const { world, original } = await scene({ ...letter, From: 'Mail <mailer-daemon@sender.test>' }, 'undeliverable', '')
    const { status, body } = await reply(world, original.id, { body: 'Hello?' })
    expect([status, body.error['code']]).toEqual([409, 'null_sender'])
  })

  test('to another’s message, or to none, is 404', async () => {
    const { world, original } = await scene(letter)
    const elsewhere = await world.box.call('POST', `/v1/identities/${world.bob.id}/emails/${original.id}/reply`, { body: 'x' })
    expect(elsewhere.status).toBe(404)
  })
})

describe('a reply to a program', () => {
  const notice = { ...letter, 'Auto-Submitted': 'auto-generated' }

  test('says that it is one, and cannot deny it', async () => {
    const { world, original } = await scene(notice)
    const { body } = await reply(world, original.id, { body: 'Thanks.' })
    expect(body.automated).toBe(true)
    expect(field(await source(world, body.id), 'auto-submitted')).toBe('auto-replied')
    const denied = await reply(world, original.id, { body: 'Thanks.', auto_submitted: 'no' })
    expect([denied.status, denied.body.error['param']]).toEqual([400, 'auto_submitted'])
    const sent = await send(world, { to: sam, in_reply_to: original.id })
    expect(field(await source(world, sent.body.id), 'auto-submitted')).toBe('auto-replied')
  })

  test('is given a few times a day in one thread to one address', async () => {
    const clock = new HeldClock()
    const { world, original } = await scene(notice, 'tick', sam, clock)
    const tries: number[] = []
    for (let count = 0; count < 4; count += 1) tries.push((await reply(world, original.id, { body: 'tock' })).status)
    expect(tries).toEqual([201, 201, 201, 429])
    const { headers, body } = await reply(world, original.id, { body: 'tock' })
    expect(body.error['code']).toBe('automatic_replies')
    expect(headers.get('retry-after')).toBe(String(24 * 3600))
    // what a person writes, and what goes elsewhere, is not held
    expect((await send(world, { to: 'kim@sender.test', in_reply_to: original.id })).status).toBe(201)
    expect((await send(world, { to: sam, body: 'by hand' })).status).toBe(201)
    clock.advance(25 * 3_600_000)
    expect((await reply(world, original.id, { body: 'tock' })).status).toBe(201)
  })
})

describe('a message in answer to another', () => {
  test('is returned to a repeated call only if its key may read', async () => {
    const { world, original } = await scene(letter)
    const scopes = ['emails:write']
    const { body: blind } = await world.box.call<{ key: string }>('POST', '/v1/api-keys', { scopes })
    const input = { to: sam, in_reply_to: original.id, body: 'x' }
    const once = { 'Idempotency-Key': 'once' }
    expect((await send(world, input, once)).status).toBe(201)
    const { status, body } = await send(world, input, { ...once, Authorization: `Bearer ${blind.key}` })
    expect([status, body.error]).toMatchObject([403, { code: 'insufficient_scope' }])
    expect((await send(world, input, once)).headers.get('idempotency-replayed')).toBe('true')
  })

  test('bears its ids and thread, and its subject when it has none', async () => {
    const { world, original } = await scene(letter)
    const { body } = await send(world, { to: 'new@sender.test', in_reply_to: original.id, body: 'x' })
    expect(body).toMatchObject({
      in_reply_to: '<2@sender.test>',
      subject: 'Re: Lunch?',
      thread_id: original.thread_id,
      body_text: 'x',
    })
  })

  test('must be of the same identity, and says it once', async () => {
    const { world, original } = await scene(letter)
    const { body: foreign } = await world.box.call('POST', `/v1/identities/${world.bob.id}/emails`, { to: 'zoe@pillarbox.test' })
    const wrong = await send(world, { to: sam, in_reply_to: foreign.id })
    expect([wrong.status, wrong.body.error['param']]).toEqual([400, 'in_reply_to'])
    const twice = await send(world, { to: sam, in_reply_to: original.id, headers: { 'In-Reply-To': '<x@y.test>' } })
    expect(twice.status).toBe(400)
  })
})

describe('a forward', () => {
  const parts = [
    '--b',
    'Content-Type: text/html; charset=utf-8',
    '',
    '<html><head><title>t</title></head><body><p>See <img src="cid:pic"></p></body></html>',
    '--b',
    'Content-Type: image/png; name="p.png"',
    'Content-Disposition: inline; filename="p.png"',
    'Content-ID: <pic>',
    'Content-Transfer-Encoding: base64',
    '',
    'aGk=',
    '--b',
    'Content-Type: application/pdf',
    'Content-Disposition: attachment; filename="bill.pdf"',
    'Content-Transfer-Encoding: base64',
    '',
    'cGRm',
    '--b--',
    '',
  ].join('\n')
  const mixed = { ...letter, 'Content-Type': 'multipart/related; boundary=b' }

  test('quotes the message and carries its files along', async () => {
    const { world, original } = await scene(mixed, parts)
    const { status, body } = await forward(world, original.id, {
      to: 'zoe@pillarbox.test',
      body_text: 'For you <3',
      attachments: [{ filename: 'own.txt', content: 'aGk=' }],
    })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      to: 'zoe@pillarbox.test',
      subject: 'Fwd: Lunch?',
      references: [...original.references, original.message_id],
      thread_id: original.thread_id,
    })
    expect(body.body_text).toMatch(
      /^For you <3\n\n-{10} Forwarded message -{9}\nFrom: Sam Sender <sam@sender\.test>\nDate: Fri, 20 Nov 2026 at 10:05 UTC\nSubject: Lunch\?\nTo: Ada <ada@pillarbox\.test>, Tom <tom@sender\.test>\nCc: Kim <kim@sender\.test>, ada\+news@pillarbox\.test\n\nSee/,
    )
    expect(body.body_html).toMatch(
      /^For you &lt;3<br>.*Sam Sender &lt;sam@sender\.test&gt;.*<p>See <img src="cid:pic"><\/p>\s*$/s,
    )
    expect(
      body.attachments.map(({ filename, content_id, sha256 }) => `${filename} ${content_id} ${sha256.slice(0, 6)}`).toSorted(),
    ).toEqual(['bill.pdf null c35b21', 'own.txt null 8f4343', 'p.png pic 8f4343'])
  })

  test('of a plain message is plain, and does not double Fwd:', async () => {
    const { world, original } = await scene({ ...letter, Subject: 'Fwd: Lunch?' }, 'noon')
    const { body } = await forward(world, original.id, { to: 'zoe@pillarbox.test' })
    expect(body).toMatchObject({ subject: 'Fwd: Lunch?', body_html: null })
    expect(body.body_text).toMatch(/^-{10} Forwarded.*\n\nnoon\n$/s)
  })

  test('as an attachment holds the octets that came', async () => {
    const { world, original } = await scene(mixed, parts)
    const { body } = await forward(world, original.id, { to: 'zoe@pillarbox.test', as_attachment: true, body: 'see' })
    expect(body).toMatchObject({
      body_text: 'see',
      attachments: [{ content_type: 'message/rfc822', filename: 'Lunch_.eml' }],
    })
    const { body: signed } = await world.box.call('GET', `/v1/identities/${world.ada.id}/emails/${body.id}/attachments/0`)
    const file = Buffer.from(await (await fetch(signed.url)).arrayBuffer()).toString()
    expect(file.trimEnd()).toBe(message(mixed, parts).trimEnd())
  })

  test('needs a recipient', async () => {
    const { world, original } = await scene(letter)
    expect((await forward(world, original.id, {})).body.error['param']).toBe('to')
  })
})

test('the other side reads an answer in the thread of what it answers', async () => {
  const world = await pair()
  const { body: asked } = await send(world, { to: world.bob.email, subject: 'Question', body: 'Why?' })
  const raw = await source(world, asked.id)
  await deliver(world.box.smtp, { from: world.ada.email, to: world.bob.email, raw })
  const { body: list } = await world.box.call('GET', `/v1/identities/${world.bob.id}/emails`)
  const { body: answer } = await world.box.call('POST', `/v1/identities/${world.bob.id}/emails/${list.data[0].id}/reply`, {
    body: 'So.',
  })
  await deliver(world.box.smtp, { from: world.bob.email, to: world.ada.email, raw: await source(world, answer.id, world.bob.id) })
  const { body: back } = await world.box.call('GET', `/v1/identities/${world.ada.id}/emails`)
  expect(back.data[0]).toMatchObject({ thread_id: asked.thread_id, in_reply_to: asked.message_id, snippet: 'So.' })
})

/** A verified box where Ada has had one message. */
async function scene(
  fields: Record<string, string>,
  body = 'noon?',
  from = sam,
  clock = new HeldClock(),
): Promise<{ world: Pair; original: Email }> {
  const box = await appliance({}, clock)
  const world = { box, ada: await living(box, 'Ada'), bob: await living(box, 'Bob') }
  await verified(world)
  expect(await deliver(box.smtp, { from, to: world.ada.email, raw: message(fields, body) })).toMatch(/^250/)
  return { world, original: await newest(box, world.ada.id) }
}

async function newest(box: Appliance, identity: string): Promise<Email> {
  const { body } = await box.call('GET', `/v1/identities/${identity}/emails?limit=1`)
  return (await box.call<Email>('GET', `/v1/identities/${identity}/emails/${body.data[0].id}`)).body
}

function reply({ box, ada }: Pair, id: string, input: object): Promise<Told> {
  return box.call('POST', `/v1/identities/${ada.id}/emails/${id}/reply`, input)
}

function forward({ box, ada }: Pair, id: string, input: object): Promise<Told> {
  return box.call('POST', `/v1/identities/${ada.id}/emails/${id}/forward`, input)
}
