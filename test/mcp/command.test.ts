import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openPair } from '../outbound/outgoing.ts'
import { connectByCommand } from '../support/mcp-clients.ts'
import { pillarbox } from '../support/pillarbox.ts'

const { world, close } = await openPair()
afterAll(close)
const { box, ada } = world

test('on the machine of the box the command needs no key, and acts for the account', async () => {
  const client = await connectByCommand('2026-07-28', ['--tools', 'whoami,list_identities'], box.env)
  expect((await client.list()).map(({ name }) => name)).toEqual(['whoami', 'list_identities'])
  expect((await client.call('whoami', { identity: ada.email })).data['identity_id']).toBe(ada.id)
})

test('a key may stand in a file; a wrong one, or a box that is away, is said in words', async () => {
  const file = join(box.directory, 'key')
  writeFileSync(file, `${box.key}\n`)
  const client = await connectByCommand('sdk 1', ['--url', `${box.url}/mcp`, '--key-file', file], {})
  expect((await client.call('list_identities')).text).toContain(ada.email)
  const ask = '{"jsonrpc":"2.0","id":7,"method":"tools/list"}\n'
  const wrong = await pillarbox({ ...box, env: { PILLARBOX_API_KEY: 'pbx_wrong' } }, ['mcp', '--url', box.url], ask)
  expect(JSON.parse(wrong.output)).toMatchObject({
    id: 7,
    error: { message: expect.stringContaining('not valid'), data: { status: 401 } },
  })
  const away = await pillarbox({ ...box, env: { PILLARBOX_API_KEY: 'x' } }, ['mcp', '--url', 'http://127.0.0.1:1'], ask)
  expect(JSON.parse(away.output)).toMatchObject({ id: 7, error: { message: expect.stringContaining('cannot be reached') } })
})

test('what is missing is said before anything is read', async () => {
  const none = await pillarbox({ ...box, env: {} }, ['mcp', '--url', box.url])
  expect([none.status, none.errors]).toEqual([1, expect.stringContaining('PILLARBOX_API_KEY')])
  const form = await pillarbox({ ...box, env: {} }, ['mcp', '--url', 'nonsense'])
  expect(form.errors).toContain('https://box.example.com')
  const stopped = await pillarbox({ ...box, env: { PILLARBOX_DATA_DIR: box.directory } }, ['mcp'])
  expect(stopped.errors).toContain('is not running')
})

test('each line is answered in its own time, and a line that is no message is told so', async () => {
  const { output } = await pillarbox(
    box,
    ['mcp'],
    `nonsense\n${JSON.stringify({ jsonrpc: '2.0', id: 'a', method: 'tools/list' })}\n${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`,
  )
  const lines = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: unknown; error?: object; result?: { tools: unknown[] } })
  expect(lines.find(({ id }) => id === null)!.error).toMatchObject({ code: -32_700 })
  expect(lines.find(({ id }) => id === 'a')!.result!.tools).toHaveLength(19)
  expect(lines).toHaveLength(2)
})
