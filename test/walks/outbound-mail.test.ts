import { Resolver } from 'node:dns/promises'
import { createHash } from 'node:crypto'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { expect, test, vi } from 'vitest'
import type { Email } from '../../src/mail/model.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { movable } from '../support/held-clock.ts'
import { MailSink } from '../support/mail-sink.ts'
import { failureReport } from '../support/reports.ts'
import { addedDomain, verifiedDomain } from '../support/verified-domain.ts'
import { WebhookSink } from '../support/webhook-sink.ts'

interface Person {
  id: string
  email: string
}

/** A box with a verified domain, and a server of far.test on loopback. */
async function world(extensions?: string[], clock?: ReturnType<typeof movable>) {
  const sink = await MailSink.start(extensions ? { extensions } : {})
  const box = await appliance(
    {
      PILLARBOX_OUTBOUND__PORT: String(sink.port),
      PILLARBOX_OUTBOUND__ALLOW_NETWORKS: '127.0.0.0/8',
      PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
    },
    clock,
  )
  await verifiedDomain(box)
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  return { sink, box, ada: await person(box, { name: 'Ada' }), bob: await person(box, { name: 'Bob' }) }
}

test('from one call to the bounce that comes back: statuses, events, webhooks and octets', async () => {
  const { sink, box, ada, bob } = await world()
  const hook = await WebhookSink.start()
  await box.call('POST', '/v1/webhooks', { url: hook.url, events: ['*'], identity_id: ada.id })
  const file = Buffer.from(Array.from({ length: 4000 }, (_, index) => (index * 7) % 256))
  const sent = await box.call<Email>('POST', `/v1/identities/${ada.id}/emails`, {
    to: ['Sam <sam@far.test>', bob.email],
    bcc: 'eve@far.test',
    subject: 'Größe — figures',
    body_text: '.\nThe figures are below.\n',
    body_html: '<p>The figures are below.</p>',
    attachments: [{ filename: 'figures.bin', content: file.toString('base64') }],
  })
  expect([sent.status, sent.body.status]).toEqual([201, 'queued'])
  expect(sent.body.deliveries.map(({ recipient, status }) => [recipient, status])).toEqual([
    ['sam@far.test', 'queued'],
    [bob.email, 'queued'],
    ['eve@far.test', 'queued'],
  ])
  const { id } = sent.body
  const email = await until(box, ada, id, 'delivered')
  expect(email.deliveries).toMatchObject([
    { recipient: 'sam@far.test', status: 'delivered', mx: 'mx.far.test', smtp_code: 250, attempts: 1 },
    { recipient: bob.email, status: 'delivered', mx: 'pillarbox.test', attempts: 1 },
    { recipient: 'eve@far.test', status: 'delivered', mx: 'mx.far.test' },
  ])
  expect(email.deliveries[0]!.history).toMatchObject([{ number: 1, outcome: 'delivered', mx: 'mx.far.test' }])
  expect(email.sent_at).not.toBeNull()

  // what arrived is what the box shows, signed by both keys, and tells of nobody it should not
  const raw = await source(box, ada, id)
  expect(sink.messages.flatMap(({ to }) => to).toSorted()).toEqual(['eve@far.test', 'sam@far.test'])
  for (const { octets } of sink.messages) expect(sha(octets)).toBe(sha(raw))
  expect(await verdicts(box, sink.messages[0]!.octets)).toEqual(['pass rsa-sha256', 'pass ed25519-sha256'])
  const head = raw.toString('latin1', 0, raw.indexOf('\r\n\r\n'))
  expect(head).not.toMatch(/^(?:Bcc|Received|Return-Path|X-Mailer|User-Agent)[ \t]*:|eve@far|127\.0\.0\.1|bounce\+/im)
  for (const field of ['Date', 'Message-ID', 'From', 'To', 'Subject', 'MIME-Version'])
    expect([field, head.match(new RegExp(`^${field}:`, 'gim'))?.length]).toEqual([field, 1])
  expect(head).toMatch(/^Message-ID: <[0-9a-f-]{36}@pillarbox\.test>$/m)

  // who lives on the box has the same octets, below our own trace, and the file whole
  const { body: inbox } = await box.call('GET', `/v1/identities/${bob.id}/emails`)
  expect(inbox.data).toMatchObject([{ subject: 'Größe — figures', from: ada.email, to: bob.email, has_attachments: true }])
  const copy = await source(box, bob, inbox.data[0].id)
  expect(sha(copy.subarray(-raw.length))).toBe(sha(raw))
  const { body: link } = await box.call('GET', `/v1/identities/${bob.id}/emails/${inbox.data[0].id}/attachments/0`)
  expect(sha(Buffer.from(await (await fetch(link.url)).arrayBuffer()))).toBe(sha(file))

  // hours later the server finds that there is nobody, and says so to the return path of that copy
  const landed = sink.messages.find(({ to }) => to[0] === 'sam@far.test')!
  const returned = `From: <${ada.email}>\nMessage-ID: ${email.message_id}\n`
  const report = failureReport({ recipient: 'sam@far.test', reporter: 'mx.far.test', returned })
  expect(await deliver(box.smtp, { from: '', to: landed.from, raw: report })).toMatch(/^250 /)
  const bounced = await until(box, ada, id, 'bounced')
  expect(bounced.deliveries.map(({ status }) => status)).toEqual(['bounced', 'delivered', 'delivered'])
  expect(bounced.deliveries[0]).toMatchObject({ smtp_code: 550, enhanced_code: '5.1.1' })
  expect(bounced.deliveries[0]!.response).toMatch(/User unknown \(reported by mx\.far\.test\)$/)
  expect((await box.call('GET', `/v1/identities/${ada.id}/emails`)).body.data).toEqual([])

  const again = await box.call('POST', `/v1/identities/${ada.id}/emails`, { to: 'SAM@far.test', body: 'Again' })
  expect([again.status, again.body.error]).toMatchObject([400, { code: 'recipient_suppressed', param: 'to' }])
  const { body: list } = await box.call('GET', '/v1/suppressions')
  expect(list.data).toMatchObject([{ email: 'sam@far.test', source: 'bounce', email_id: id }])
  await box.call('DELETE', `/v1/suppressions/${list.data[0].id}`)
  expect((await box.call('POST', `/v1/identities/${ada.id}/emails`, { to: 'sam@far.test', body: 'Again' })).status).toBe(201)

  // the log and the webhook tell the same, in the same order
  const { body: log } = await box.call('GET', `/v1/identities/${ada.id}/events?limit=200`)
  const events = log.data.toReversed().filter((event) => event.data.id === id)
  const told = events.map(({ type, data }) => `${type} ${data.delivery?.recipient ?? ''}`)
  expect([told[0], told.slice(1, 4).toSorted(), told.slice(4)]).toEqual([
    'email.queued ',
    [`email.delivered ${bob.email}`, 'email.delivered eve@far.test', 'email.delivered sam@far.test'],
    ['email.bounced sam@far.test'],
  ])
  const heard = await hook.until(5, ({ body }) => body.data['id'] === id)
  expect(new Set(heard.map(({ body }) => body.id)).size).toBe(events.length)
  for (const { body } of heard) expect(body).toEqual(events.find((event) => event.id === body.id))
})

test('what was put to another time is signed when it leaves, dated then, and good at the other end', async () => {
  const clock = movable()
  const { sink, box, ada } = await world(undefined, clock)
  const at = (hours: number): string => new Date(Math.floor(clock.now() / 1000) * 1000 + hours * 3_600_000).toISOString()
  const input = { to: 'sam@far.test', subject: 'Later', body: 'Later\n', send_at: at(48) }
  const { body } = await box.call<Email>('POST', `/v1/identities/${ada.id}/emails`, input)
  const moved = at(24)
  const changed = await box.call<Email>('PATCH', `/v1/identities/${ada.id}/emails/${body.id}`, { send_at: moved })
  expect(changed.body).toMatchObject({ status: 'scheduled', send_at: moved })
  clock.ahead += 24 * 3_600_000 + 5000
  await box.restart()
  await until(box, ada, body.id, 'delivered')
  const [landed] = sink.messages
  expect(await verdicts(box, landed!.octets)).toEqual(['pass rsa-sha256', 'pass ed25519-sha256'])
  expect(Date.parse(/^Date: (.*)$/m.exec(landed!.raw)![1]!)).toBe(Date.parse(moved))
  expect(sha(landed!.octets)).toBe(sha(await source(box, ada, body.id)))
})

test('mail beyond ASCII keeps its octets and its signatures, and is said to be what it is', async () => {
  const { sink, box, ada } = await world(['SMTPUTF8', '8BITMIME', 'SIZE'])
  await addedDomain(box, 'bücher.test')
  const zoe = await person(box, { name: 'Zoë Ångström', email_domain: 'bücher.test', email_username: 'zoe' })
  expect(zoe.email).toBe('zoe@xn--bcher-kva.test')
  box.dns.mx('xn--fr-via.test', 'mx.far.test')
  // a message in UTF-8 and in ISO 8859-1, as they come from outside
  const eight = Buffer.concat([
    Buffer.from(
      message(
        { Subject: 'Gr=?', To: ada.email, 'Content-Type': 'text/plain; charset=iso-8859-1', 'Content-Transfer-Encoding': '8bit' },
        'Gr',
      ),
    ),
    Buffer.from([0xfc, 0xdf, 0x65, 0x0d, 0x0a]),
  ])
  await deliver(box.smtp, { to: ada.email, raw: eight })
  const { body: inbox } = await box.call('GET', `/v1/identities/${ada.id}/emails`)

  const inputs: [who: Person, path: string, input: object, to: string, parameters: string[]][] = [
    [ada, 'emails', { to: 'Jürgen <jürgen@far.test>', subject: 'Grüße', body: 'Grüße' }, 'jürgen@far.test', ['SMTPUTF8']],
    [ada, 'emails', { to: 'Jo <jo@fär.test>', subject: 'Grüße', body: 'Grüße' }, 'jo@xn--fr-via.test', []],
    [ada, 'emails', { to: 'sam@far.test', reply_to: 'jürgen@far.test', body: 'x' }, 'sam@far.test', ['SMTPUTF8']],
    [zoe, 'emails', { to: 'sam@far.test', subject: '漢字', body: '漢字' }, 'sam@far.test', []],
    [ada, `emails/${inbox.data[0].id}/forward`, { to: 'kim@far.test', as_attachment: true }, 'kim@far.test', ['BODY=8BITMIME']],
  ]
  for (const [who, path, input, to, parameters] of inputs) {
    const { status, body } = await box.call<Email>('POST', `/v1/identities/${who.id}/${path}`, input)
    expect([path, status]).toEqual([path, 201])
    await until(box, who, body.id, 'delivered')
    const landed = sink.messages.at(-1)!
    expect(landed.to).toEqual([to])
    expect(await verdicts(box, landed.octets)).toEqual(['pass rsa-sha256', 'pass ed25519-sha256'])
    expect(sha(landed.octets)).toBe(sha(await source(box, who, body.id)))
    const said = ['SMTPUTF8', 'BODY=8BITMIME'].filter((word) => landed.parameters.split(' ').includes(word))
    expect([to, said]).toEqual([to, expect.arrayContaining(parameters)])
    expect([to, said.includes('SMTPUTF8')]).toEqual([to, parameters.includes('SMTPUTF8')])
  }
  expect(sink.messages.at(-1)!.octets.includes(eight)).toBe(true)
  expect(sink.messages.at(-2)!.from).toMatch(/@xn--bcher-kva\.test$/)
})

async function person(box: Appliance, input: object): Promise<Person> {
  const { status, body } = await box.call('POST', '/v1/identities', input)
  expect([status, body]).toMatchObject([201, {}])
  return { id: body.id as string, email: body.email as string }
}

function until(box: Appliance, { id: who }: Person, id: string, status: string): Promise<Email> {
  return vi.waitFor(
    async () => {
      const { body } = await box.call<Email>('GET', `/v1/identities/${who}/emails/${id}`)
      expect([body.status, body.deliveries]).toMatchObject([status, {}])
      return body
    },
    { timeout: 100_000, interval: 20 },
  )
}

async function source(box: Appliance, { id: who }: Person, id: string): Promise<Buffer> {
  const answer = await fetch(`${box.url}/v1/identities/${who}/emails/${id}/raw`, {
    headers: { Authorization: `Bearer ${box.key}` },
  })
  return Buffer.from(await answer.arrayBuffer())
}

/** What a receiver that asks the DNS finds of the signatures of a message. */
async function verdicts(box: Appliance, raw: Buffer): Promise<string[]> {
  const resolver = new Resolver()
  resolver.setServers(box.dns.servers)
  const { results } = await dkimVerify(raw, { resolver: (name: string) => resolver.resolveTxt(name), strict: true })
  return results.map(({ status, algo }: { status: { result: string }; algo?: string }) => `${status.result} ${algo}`)
}

function sha(octets: Buffer): string {
  return createHash('sha256').update(octets).digest('hex')
}
