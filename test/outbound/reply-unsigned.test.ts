import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Email } from '../../src/mail/model.ts'
import { type Answer, deliver } from '../support/appliance.ts'
import { rsaKey, sign } from '../support/signed-mail.ts'
import { openPair, type Pair, verified } from './outgoing.ts'

const rsa = rsaKey()
const author = 'sam@bank.test'
const desk = 'desk@elsewhere.test'
const beforehand = ['from', 'subject', 'date', 'message-id', 'in-reply-to', 'references', 'mime-version', 'content-type']

let world: Pair
let close: () => Promise<void>
let count = 0

beforeAll(async () => {
  ;({ world, close } = await openPair({ PILLARBOX_OUTBOUND__MODE: 'direct' }))
  const { dns } = world.box
  dns
    .txt('_dmarc.bank.test', 'v=DMARC1; p=reject')
    .txt('s._domainkey.bank.test', rsa.record)
    .txt('bank.test', 'v=spf1 -all')
    .txt('direct.test', 'v=spf1 ip4:127.0.0.1 -all')
    .txt('_dmarc.direct.test', 'v=DMARC1; p=reject')
  await verified(world)
})
afterAll(() => close())

/** A message of Sam's as Ada has it: these fields, of which `h=` names those and the usual ones. */
async function kept(fields: Record<string, string>, names: string[], added = ''): Promise<Email> {
  count += 1
  const header = { From: `Sam <${author}>`, Subject: `Terms ${count}`, 'Message-ID': `<${count}@bank.test>`, ...fields }
  const lines = Object.entries(header).map(([name, value]) => `${name}: ${value}\r\n`)
  const signed = await sign(`${lines.join('')}\r\nSee below.\r\n`, 'bank.test', 's', rsa, {
    headerList: [...beforehand, ...names].join(':'),
  })
  return came(added + signed.toString(), 'eve@nowhere.test')
}

async function came(raw: string, from: string): Promise<Email> {
  const { box, ada } = world
  expect(await deliver(box.smtp, { from, to: ada.email, raw })).toMatch(/^250 /)
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/emails?limit=1`)
  const { body: email } = await box.call<Email>('GET', `/v1/identities/${ada.id}/emails/${body.data[0].id}`)
  return email
}

function reply(email: Email, input: object): Promise<Answer<Email & { error: Record<string, string> }>> {
  return world.box.call('POST', `/v1/identities/${world.ada.id}/emails/${email.id}/reply`, input)
}

test('a Reply-To that somebody put before a signed message is marked, and not followed', async () => {
  const email = await kept({ To: world.ada.email }, ['to'], `Reply-To: ${desk}\r\n`)
  expect(email).toMatchObject({ verified_domain: 'bank.test', reply_to: desk, reply_to_verified: false })
  expect(email.authentication!.dkim[0]!.signed_fields).not.toContain('reply-to')
  expect((await reply(email, { body: 'Fine.' })).body.recipients.to).toEqual([{ address: author, name: 'Sam' }])
  expect((await reply(email, { body: 'Fine.', reply_all: true })).body.recipients).toMatchObject({
    to: [{ address: author }],
    cc: [],
  })
})

test('it is followed at the caller’s word', async () => {
  const email = await kept({ To: world.ada.email }, ['to'], `Reply-To: ${desk}\r\n`)
  const { body } = await reply(email, { body: 'Fine.', allow_unsigned: true })
  expect(body.recipients.to).toEqual([{ address: desk, name: '' }])
})

test('a Reply-To that is signed is followed', async () => {
  const email = await kept({ To: world.ada.email, 'Reply-To': desk }, ['to', 'reply-to'])
  expect(email).toMatchObject({ verified_domain: 'bank.test', reply_to: desk, reply_to_verified: true })
  expect(email.authentication!.dkim[0]!.signed_fields).toContain('reply-to')
  expect((await reply(email, { body: 'Fine.' })).body.to).toBe(desk)
})

test('a second Reply-To before the signed one takes the verdict away', async () => {
  const before = await world.box.call('GET', `/v1/identities/${world.ada.id}/emails?limit=1`)
  const signed = await sign(`From: ${author}\r\nReply-To: ${author}\r\nSubject: x\r\n\r\nx\r\n`, 'bank.test', 's', rsa, {
    headerList: 'from:subject:reply-to',
  })
  const raw = `Reply-To: ${desk}\r\n${signed.toString()}`
  expect(await deliver(world.box.smtp, { from: 'eve@nowhere.test', to: world.ada.email, raw })).toMatch(/^550 5\.7\.26 /)
  const after = await world.box.call('GET', `/v1/identities/${world.ada.id}/emails?limit=1`)
  expect(after.body.data[0].id).toBe(before.body.data[0].id)
})

test('what came from the servers of its domain is followed as it stands', async () => {
  const raw = `From: Kim <kim@direct.test>\r\nTo: ${world.ada.email}\r\nReply-To: ${desk}\r\nSubject: Hi\r\n\r\nHi.\r\n`
  const email = await came(raw, 'kim@direct.test')
  expect(email).toMatchObject({ verified_domain: 'direct.test', reply_to_verified: true })
  expect((await reply(email, { body: 'Fine.' })).body.to).toBe(desk)
})

test('of mail that is not verified nothing is said, and it is answered as it asks', async () => {
  const email = await came(
    `From: lee@open.test\r\nTo: ${world.ada.email}\r\nReply-To: ${desk}\r\nSubject: Hi\r\n\r\nHi.\r\n`,
    'lee@open.test',
  )
  expect(email).toMatchObject({ verified_domain: null, reply_to: desk, reply_to_verified: null })
  expect((await reply(email, { body: 'Fine.' })).body.to).toBe(desk)
})

test('to answer everybody, when the list of them is not signed, needs the caller’s word', async () => {
  const lists = { To: `${world.ada.email}, tom@elsewhere.test`, Cc: desk }
  const email = await kept(lists, ['to'])
  const refused = await reply(email, { body: 'Fine.', reply_all: true })
  expect([refused.status, refused.body.error['code']]).toEqual([409, 'unsigned_recipients'])
  expect(refused.body.error['message']).toMatch(/Cc.*bank\.test.*allow_unsigned/)
  const allowed = await reply(email, { body: 'Fine.', reply_all: true, allow_unsigned: true })
  expect(allowed.body.cc).toEqual([{ address: desk, name: '' }])
  const signed = await kept(lists, ['to', 'cc'])
  expect((await reply(signed, { body: 'Fine.', reply_all: true })).body.cc).toEqual([{ address: desk, name: '' }])
})

test('a link for unsubscribing that nobody signed is left out of a verified message', async () => {
  const header = 'List-Unsubscribe: <https://elsewhere.test/out>\r\n'
  const email = await kept({ To: world.ada.email }, ['to'], header)
  expect(email).toMatchObject({ verified_domain: 'bank.test', links: [] })
  const signed = await kept({ To: world.ada.email, 'List-Unsubscribe': '<https://bank.test/out>' }, ['to', 'list-unsubscribe'])
  expect(signed.links).toMatchObject([{ url: 'https://bank.test/out', kind: 'unsubscribe' }])
})

test('what makes a message one of a program’s is anybody’s word, as a list’s fields are put there on the way', async () => {
  const first = await kept({ To: world.ada.email }, ['to'])
  const added = `List-Id: <terms.elsewhere.test>\r\nX-Failed-Recipients: ada@bank.test\r\nReferences: ${first.message_id}\r\n`
  const email = await kept({ To: world.ada.email }, ['to'], added)
  expect(email).toMatchObject({ verified_domain: 'bank.test', automated: true, thread_id: first.thread_id, status: 'received' })
  for (const field of ['list-id', 'x-failed-recipients', 'references'])
    expect(email.authentication!.dkim[0]!.signed_fields).not.toContain(field)
  const own = await reply(first, { body: 'Fine.' })
  expect((await world.box.call('GET', `/v1/identities/${world.ada.id}/emails/${own.body.id}`)).body.status).not.toBe('bounced')
})

test('events say it too', async () => {
  const email = await kept({ To: world.ada.email }, ['to'], `Reply-To: ${desk}\r\n`)
  const { body } = await world.box.call('GET', `/v1/identities/${world.ada.id}/events?type=email.received&limit=100`)
  const event = body.data.find(({ data }: { data: { id: string } }) => data.id === email.id)
  expect(event.data).toMatchObject({
    reply_to_verified: false,
    authentication: { dkim: [{ signed_fields: expect.arrayContaining(['from']) }] },
  })
})
