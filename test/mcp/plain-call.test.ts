import { afterAll, expect, test } from 'vitest'
import { openToolWorld } from '../support/every-tool.ts'

const { world, close } = await openToolWorld()
afterAll(close)
const { box, key } = world

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
}

interface Answered {
  status: number
  type: string
  message: Record<string, unknown>
}

/** Sends a message of the protocol; its answer is in JSON, or the only one of a stream. */
async function send(revision: string, message: object, more: Record<string, string> = {}): Promise<Answered> {
  const { method, params } = message as { method: string; params: { name: string } }
  const modern = revision === '2026-07-28'
  const response = await fetch(`${box.url}/mcp`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': revision,
      ...(modern ? { 'Mcp-Method': method, 'Mcp-Name': params.name } : {}),
      ...more,
    },
    body: JSON.stringify(message),
  })
  const type = response.headers.get('content-type')!
  const text = await response.text()
  const data = type.startsWith('text/event-stream') ? /^data: (.+)$/m.exec(text)![1]! : text
  return { status: response.status, type, message: JSON.parse(data) as Record<string, unknown> }
}

function call(revision: string, params: object, id: unknown = 1): object {
  const more = revision === '2026-07-28' ? { _meta: meta } : {}
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { ...params, ...more } }
}

/** What differs from answer to answer. */
function steady(message: Record<string, unknown>): unknown {
  const text = JSON.stringify(message)
  return JSON.parse(
    text.replaceAll(/untrusted [0-9a-f]{12}/g, 'untrusted 0').replaceAll(/eyJ[\w.-]+|\d{4}-\d\d-\d\dT[\d:.]+Z/g, '…'),
  )
}

const calls: [string, object][] = [
  ['that succeeds', { name: 'list_messages', arguments: { limit: 5 } }],
  ['without arguments', { name: 'whoami' }],
  ['with data and text of strangers', { name: 'list_messages', arguments: { sent: true } }],
  ['of an unknown tool', { name: 'nothing', arguments: {} }],
  ['with wrong arguments', { name: 'read_message', arguments: { id: 7 } }],
  ['of what is not there', { name: 'read_message', arguments: { id: 'email_01jd3v8m2ef1pbx9mz5k7q4w6a' } }],
  ['that is a link', { name: 'identity_token', arguments: { audience: 'https://shop.test' } }],
]

test.each(['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])(
  'a plain call by revision %s is answered as the library of the protocol answers it',
  async (revision) => {
    for (const [what, params] of calls) {
      const plain = await send(revision, call(revision, params))
      // a field that means nothing makes it a matter of the library
      const whole = await send(revision, call(revision, { ...params, beside: 1 }))
      expect([what, plain.status, plain.type]).toEqual([what, 200, 'application/json; charset=utf-8'])
      expect([what, whole.status]).toEqual([what, 200])
      expect([what, steady(plain.message)]).toEqual([what, steady(whole.message)])
    }
    const { message } = await send(revision, call(revision, { name: 'whoami' }, 'a text'))
    expect(message['id']).toBe('a text')
  },
)

test.each([
  ['its header names another tool', call('2026-07-28', { name: 'whoami' }), { 'Mcp-Name': 'send_email' }, 400],
  ['its header names another method', call('2026-07-28', { name: 'whoami' }), { 'Mcp-Method': 'tools/list' }, 400],
  ['its header names another revision', call('2026-07-28', { name: 'whoami' }), { 'MCP-Protocol-Version': '2025-06-18' }, 400],
  ['its header names no revision that there is', call('2025-06-18', { name: 'whoami' }), { 'MCP-Protocol-Version': '1' }, 400],
  ['its client takes no stream', call('2025-06-18', { name: 'whoami' }), { Accept: 'application/json' }, 406],
  ['its id is none', call('2025-06-18', { name: 'whoami' }, { a: 1 }), {}, 400],
])('a call is refused when %s', async (_what, message, headers, status) => {
  const revision = JSON.stringify(message).includes('2026-07-28') ? '2026-07-28' : '2025-06-18'
  expect((await send(revision, message, headers)).status).toBe(status)
})

test.each([
  ['of the client are not declared', { 'io.modelcontextprotocol/clientCapabilities': undefined }],
  ['of the client are no object', { 'io.modelcontextprotocol/clientCapabilities': [] }],
  ['are of another revision', { 'io.modelcontextprotocol/protocolVersion': '2099-01-01' }],
])('a call is refused whose capabilities %s', async (_what, change) => {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami', _meta: { ...meta, ...change } } }
  expect((await send('2026-07-28', message)).status).toBe(400)
})

test('a wait streams to clients of the revisions before, so that they see that it lives', async () => {
  const wait = call('2025-06-18', { name: 'wait_for_message', arguments: { from: 'nobody.test', timeout: 0 } })
  expect((await send('2025-06-18', wait)).type).toContain('text/event-stream')
})

test.each([
  ['a text', '{"limit": 5}'],
  ['a list', [5]],
  ['null', null],
])('arguments that are %s are answered as a result, with a right call', async (_, given) => {
  const { status, message } = await send('2026-07-28', call('2026-07-28', { name: 'list_messages', arguments: given }))
  expect([status, message]).toMatchObject([200, { result: { isError: true } }])
  expect(JSON.stringify(message)).toContain('A right call: list_messages')
})
