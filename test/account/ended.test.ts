import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import type { Appliance } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { signIn, withPassword } from '../support/people.ts'

interface Key {
  id: string
  key: string
}

interface Told {
  status: number
  code: string | undefined
}

const near = { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }
const sink = 'http://127.0.0.1:9/theirs'

const keyOf = async (box: Appliance, wish: object = {}, key = box.key): Promise<Key> =>
  (await box.call<Key>('POST', '/v1/api-keys', wish, { key })).body

/** Sends a call but for the last octet of its body, which `finish` sends once the box has read the headers. */
async function begun(box: Appliance, path: string, body: string, headers: Record<string, string>): Promise<() => Promise<Told>> {
  const socket = connect(Number(new URL(box.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let heard = ''
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString()))
  const fields = Object.entries({ Host: 'box.test', 'Content-Type': 'application/json', Connection: 'close', ...headers })
  const lines = [`POST ${path} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`)]
  socket.write(`${lines.join('\r\n')}\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`)
  await expect.poll(() => heard).toBe('HTTP/1.1 100 Continue\r\n\r\n')
  socket.write(body.slice(0, -1))
  return async () => {
    const closed = once(socket, 'close')
    socket.write(body.slice(-1))
    await closed
    const [, answer = ''] = heard.split('100 Continue\r\n\r\n')
    return { status: Number(answer.split(' ')[1]), code: /"code":"(\w+)"/.exec(answer)?.[1] }
  }
}

const as = ({ key }: Key) => ({ Authorization: `Bearer ${key}` })

test('a key that is revoked while the body of a call is on its way does nothing more', async () => {
  const box = await appliance(near)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const other = await keyOf(box)
  const calls = [
    ['/v1/api-keys', { label: 'late' }],
    ['/v1/webhooks', { url: sink, events: ['*'] }],
    [`/v1/api-keys/${other.id}/rotate`, { grace_seconds: 0 }],
    [`/v1/identities/${ada['id']}/emails`, { to: [ada['email']], subject: 'late', body_text: 'late' }],
    ['/v1/identities', { name: 'late' }],
    ['/v1/realtime/token', {}],
    [`/v1/identities/${ada['id']}/export`, { format: 'mbox' }],
  ] as const
  for (const [path, body] of calls) {
    const leaked = await keyOf(box)
    await box.call('GET', '/v1/identities', undefined, { key: leaked.key })
    const finish = await begun(box, path, JSON.stringify(body), as(leaked))
    await box.call('DELETE', `/v1/api-keys/${leaked.id}`)
    expect([path, await finish()]).toEqual([path, { status: 401, code: 'invalid_key' }])
  }
  const { body: keys } = await box.call('GET', '/v1/api-keys')
  expect(keys.data.map(({ id }) => id as string)).toContain(other.id)
  expect(keys.data).toHaveLength(2)
  for (const path of ['/v1/webhooks', '/v1/jobs', `/v1/identities/${ada['id']}/emails`])
    expect((await box.call('GET', path)).body.data).toEqual([])
  expect((await box.call('GET', '/v1/api-keys', undefined, { key: other.key })).status).toBe(200)
})

test('nor does an import begin whose file was still on its way', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const leaked = await keyOf(box)
  await box.call('GET', '/v1/identities', undefined, { key: leaked.key })
  const file = 'From: Sam <sam@sender.test>\r\nSubject: late\r\nMessage-ID: <late@sender.test>\r\n\r\nLong ago.\r\n'
  const headers = { ...as(leaked), 'Content-Type': 'application/octet-stream' }
  const finish = await begun(box, `/v1/identities/${ada['id']}/import`, file, headers)
  await box.call('DELETE', `/v1/api-keys/${leaked.id}`)
  expect(await finish()).toEqual({ status: 401, code: 'invalid_key' })
  expect((await box.call('GET', '/v1/jobs')).body.data).toEqual([])
})

test('nor does a key that expires meanwhile, nor a secret that was rotated away', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const brief = await keyOf(box, { expires_at: new Date(clock.now() + 60_000).toISOString() })
  const rotated = await keyOf(box)
  const finish = await Promise.all([brief, rotated].map((key) => begun(box, '/v1/identities', '{"name":"late"}', as(key))))
  clock.advance(60_000)
  await box.call('POST', `/v1/api-keys/${rotated.id}/rotate`, { grace_seconds: 0 })
  for (const one of finish) expect(await one()).toEqual({ status: 401, code: 'invalid_key' })
})

test('nor does a session that somebody ended', async () => {
  const box = await appliance()
  await withPassword(box)
  const page = await signIn(box)
  const stolen = await signIn(box)
  const headers = { Cookie: stolen.cookie, Origin: box.url }
  const finish = await begun(box, '/v1/api-keys', '{"label":"late"}', headers)
  await page.call('DELETE', '/v1/account/sessions')
  expect(await finish()).toEqual({ status: 401, code: 'session_ended' })
})

test('a call whose key stays is answered, however slowly its body comes', async () => {
  const box = await appliance()
  const key = await keyOf(box)
  const finish = await begun(box, '/v1/api-keys', '{"label":"late"}', as(key))
  expect(await finish()).toEqual({ status: 201, code: undefined })
})
