import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { expect, onTestFinished, test } from 'vitest'
import { appliance, type Appliance } from '../support/appliance.ts'
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

const keyOf = async (box: Appliance, input: object = {}, key = box.key): Promise<Key> =>
  (await box.call<Key>('POST', '/v1/api-keys', input, { key })).body

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

test('what a key was about to make when it was revoked is not made, or ends with it', async () => {
  const box = await appliance(near)
  box.dns.a('slow.test', '127.0.0.1').slow('slow.test', 1000)
  const leaked = await keyOf(box)
  const making = box.call('POST', '/v1/webhooks', { url: 'https://slow.test:9/', events: ['*'] }, { key: leaked.key })
  await expect.poll(() => box.dns.queries).toContain('A slow.test')
  await box.call('DELETE', `/v1/api-keys/${leaked.id}`)
  await making
  const { body: hooks } = await box.call('GET', '/v1/webhooks')
  expect(hooks.data.filter((one) => one.active)).toEqual([])
})

test('a call whose key stays is answered, however slowly its body comes', async () => {
  const box = await appliance()
  const key = await keyOf(box)
  const finish = await begun(box, '/v1/api-keys', '{"label":"late"}', as(key))
  expect(await finish()).toEqual({ status: 201, code: undefined })
})

interface Rotated extends Key {
  rotated_by: string | null
}

const rotate = async (box: Appliance, key: Key, by: string, grace_seconds = 0): Promise<Rotated> =>
  (await box.call<Rotated>('POST', `/v1/api-keys/${key.id}/rotate`, { grace_seconds }, { key: by })).body
const end = async (box: Appliance, { id }: Key) => (await box.call('DELETE', `/v1/api-keys/${id}`)).body
const works = async (box: Appliance, { key }: Key): Promise<boolean> =>
  (await box.call('GET', '/v1/api-keys', undefined, { key })).status === 200
const hook = async (box: Appliance, { key }: Pick<Key, 'key'>): Promise<string> =>
  (await box.call('POST', '/v1/webhooks', { url: sink, events: ['identity.created'] }, { key })).body['id'] as string
const active = async (box: Appliance, id: string): Promise<boolean> =>
  (await box.call('GET', `/v1/webhooks/${id}`)).body['active'] as boolean

test('a key that was given a new secret ends with who gave it, also when its own keys rotate it on', async () => {
  const box = await appliance()
  const [owners, stolen] = [await keyOf(box), await keyOf(box)]
  const taken = await rotate(box, owners, stolen.key)
  const child = await keyOf(box, {}, taken.key)
  const again = await rotate(box, owners, child.key, 604_800)
  expect([taken.rotated_by, again.rotated_by]).toEqual([stolen.id, child.id])
  const grandchild = await keyOf(box, {}, again.key)
  expect(await end(box, stolen)).toMatchObject({ ended: { api_keys: 3 } })
  for (const key of [taken, again, child, grandchild]) expect(await works(box, key)).toBe(false)
})

test('also when a key that its first rotator made rotates it on', async () => {
  const box = await appliance()
  const [owners, stolen] = [await keyOf(box), await keyOf(box)]
  const heir = await keyOf(box, {}, stolen.key)
  await rotate(box, owners, stolen.key)
  const again = await rotate(box, owners, heir.key)
  await box.call('DELETE', `/v1/api-keys/${heir.id}?keep=true`)
  expect(await end(box, stolen)).toMatchObject({ ended: { api_keys: 1 } })
  expect(await works(box, again)).toBe(false)
})

test('whoever takes a key back by a new secret keeps it, and not what was made with the secret before', async () => {
  const clock = new HeldClock()
  const box = await appliance(near, clock)
  const [owners, lent, stolen] = [await keyOf(box), await keyOf(box), await keyOf(box)]
  const early = await keyOf(box, {}, owners.key)
  const taken = await rotate(box, owners, stolen.key)
  const child = await keyOf(box, {}, taken.key)
  const heard = await hook(box, taken)
  await rotate(box, lent, stolen.key)
  const back = await rotate(box, owners, box.key)
  const own = await keyOf(box, {}, back.key)
  // the secret that the stolen key knows goes on for a minute
  const later = await rotate(box, lent, box.key, 60)
  clock.advance(59_000)
  expect(await end(box, stolen)).toMatchObject({ ended: { api_keys: 2, webhooks: 1 } })
  expect([await works(box, child), await works(box, later), await active(box, heard)]).toEqual([false, false, false])
  for (const key of [back, own, early]) expect(await works(box, key)).toBe(true)
})

test('a key is let go once the secret that another knew works no more', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const [owners, stolen] = [await keyOf(box), await keyOf(box)]
  const taken = await rotate(box, owners, stolen.key)
  const back = await rotate(box, owners, box.key, 60)
  const child = await keyOf(box, {}, taken.key)
  clock.advance(60_000)
  expect(await end(box, stolen)).toMatchObject({ ended: { api_keys: 1 } })
  expect([await works(box, back), await works(box, taken), await works(box, child)]).toEqual([true, false, false])
})

test('a webhook ends with who turned it elsewhere, also when its owner changed something since', async () => {
  const box = await appliance(near)
  const stolen = await keyOf(box)
  const lasting = await hook(box, box)
  await box.call('PATCH', `/v1/webhooks/${lasting}`, { url: `${sink}/now` }, { key: stolen.key })
  const { body: told } = await box.call('PATCH', `/v1/webhooks/${lasting}`, { events: ['*'] })
  expect(told['updated_by']).not.toBe(stolen.id)
  expect(await end(box, stolen)).toMatchObject({ ended: { webhooks: 1 } })
  expect(await active(box, lasting)).toBe(false)
  expect((await box.call('PATCH', `/v1/webhooks/${lasting}`, { url: sink, active: true })).body).toMatchObject({ active: true })
})

test.each([
  ['while it is on', {}],
  ['while it is off', { active: false }],
])('a webhook that a key turned elsewhere %s ends with who enabled it after that key was revoked', async (_when, change) => {
  const box = await appliance(near)
  const stolen = await keyOf(box)
  const lasting = await hook(box, box)
  const helper = await keyOf(box, {}, stolen.key)
  await box.call('PATCH', `/v1/webhooks/${lasting}`, { url: `${sink}/now`, ...change }, { key: helper.key })
  await box.call('DELETE', `/v1/api-keys/${helper.id}`, undefined, { key: stolen.key })
  expect(await active(box, lasting)).toBe(false)
  expect((await box.call('PATCH', `/v1/webhooks/${lasting}`, { active: true }, { key: stolen.key })).status).toBe(200)
  expect(await end(box, stolen)).toMatchObject({ ended: { webhooks: 1 } })
  expect(await active(box, lasting)).toBe(false)
})

test('mail that was to be sent although its key was revoked is cancelled with the key above', async () => {
  const box = await appliance(near)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const stolen = await keyOf(box)
  const helper = await keyOf(box, {}, stolen.key)
  const send_at = new Date(Date.now() + 3_600_000).toISOString()
  const later = { to: [ada['email']], subject: 'later', body_text: 'later', send_at }
  const { body: email } = await box.call('POST', `/v1/identities/${ada['id']}/emails`, later, { key: helper.key })
  await box.call('DELETE', `/v1/api-keys/${helper.id}?keep=true`, undefined, { key: stolen.key })
  expect(await end(box, stolen)).toMatchObject({ ended: { scheduled_emails: 1 } })
  await expect
    .poll(async () => (await box.call('GET', `/v1/identities/${ada['id']}/emails/${email['id']}`)).body['status'])
    .toBe('cancelled')
})

test('mail and jobs of a key end with a key that knew its secret, also once another has given it a new one', async () => {
  const box = await appliance(near)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const [owners, stolen] = [await keyOf(box), await keyOf(box)]
  const mails = `/v1/identities/${ada['id']}/emails`
  const send_at = new Date(Date.now() + 3_600_000).toISOString()
  const schedule = async ({ key }: Key, subject: string) =>
    (await box.call('POST', mails, { to: [ada['email']], subject, body_text: 'later', send_at }, { key })).body['id'] as string
  const taken = await rotate(box, owners, stolen.key)
  const mail = await schedule(taken, 'theirs')
  const withdrawn = await schedule(taken, 'withdrawn')
  const { body: job } = await box.call('POST', `/v1/identities/${ada['id']}/export`, {}, { key: taken.key })
  await box.settled()
  const { body: exported } = await box.call('GET', `/v1/jobs/${job['id']}`)
  const url = exported['result'].url as string
  expect(origins(box, mail, withdrawn, job['id'] as string)).toEqual([stolen.id, stolen.id, stolen.id])
  await box.call('POST', `${mails}/${withdrawn}/cancel`)
  const back = await rotate(box, owners, box.key)
  const own = await schedule(back, 'own')
  expect((await fetch(url)).status).toBe(200)
  expect(await end(box, stolen)).toMatchObject({ ended: { api_keys: 0, jobs: 1, scheduled_emails: 1 } })
  const status = async (id: string) => (await box.call('GET', `${mails}/${id}`)).body['status'] as string
  await expect.poll(() => status(mail)).toBe('cancelled')
  await expect.poll(async () => (await fetch(url)).status).toBe(404)
  expect([await status(own), await works(box, back)]).toEqual(['scheduled', true])
  await box.call('DELETE', `/v1/jobs/${job['id']}`)
  expect(origins(box, mail, withdrawn, job['id'] as string)).toEqual([])
})

/** The keys and sessions that these objects end with besides their creators. */
function origins(box: Appliance, ...ids: string[]): string[] {
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { readOnly: true, timeout: 60_000 })
  const places = ids.map(() => '?').join(', ')
  const rows = database.prepare(`SELECT origin_id FROM credential_origins WHERE id IN (${places})`).all(...ids)
  database.close()
  return rows.map((row) => row['origin_id'] as string)
}

test('only so many keys of its own give a key a new secret', async () => {
  const box = await appliance()
  const owners = await keyOf(box)
  const children: Key[] = []
  for (let n = 0; n < 5; n += 1) children.push(await keyOf(box, {}, owners.key))
  const answers = []
  for (const { key } of children) answers.push(await box.call('POST', `/v1/api-keys/${owners.id}/rotate`, {}, { key }))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(4)
  expect(answers.at(-1)!.body.error).toMatchObject({ status: 403, code: 'too_many_rotators' })
  // whoever is above it goes on as before
  expect((await box.call('POST', `/v1/api-keys/${owners.id}/rotate`, {})).status).toBe(200)
})

test('a key that rotates itself lets go of who knew the secret before its former one, and of nobody else', async () => {
  const box = await appliance()
  const [owners, lent, stolen] = [await keyOf(box), await keyOf(box), await keyOf(box)]
  await rotate(box, owners, stolen.key)
  const back = await rotate(box, owners, box.key, 60)
  // the secret that the stolen key knows works no more from now on
  const again = await rotate(box, owners, back.key)
  const taken = await rotate(box, lent, stolen.key)
  const kept = await rotate(box, lent, taken.key)
  expect(await end(box, stolen)).toMatchObject({ ended: { api_keys: 1 } })
  expect([await works(box, again), await works(box, kept)]).toEqual([true, false])
})
