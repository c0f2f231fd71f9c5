import { expect } from 'vitest'
import { codeAt } from '../../src/totp/codes.ts'
import { openPair, type Pair } from '../outbound/outgoing.ts'
import { deliver, message } from './appliance.ts'
import type { Connected } from './mcp-clients.ts'

const secret = 'JBSWY3DPEHPK3PXP'
const scopes = ['identities:read', 'identities:write', 'messages:read', 'messages:write']

/** A box in which Ada has all that the tools of an identity are for, and the key that is bound to her. */
export interface ToolWorld extends Pair {
  key: string
  phone: string
}

export async function openToolWorld(): Promise<{ world: ToolWorld; close: () => Promise<void> }> {
  const { world, close } = await openPair({ PILLARBOX_SMS__PROVIDER: 'loopback' })
  const { box, ada } = world
  const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: ada.id, scopes })
  await box.call('POST', `/v1/identities/${ada.id}/totp`, { secret, service_name: 'Example', account_name: 'ada' })
  const { body: phoned } = await box.call('POST', `/v1/identities/${ada.id}/phone`, {})
  return { world: { ...world, key: bound['key'] as string, phone: phoned['phone_number'] as string }, close }
}

/** What the key of an identity sees. */
export const toolsOfAnIdentity = [
  'whoami',
  'wait_for_message',
  'list_messages',
  'read_message',
  'read_thread',
  'read_attachment',
  'send_email',
  'reply_email',
  'send_sms',
  'message_status',
  'mark_messages',
  'read_login',
  'one_time_password',
  'identity_token',
]

/** Does with the tools all that an identity does, and expects what comes of it. `by` tells the messages of one client from those of another. */
export async function useEveryTool(client: Connected, { box, ada, bob, phone }: ToolWorld, by: string): Promise<void> {
  const me = await client.call('whoami')
  expect(me.data).toEqual({ identity_id: ada.id, email: ada.email, phone_number: phone })
  expect(me.text).toContain('One-time password: Example (ada)')
  expect(me.text).toContain('may send: e-mail, SMS')
  expect(me.text).toContain('only to addresses on this box: ')

  // a mail with a code, waited for
  const subject = `Your code (${by})`
  const waiting = client.call('wait_for_message', { from: 'shop.test', subject, timeout: 20 })
  await deliver(box.smtp, {
    from: 'no-reply@shop.test',
    to: ada.email,
    raw: message(
      {
        From: 'Shop <no-reply@shop.test>',
        To: ada.email,
        Subject: subject,
        'Message-ID': `<${by.replaceAll(/\W+/g, '.')}@shop.test>`,
      },
      'Your verification code is 482913.\n\nOr open https://shop.test/verify?token=abc to confirm your address.\n',
    ),
  })
  const came = await waiting
  expect(came.data).toMatchObject({ timed_out: false, codes: ['482913'] })
  expect(came.text).toContain('https://shop.test/verify?token=abc')
  const id = came.data['message_id'] as string

  const list = await client.call('list_messages', { unread: true, limit: 3 })
  expect((list.data['ids'] as string[])[0]).toBe(id)
  expect(list.text).toContain('codes: 482913')
  expect((await client.call('list_messages', { query: 'verification' })).data['ids']).toContain(id)
  const read = await client.call('read_message', { id })
  expect(read.text).toContain('Your verification code is 482913.')
  expect(read.text).toContain('sender unverified')

  // answered, and what became of it
  const { body: asked } = await box.call('POST', `/v1/identities/${bob.id}/emails`, {
    to: ada.email,
    subject: 'Lunch?',
    body_text: 'At one?',
  })
  const question = await client.call('wait_for_message', { from: bob.email, subject: 'Lunch', timeout: 20 })
  expect(question.text).toContain('At one?')
  const answer = { message_id: question.data['message_id'], text: `Yes, ${by}.`, idempotency_key: `reply ${by}` }
  const replied = await client.call('reply_email', answer)
  expect(replied.isError).toBe(false)
  expect((await client.call('reply_email', answer)).data['id']).toBe(replied.data['id'])
  const passed = await client.call('reply_email', {
    message_id: answer.message_id,
    text: 'See below.',
    forward_to: [bob.email],
  })
  expect(passed.isError).toBe(false)
  expect(asked['id']).toMatch(/^email_/)
  const sent = await client.call('send_email', {
    to: [bob.email],
    subject: `Notes of ${by}`,
    text: 'See the file.',
    attachments: [{ filename: 'notes.txt', text: 'first line\nsecond line\n' }],
  })
  expect(sent).toMatchObject({ isError: false, data: { status: 'queued' } })
  await box.settled()
  const status = await client.call('message_status', { id: sent.data['id'] })
  expect(status.data).toMatchObject({ status: 'delivered', deliveries: [{ recipient: bob.email, status: 'delivered' }] })
  const file = await client.call('read_attachment', { message_id: sent.data['id'], index: 0 })
  expect(file.text).toContain('first line\nsecond line')
  const link = await client.call('read_attachment', { message_id: sent.data['id'], index: 0, as: 'link' })
  expect(await (await fetch(link.links[0]!.uri)).text()).toBe('first line\nsecond line\n')
  const later = await client.call('send_email', {
    to: [bob.email],
    subject: 'Later',
    text: 'x',
    send_at: '2027-01-01T00:00:00Z',
  })
  expect((await client.call('message_status', { id: later.data['id'], cancel: true })).data['status']).toBe('cancelled')

  const { body: sentMail } = await box.call('GET', `/v1/identities/${ada.id}/emails/${String(sent.data['id'])}`)
  const thread = await client.call('read_thread', { id: sentMail['thread_id'] as string })
  expect(thread.text).toContain('See the file.')
  expect((await client.call('read_thread', { id: sent.data['id'] })).data['thread_id']).toBe(sentMail['thread_id'])

  // text messages
  await box.call('POST', '/v1/sms/loopback/inject', {
    from: '+15550100199',
    to: phone,
    body: `Your code is 1357, ${by}`,
  })
  const text = await client.call('wait_for_message', { channel: 'sms', timeout: 20 })
  expect(text.data).toMatchObject({ timed_out: false, codes: ['1357'] })
  expect((await client.call('list_messages', { channel: 'sms' })).data['ids']).toContain(text.data['message_id'])
  expect((await client.call('read_message', { id: text.data['message_id'] })).text).toContain(`Your code is 1357, ${by}`)
  const short = await client.call('send_sms', { to: '+15550100199', body: 'Got it.' })
  expect(short.isError).toBe(false)
  expect((await client.call('message_status', { id: short.data['id'] })).text).toContain(short.data['id'])

  // marked, and put into the trash
  const marked = await client.call('mark_messages', { ids: [id, text.data['message_id']], read: true })
  expect(marked.data).toEqual({ changed: 2, failed: 0 })
  expect((await client.call('mark_messages', { ids: [id], labels: ['done'], trash: true })).data['changed']).toBe(1)
  expect(await client.call('read_message', { id })).toMatchObject({ isError: true, data: { code: 'not_found' } })

  // logging in, and proving who one is
  const code = await client.call('one_time_password', { service: 'example' })
  const now = Date.now()
  const recipe = { algorithm: 'SHA1', digits: 6, period: 30 } as const
  // of JBSWY3DPEHPK3PXP in base32
  const bytes = Buffer.from('48656c6c6f21deadbeef', 'hex')
  expect([-30_000, 0, 30_000].map((apart) => codeAt(bytes, recipe, now + apart))).toContain(code.data['code'])
  const token = await client.call('identity_token', { audience: 'https://shop.test' })
  const jwt = /eyJ[\w.-]+/.exec(token.text)![0]
  const verified = await box.call('POST', '/v1/verify/token', { token: jwt, audience: 'https://shop.test' })
  expect(verified.body).toMatchObject({ valid: true, identity: { id: ada.id } })
}
