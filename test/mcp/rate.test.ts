import { afterAll, expect, test } from 'vitest'
import { openPair } from '../outbound/outgoing.ts'
import { deliver, message } from '../support/appliance.ts'

const { world, close } = await openPair()
afterAll(close)
const { box, ada } = world

const limit = 60
const scopes = ['identities:read', 'identities:write', 'messages:read', 'messages:write']

/** A key of Ada that may make so many calls a minute. */
async function keyOf(rate_limit = limit): Promise<string> {
  const { body } = await box.call('POST', '/v1/api-keys', { scopes, identity_id: ada.id, rate_limit })
  return body['key'] as string
}

interface Told {
  text: string
  data: Record<string, unknown>
  /** Calls that are left this minute. */
  left: number
}

async function use(key: string, name: string, given: object = {}): Promise<Told> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': name }
  const request = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given, _meta: meta } }
  const { body, headers: answered } = await box.call('POST', '/mcp', request, { key, headers })
  const { content, _meta: data } = body['result'] as { content: { text: string }[]; _meta: Record<string, object> }
  return {
    text: content[0]!.text,
    data: data['pillarbox/data'] as Record<string, unknown>,
    left: Number(/;r=(\d+)/.exec(answered.get('ratelimit')!)![1]),
  }
}

/** Calls that one use of a tool costs. */
async function cost(name: string, given: object = {}): Promise<number> {
  return limit - (await use(await keyOf(), name, given)).left
}

/** Delivers a conversation to Ada; returns the ids of its messages, the newest first, and that of the thread. */
async function conversation(name: string, count: number, text: string): Promise<{ ids: string[]; thread: string }> {
  for (let number = 0; number < count; number += 1) {
    const fields = { Subject: `${name} ${number}`, 'Message-ID': `<${name}.${number}@x.test>`, References: `<${name}.0@x.test>` }
    await deliver(box.smtp, { to: ada.email, raw: message({ To: ada.email, ...fields }, `${number} ${text}\n`) })
  }
  await box.settled()
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/emails?limit=${count}`)
  return { ids: body.data.map(({ id }) => id as string), thread: body.data[0].thread_id as string }
}

test('a tool costs as many calls as it makes, as it would cost a program', async () => {
  const { ids, thread } = await conversation('short', 20, 'Between us.')
  expect(await cost('list_messages')).toBe(1)
  expect(await cost('read_message', { id: ids[0] })).toBe(1)
  const key = await keyOf()
  const read = await use(key, 'read_thread', { id: thread, last: 20 })
  expect([read.data['ids'], limit - read.left]).toEqual([ids.toReversed(), 1])
  // the e-mail that tells its thread, and the list
  expect(await cost('read_thread', { id: ids[0], last: 20 })).toBe(2)
  // the key with its identity, unread e-mails, one-time passwords, logins
  expect(await cost('whoami')).toBe(4)
  await box.call('POST', `/v1/identities/${ada.id}/totp`, { secret: 'JBSWY3DPEHPK3PXP', service_name: 'Shop' })
  expect(await cost('one_time_password', { service: 'shop' })).toBe(2)
  expect(await cost('mark_messages', { ids, read: true, labels: ['seen'] })).toBe(1)
  expect(await cost('mark_messages', { ids, read: false, trash: true })).toBe(2)
})

test('a conversation is read whole, from long e-mails too', async () => {
  const { ids, thread } = await conversation('long', 6, 'word word word word\n'.repeat(20_000))
  // so few that none comes back while a slow machine reads
  const few = 10
  const key = await keyOf(few)
  const { text, data, left } = await use(key, 'read_thread', { id: thread, last: 6 })
  expect(data).toMatchObject({ ids: ids.toReversed(), has_more: false })
  expect(text.length).toBeLessThanOrEqual(8000)
  for (const number of ids.keys()) expect(text).toMatch(new RegExp(`^${number} word word`, 'm'))
  expect(text.match(/^Cut: read_message/gm)!.length).toBeGreaterThan(0)
  // for each megabyte of bodies one
  expect(few - left).toBeGreaterThan(1)
  const some = await use(key, 'read_thread', { id: thread, last: 2 })
  expect(some.data).toMatchObject({ ids: ids.slice(0, 2).toReversed(), has_more: true })
})

test('a tool that would make one call too many stops there, and says when it can go on', async () => {
  const key = await keyOf(2)
  const { text, data, left } = await use(key, 'whoami')
  expect([data['code'], left]).toEqual(['rate_limited', 0])
  expect(text).toMatch(/Try again in \d+ s\./)
})

test('what was not changed is named with the reason, and the rest is changed', async () => {
  const { ids } = await conversation('marked', 2, 'x')
  const unknown = 'email_01jd3v8m2ef1pbx9mz5k7q4w6a'
  const given = [...ids, unknown, 'nonsense', 'x'.repeat(500), 'sms_01jd3v8m2ef1pbx9mz5k7q4w6a', ids[0]!]
  const { text, data } = await use(await keyOf(), 'mark_messages', { ids: given, labels: ['done'], read: true })
  expect(data).toEqual({ changed: 2, failed: 4 })
  expect(text).toContain(`Not changed: ${unknown}: No such e-mail.`)
  expect(text).toContain('Not changed: nonsense: No such e-mail.')
  expect(text).toContain('Text messages have no labels.')
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/emails?label=done`)
  expect(body.data.map(({ id, read }) => [id, read])).toEqual(ids.map((id) => [id, true]))
})
