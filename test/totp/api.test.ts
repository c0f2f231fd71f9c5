import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { codeAt } from '../../src/totp/codes.ts'
import { type Answer, appliance, type Appliance } from '../support/appliance.ts'
import { base32 } from '../support/base32.ts'
import { databaseOf, holding, sealedValues } from '../keys/sealed.ts'
import { database } from '../outbound/outgoing.ts'
import { HeldClock } from '../support/held-clock.ts'

const secret = 'JBSWY3DPEHPK3PXP'
const key = Buffer.from('48656c6c6f21deadbeef', 'hex')
const usual = { algorithm: 'SHA1', digits: 6, period: 30 } as const

/** A box whose clock stands, with an identity. */
async function scene(): Promise<{ box: Appliance; clock: HeldClock; ada: string; at: string }> {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const { body } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  return { box, clock, ada: body.id, at: `/v1/identities/${body.id}/totp` }
}

async function events(box: Appliance, ada: string, type = ''): Promise<Answer<{ data: Any[] }>['body']['data']> {
  const { body } = await box.call('GET', `/v1/identities/${ada}/events?limit=200`)
  return body.data.filter((event) => event.type.startsWith(`totp.${type}`))
}

type Any = ReturnType<typeof JSON.parse>

test('what goes in by secret comes out as codes, and is never shown again', async () => {
  const { box, clock, ada, at } = await scene()
  const input = { secret: 'jbsw y3dp-ehpk 3pxp', service_name: 'GitHub', account_name: 'ada' }
  const made = await box.call('POST', at, input)
  expect(made.status).toBe(201)
  const entry = {
    id: expect.stringMatching(/^totp_/) as string,
    identity_id: ada,
    service_name: 'GitHub',
    account_name: 'ada',
    ...usual,
    created_at: '2026-11-20T10:05:00.000Z',
  }
  expect(made.body).toEqual(entry)
  expect(made.headers.get('location')).toBe(`${at}/${made.body.id}`)
  expect((await box.call('GET', `${at}/${made.body.id}`)).body).toEqual(made.body)
  expect((await box.call('GET', at)).body).toEqual({ data: [made.body], has_more: false, next_cursor: null })

  clock.advance(12_345)
  const { body: answer, headers } = await box.call('GET', `${at}/${made.body.id}/code`)
  expect(answer).toEqual({
    code: codeAt(key, usual, clock.now()),
    remaining_seconds: 18,
    period: 30,
    expires_at: '2026-11-20T10:05:30.000Z',
  })
  expect(headers.get('cache-control')).toContain('no-store')
  await box.restart()
  expect((await box.call('GET', `${at}/${made.body.id}/code`)).body).toEqual(answer)
})

test('code and remaining time turn together, at the boundary itself', async () => {
  const { box, clock, at } = await scene()
  const { body: entry } = await box.call('POST', at, { secret, service_name: 'X' })
  const read = async (): Promise<unknown[]> => {
    const { body } = await box.call('GET', `${at}/${entry.id}/code`)
    expect(body.code).toBe(codeAt(key, usual, clock.now()))
    return [body.remaining_seconds, body.expires_at]
  }
  expect(await read()).toEqual([30, '2026-11-20T10:05:30.000Z'])
  clock.advance(1)
  expect(await read()).toEqual([30, '2026-11-20T10:05:30.000Z'])
  clock.advance(29_998)
  expect(await read()).toEqual([1, '2026-11-20T10:05:30.000Z'])
  clock.advance(1)
  expect(await read()).toEqual([30, '2026-11-20T10:06:00.000Z'])
})

test('bad input names the parameter, and makes nothing', async () => {
  const { box, ada, at } = await scene()
  const bad: [input: Record<string, unknown>, param: string][] = [
    [{ secret: 'not base32!', service_name: 'X' }, 'secret'],
    [{ secret: '', service_name: 'X' }, 'secret'],
    [{ secret: '====', service_name: 'X' }, 'secret'],
    [{ service_name: 'X' }, 'secret'],
    [{ secret }, 'service_name'],
    [{ secret, service_name: '  ' }, 'service_name'],
    [{ secret, service_name: 'a\nb' }, 'service_name'],
    [{ secret, service_name: 'x'.repeat(129) }, 'service_name'],
    [{ secret, service_name: 'X', algorithm: 'MD5' }, 'algorithm'],
    [{ secret, service_name: 'X', digits: 5 }, 'digits'],
    [{ secret, service_name: 'X', digits: 9 }, 'digits'],
    [{ secret, service_name: 'X', period: 14 }, 'period'],
    [{ secret, service_name: 'X', period: 121 }, 'period'],
    [{ uri: 'otpauth://hotp/X?secret=AAAA', service_name: 'X' }, 'uri'],
    [{ uri: `otpauth://totp/X:a?secret=${secret}&digits=8`, digits: 6, service_name: 'X' }, 'digits'],
  ]
  for (const [input, param] of bad) {
    const { status, body } = await box.call('POST', at, input)
    expect([input, status, body.error]).toMatchObject([input, 400, { type: 'invalid_request', param }])
    expect(body.error.message).not.toContain(secret)
  }
  expect((await box.call('GET', at)).body.data).toEqual([])
  expect(await events(box, ada)).toEqual([])
})

test('the log tells who set up, read and deleted, and never what', async () => {
  const { box, ada, at } = await scene()
  const { body: keys } = await box.call('GET', '/v1/api-keys')
  const agent = `agent/1 ${'x'.repeat(2000)}`
  const { body: entry } = await box.call('POST', at, { secret, service_name: 'GitHub' })
  const { body: answer } = await box.call('GET', `${at}/${entry.id}/code`, undefined, { headers: { 'User-Agent': agent } })
  expect((await box.call('DELETE', `${at}/${entry.id}`)).body).toEqual({ id: entry.id, deleted: true })
  const told = await events(box, ada)
  expect(told.map(({ type, data }) => ({ type, data }))).toEqual([
    { type: 'totp.deleted', data: entry },
    {
      type: 'totp.read',
      data: {
        id: entry.id,
        identity_id: ada,
        service_name: 'GitHub',
        key_id: keys.data[0].id,
        ip: '127.0.0.1',
        user_agent: agent.slice(0, 500),
      },
    },
    { type: 'totp.created', data: entry },
  ])
  expect(JSON.stringify(told)).not.toContain(answer.code)
  expect(JSON.stringify(told)).not.toContain(secret)
})

test('who may not, or asks in vain, reads no code and leaves no trace of a reading', async () => {
  const { box, ada, at } = await scene()
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const { body: entry } = await box.call('POST', at, { secret, service_name: 'X' })
  const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: bob.id })
  const { body: narrow } = await box.call('POST', '/v1/api-keys', { scopes: ['identities:write', 'cards:read'] })
  const code = `${at}/${entry.id}/code`
  expect((await box.call('GET', code, undefined, { key: null })).status).toBe(401)
  expect((await box.call('GET', code, undefined, { key: narrow.key })).status).toBe(403)
  expect((await box.call('GET', code, undefined, { key: bound.key })).status).toBe(404)
  expect((await box.call('GET', `/v1/identities/${bob.id}/totp/${entry.id}/code`)).status).toBe(404)
  expect((await box.call('GET', `${code}?min_remaining=30`)).body.error).toMatchObject({ status: 400, param: 'min_remaining' })
  expect((await box.call('GET', `${code}?min_remaining=120`)).body.error).toMatchObject({ status: 400, param: 'min_remaining' })
  for (const wrong of ['-1', '1.5', 'x', '', '1e1', '120', '5&min_remaining=6']) {
    const { status, body } = await box.call('GET', `${code}?min_remaining=${wrong}`)
    expect([wrong, status, body.error.param]).toEqual([wrong, 400, 'min_remaining'])
  }
  expect(await events(box, ada, 'read')).toEqual([])
})

test('HEAD is no way to ask: nobody reads a code by it', async () => {
  const { box, ada, at } = await scene()
  const { body: entry } = await box.call('POST', at, { secret, service_name: 'X' })
  expect((await box.call('HEAD', `${at}/${entry.id}/code`)).status).toBe(404)
  expect(await events(box, ada, 'read')).toEqual([])
})

test('a suspended identity’s codes can be read; a deleted one’s secrets are gone', async () => {
  const { box, ada, at } = await scene()
  const { body: entry } = await box.call('POST', at, { secret, service_name: 'X' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const { body: his } = await box.call('POST', `/v1/identities/${bob.id}/totp`, { secret, service_name: 'X' })
  await box.call('PATCH', `/v1/identities/${ada}`, { status: 'suspended' })
  expect((await box.call('GET', `${at}/${entry.id}/code`)).status).toBe(200)
  await box.call('DELETE', `/v1/identities/${ada}`)
  expect((await box.call('GET', `${at}/${entry.id}/code`)).status).toBe(404)
  expect((await box.call('POST', at, { secret, service_name: 'X' })).status).toBe(404)
  expect((await box.call('GET', `/v1/identities/${bob.id}/totp/${his.id}/code`)).status).toBe(200)
})

test('what is deleted is gone from the disk, sealed as it was', async () => {
  const { box, ada, at } = await scene()
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const ids: string[] = []
  for (const owner of [ada, bob.id as string, ada]) {
    ids.push((await box.call('POST', `/v1/identities/${owner}/totp`, { secret, service_name: 'X' })).body.id as string)
  }
  const sealed = secretsOf(box).map(({ kept }) => kept)
  expect(sealed).toHaveLength(3)
  await box.restart()
  for (const octets of sealed) expect(holding(box.env['PILLARBOX_DATA_DIR']!, octets)).toEqual([databaseOf(box)])
  await box.call('DELETE', `${at}/${ids[0]}`)
  await box.call('DELETE', `/v1/identities/${bob.id}`)
  await box.app.stop()
  const left = sealed.map((octets) => holding(box.env['PILLARBOX_DATA_DIR']!, octets))
  expect(left).toEqual([[], [], [databaseOf(box)]])
})

test('of many that come and go in any order, no deleted secret is left on the disk', async () => {
  const { box, at } = await scene()
  const ids: string[] = []
  for (let turn = 0; turn < 200; turn += 1) {
    const input = { secret: base32(randomBytes(10 + ((turn * 7) % 500))), service_name: 'X'.repeat(1 + (turn % 100)) }
    ids.push((await box.call('POST', at, input)).body.id as string)
  }
  const former = secretsOf(box)
  expect(former).toHaveLength(200)
  // 77 and 200 have no divisor in common: each is met once, neighbours far apart
  const order = ids.map((_, turn) => ids[(turn * 77) % ids.length]!)
  for (const id of order.slice(0, 180)) expect((await box.call('DELETE', `${at}/${id}`)).status).toBe(200)
  await box.app.stop()
  const living = new Set(secretsOf(box).map(({ kept }) => kept.toString('hex')))
  expect(living.size).toBe(20)
  const gone = former.filter(({ kept }) => !living.has(kept.toString('hex')))
  const found = gone.filter(({ kept }) => holding(box.env['PILLARBOX_DATA_DIR']!, kept.subarray(0, 24)).length > 0)
  expect(found.map(({ place }) => place)).toEqual([])
})

test('the same key makes one entry; lists are newest first and paged', async () => {
  const { box, at } = await scene()
  const names = ['One', 'Two', 'Three']
  for (const service_name of [...names, 'Three']) {
    await box.call('POST', at, { secret, service_name }, { headers: { 'Idempotency-Key': service_name } })
  }
  const { body: first } = await box.call('GET', `${at}?limit=2`)
  expect(first.data.map((entry) => entry.service_name)).toEqual(['Three', 'Two'])
  const { body: second } = await box.call('GET', `${at}?limit=2&cursor=${first.next_cursor}`)
  expect(second).toMatchObject({ data: [{ service_name: 'One' }], has_more: false })
})

test('min_remaining waits for the next code when too little time is left, and only then', async () => {
  const { box, clock, ada, at } = await scene()
  const { body: entry } = await box.call('POST', at, { secret, service_name: 'X' })
  clock.advance(25_000)
  const enough = await box.call('GET', `${at}/${entry.id}/code?min_remaining=5`)
  expect(enough.body).toMatchObject({ code: codeAt(key, usual, clock.now()), remaining_seconds: 5 })
  clock.advance(1)
  const waiting = box.call('GET', `${at}/${entry.id}/code?min_remaining=5`)
  let answered = false
  void waiting.then(() => (answered = true))
  await sleep(200)
  expect(answered).toBe(false)
  // whoever waits has read nothing yet
  expect(await events(box, ada, 'read')).toHaveLength(1)
  clock.advance(4999)
  const { body: next } = await waiting
  expect(next).toEqual({
    code: codeAt(key, usual, clock.now()),
    remaining_seconds: 30,
    period: 30,
    expires_at: '2026-11-20T10:06:00.000Z',
  })
  expect(await events(box, ada, 'read')).toHaveLength(2)
  expect((await box.call('GET', `${at}/${entry.id}/code?min_remaining=29`)).body).toEqual(next)
})

test.each([-7000, -3_600_001, 3_600_000, 86_400_000 + 11_000])(
  'a clock that is set by %d ms while one waits: the code is that of the clock, and lasts as asked',
  async (jump) => {
    const { box, clock, ada, at } = await scene()
    const { body: entry } = await box.call('POST', at, { secret, service_name: 'X' })
    clock.advance(27_000)
    const waiting = box.call('GET', `${at}/${entry.id}/code?min_remaining=10`)
    await sleep(100)
    expect(await events(box, ada, 'read')).toEqual([])
    clock.advance(jump)
    // where too little is left there as well, the next period comes
    while (30_000 - (clock.now() % 30_000) < 10_000) clock.advance(1000)
    const { body: answer } = await waiting
    expect(answer).toMatchObject({
      code: codeAt(key, usual, clock.now()),
      remaining_seconds: 30 - (Math.floor(clock.now() / 1000) % 30),
    })
    expect(answer.remaining_seconds).toBeGreaterThanOrEqual(10)
  },
)

test('a wait for the next code ends with the caller, the entry, the key and the box', async () => {
  const { box, clock, ada, at } = await scene()
  const { body: entry } = await box.call('POST', at, { secret, service_name: 'X', period: 120 })
  const { body: other } = await box.call('POST', at, { secret, service_name: 'Y', period: 120 })
  const { body: brief } = await box.call('POST', '/v1/api-keys', { label: 'brief' })
  const code = (id: string): string => `${at}/${id}/code?min_remaining=119`
  clock.advance(30_000)

  const leaving = new AbortController()
  const gone = fetch(`${box.url}${code(other.id)}`, { headers: { Authorization: `Bearer ${box.key}` }, signal: leaving.signal })
  const revoked = box.call('GET', code(other.id), undefined, { key: brief.key })
  const deleted = box.call('GET', code(entry.id))
  await sleep(200)
  leaving.abort()
  await expect(gone).rejects.toThrow(/abort/)
  await box.call('DELETE', `/v1/api-keys/${brief.id}`)
  await box.call('DELETE', `${at}/${entry.id}`)
  clock.advance(30_000)
  expect((await revoked).status).toBe(401)
  expect((await deleted).status).toBe(404)
  expect(await events(box, ada, 'read')).toEqual([])

  clock.advance(60_000)
  const held = box.call('GET', code(other.id))
  await sleep(500)
  await box.app.stop()
  expect((await held).body.error).toMatchObject({ status: 500, code: 'restarting' })
})

test('the place of a deleted secret is used again, also where its identity was deleted, and codes are those of its new entry', async () => {
  const { box, clock, at } = await scene()
  const store = (path: string, own: string) => box.call('POST', path, { service_name: 'Shop', secret: own })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  await store(`/v1/identities/${bob.id}/totp`, base32(randomBytes(10)))
  await box.call('DELETE', `/v1/identities/${bob.id}`)
  await box.settled()
  for (let number = 0; number < 20; number += 1) {
    const { body } = await store(at, base32(randomBytes(10)))
    await box.call('DELETE', `${at}/${body.id}`)
  }
  const { body: entry } = await store(at, secret)
  expect((await box.call('GET', `${at}/${entry.id}/code`)).body).toMatchObject({ code: codeAt(key, usual, clock.now()) })
  expect(database(box, (db) => db.prepare('SELECT count(*) AS n FROM totp_secrets').get())).toEqual({ n: 1 })
})

/** The secrets as they are kept, among all that is sealed. */
function secretsOf(box: Appliance): ReturnType<typeof sealedValues> {
  return sealedValues(box).filter(({ place }) => place.startsWith('totp_secrets'))
}
