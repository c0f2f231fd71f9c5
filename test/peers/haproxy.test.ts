import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { generate } from 'selfsigned'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { root } from '../docs/pages.ts'
import { bootstrapKey } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { machines } from '../support/haproxy.ts'
import { createNamespaces } from '../support/namespaces.ts'
import { peer } from '../support/peer.ts'
import { run } from '../support/program.ts'
import { verifiedDomain } from '../support/verified-domain.ts'
import { ask, deliver, heard, listenTo, proxy, repeatedly, send, subjects, TwoBoxes } from './two-boxes.ts'

/** Set inside of the namespaces, where this file runs once more. */
const inside = process.env['TEST_NAMESPACES']

test.runIf(inside === undefined)(
  'two boxes behind HAProxy, on PostgreSQL under Patroni, by the examples and the page that we ship',
  { timeout: 580_000 },
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'pillarbox-several-'))
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
    const names = ['box.example.com', 'mx.example.com']
    const pair = await generate([{ name: 'commonName', value: names[0]! }], {
      keyType: 'ec',
      curve: 'P-256',
      algorithm: 'sha256',
      extensions: [{ name: 'subjectAltName', altNames: names.map((value) => ({ type: 2, value })) }],
    })
    writeFileSync(join(directory, 'cert.pem'), pair.cert)
    writeFileSync(join(directory, 'key.pem'), pair.private)
    const prefix = `pillarbox-${process.pid}`
    const namespaces = await createNamespaces(prefix, machines, Object.fromEntries(names.map((name) => [name, proxy])))
    onTestFinished(() => namespaces.close())
    const vitest = [`${root}node_modules/vitest/vitest.mjs`, 'run', '--project', 'peers', 'test/peers/haproxy.test.ts']
    const [program, ...words] = [...namespaces.in('world'), process.execPath, ...vitest]
    const { code, output, errors } = await run(program!, words, {
      cwd: root,
      env: {
        TEST_NAMESPACES: prefix,
        TEST_PAIR: directory,
        NODE_EXTRA_CA_CERTS: join(directory, 'cert.pem'),
        TMPDIR: tmpdir(),
      },
    })
    expect(`${code}\n${code === 0 ? '' : output.toString() + errors}`).toBe('0\n')
  },
)

async function identity(name: string): Promise<{ id: string; email: string; phone_number: string }> {
  const { status, body } = await ask('POST', '/v1/identities', { name, provision_phone: true })
  expect(status).toBe(201)
  return body
}

async function swaks(from: string, ...options: string[]): Promise<string> {
  const server = ['--server', proxy, '--local-interface', from, '--helo', 'mx.sender.test', '--timeout', '60s']
  return (await run(peer('swaks')!, [...server, ...options])).output.toString()
}

/** The statuses of calls that are made at the same moment. */
async function atOnce(count: number, call: (number: number) => ReturnType<typeof ask>): Promise<number[]> {
  return (await Promise.all(Array.from({ length: count }, (_, number) => call(number)))).map(({ status }) => status)
}

async function identities(): Promise<{ id: string; name: string }[]> {
  return (await ask('GET', '/v1/identities?limit=100')).body.data
}

describe.runIf(inside !== undefined)('two boxes behind HAProxy', () => {
  let both: TwoBoxes

  beforeAll(async () => {
    both = await TwoBoxes.start(inside!, process.env['TEST_PAIR']!)
  })

  afterAll(() => both?.close())

  test('are one box to callers and to mail servers, and see their addresses', async () => {
    const { dns, sink, hooks } = both
    await verifiedDomain({ key: bootstrapKey, dns, call: (method, path, body) => ask(method, path, body) as never })
    const ada = await identity('Ada')
    await ask('POST', '/v1/webhooks', { url: `http://10.0.0.1:${hooks.port}/hook`, events: ['email.received'] })

    // each box answers some of the calls, with the address of the caller
    const get = async (from: string, host = proxy): Promise<number> =>
      (await ask('GET', `/v1/identities/${ada.id}`, undefined, { from, host })).status
    for (let count = 0; count < 4; count += 1) expect([await get('10.0.0.2'), await get('10.0.0.3')]).toEqual([200, 200])
    expect(await get('fd00::1', 'fd00::10')).toBe(200)
    const calls = (): unknown[][] =>
      both.logged('request', ({ route }) => route === '/v1/identities/:id').map((some) => some.map(({ address }) => address))
    await expect.poll(() => calls().flat().length).toBe(9)
    for (const some of calls()) expect(some.length).toBeGreaterThanOrEqual(4)
    expect(new Set(calls().flat())).toEqual(new Set(['10.0.0.2', '10.0.0.3', 'fd00::1']))

    // SPF, the log and the inbox have the address of the other mail server
    const mail = ['--from', 'sam@sender.test', '--to', ada.email, '--port', '25', '--body', 'hello', '--tls']
    for (const from of ['10.0.0.2', '10.0.0.3', '10.0.0.2', '10.0.0.3'])
      expect(await swaks(from, ...mail, '--header', `Subject: from ${from}`)).toMatch(/<~ +250 .*queued/)
    const taken = (): string[][] => both.logged('message taken').map((some) => some.map(({ ip, spf }) => `${ip} ${spf}`))
    await expect.poll(() => taken().map(({ length }) => length)).toEqual([2, 2])
    const verdicts = ['10.0.0.2 pass', '10.0.0.2 pass', '10.0.0.3 fail', '10.0.0.3 fail']
    expect(taken().flat().toSorted()).toEqual(verdicts)
    expect((await subjects(ada.id)).toSorted()).toEqual(['from 10.0.0.2', 'from 10.0.0.2', 'from 10.0.0.3', 'from 10.0.0.3'])
    await expect.poll(() => hooks.received.length).toBe(4)

    // a reply goes out once
    const { body: inbox } = await ask('GET', `/v1/identities/${ada.id}/emails`)
    const reply = await ask('POST', `/v1/identities/${ada.id}/emails/${inbox.data[0].id}/reply`, { body: 'Thank you.' })
    expect(reply.status).toBe(201)
    const statusOf = async (id: string): Promise<string> =>
      (await ask('GET', `/v1/identities/${ada.id}/emails/${id}`)).body.status
    await expect.poll(() => statusOf(reply.body.id)).toBe('delivered')
    expect(sink.messages).toMatchObject([{ to: ['sam@sender.test'], raw: expect.stringContaining('Thank you.') }])

    // mail programs, with STARTTLS and with TLS from the first byte
    const bound = { label: 'mail program', scopes: ['messages:write'], identity_id: ada.id }
    const { body: made } = await ask('POST', '/v1/api-keys', bound)
    const login = ['--auth', 'PLAIN', '--auth-user', ada.email, '--auth-password', made.key]
    const submit = ['--from', ada.email, '--to', 'sam@sender.test', ...login]
    expect(await swaks('10.0.0.3', '--port', '587', '--tls', ...submit)).toMatch(/<~ +250 .*queued/)
    expect(await swaks('10.0.0.3', '--port', '465', '--tlsc', ...submit)).toMatch(/<~ +250 .*queued/)
    await expect.poll(() => sink.messages.length).toBe(3)
    const submitted = (): unknown[] => both.logged('message taken', ({ part }) => part === 'submission').flat()
    await expect.poll(submitted).toMatchObject([{ ip: '10.0.0.3' }, { ip: '10.0.0.3' }])

    // text messages and one-time passwords are read at either
    const injected = { from: '+15550100199', to: ada.phone_number, body: 'Your code is 493817' }
    expect((await ask('POST', '/v1/sms/loopback/inject', injected)).status).toBe(201)
    const secret = { secret: 'JBSWY3DPEHPK3PXP', service_name: 'Example' }
    const { body: totp } = await ask('POST', `/v1/identities/${ada.id}/totp`, secret)
    for (let count = 0; count < 2; count += 1) {
      const { body: sms } = await ask('GET', `/v1/identities/${ada.id}/sms`)
      expect(sms.data).toMatchObject([{ body: 'Your code is 493817' }])
      const { body: read } = await ask('GET', `/v1/identities/${ada.id}/totp/${totp.id}/code`)
      expect(read.code).toMatch(/^\d{6}$/)
    }

    const { body: report } = await ask('POST', '/v1/doctor')
    const lines = report.lines.filter(({ name }: { name: string }) => name === 'ports' || name === 'boxes')
    expect(new Set(lines.map(({ status }: { status: string }) => status))).toEqual(new Set(['pass']))
  })

  test('take no connection of HAProxy without the header, and no header of anybody else', async () => {
    const refused = (): unknown[] => both.logged('connection of a proxy was closed').flat()
    // not even a health check
    expect(refused()).toEqual([])
    const curl = ['curl', '--silent', '--insecure', '--max-time', '20', 'https://10.0.0.11/healthz']
    expect(await both.runAt('proxy', ...curl)).toMatchObject({ output: '' })
    const why = 'it does not begin with a PROXY protocol header'
    await expect.poll(refused).toMatchObject([{ level: 'warn', ip: proxy, why }])
    expect(await both.runAt('proxy', ...curl, '--haproxy-protocol')).toMatchObject({
      code: 0,
      output: expect.stringContaining('ok'),
    })
    expect(await both.runAt('world', ...curl, '--haproxy-protocol')).toMatchObject({ output: '' })
    expect(await both.runAt('world', ...curl)).toMatchObject({ code: 0, output: expect.stringContaining('ok') })
  })

  test('hold limits together: budgets and plans exactly, rates within a second, and a revoked key', async () => {
    const eve = await identity('Eve')
    const { body: stored } = await ask('POST', `/v1/identities/${eve.id}/cards`, card({ budget_cents: 1000 }))
    const reveals = await atOnce(40, () => ask('POST', `/v1/cards/${stored.id}/reveal`, { amount_cents: 100 }))
    expect(reveals.filter((status) => status === 200)).toHaveLength(10)

    const before = await identities()
    const created = await atOnce(16, (number) => ask('POST', '/v1/identities', { name: `Name ${number}` }))
    expect(created.filter((status) => status === 201)).toHaveLength(12 - before.length)
    for (const { id, name } of await identities()) if (name.startsWith('Name ')) await ask('DELETE', `/v1/identities/${id}`)

    const { body: few } = await ask('POST', '/v1/api-keys', { label: 'few', scopes: ['identities:read'], rate_limit: 20 })
    const statuses = (count: number, key: string): Promise<number[]> =>
      atOnce(count, () => ask('GET', '/v1/identities', undefined, { key }))
    const admitted = (await statuses(60, few.key)).filter((status) => status === 200).length
    expect(admitted).toBeGreaterThanOrEqual(20)
    // as many as a burst at each, and what comes in again meanwhile
    expect(admitted).toBeLessThan(50)
    await expect.poll(async () => (await statuses(4, few.key)).join()).toBe('429,429,429,429')

    const { body: short } = await ask('POST', '/v1/api-keys', { label: 'short', scopes: ['identities:read'] })
    expect(new Set(await statuses(4, short.key))).toEqual(new Set([200]))
    await ask('DELETE', `/v1/api-keys/${short.id}`)
    await sleep(1000)
    expect(new Set(await statuses(8, short.key))).toEqual(new Set([401]))
  })

  test('go on when one is stopped: calls and mail at the other, and a socket resumes there without a gap', async () => {
    const bob = await identity('Bob')
    const sockets = [await listenTo(bob.id)]
    // the token and the socket were two connections: after another call the next socket is at the other box
    await ask('GET', '/v1/account')
    sockets.push(await listenTo(bob.id))
    expect(await deliver(bob.email, 'before')).toMatch(/^250 /)
    for (const socket of sockets) await socket.until('event')
    const last = sockets[0]!.frames.at(-1).event.id

    const calls = repeatedly(() => ask('GET', `/v1/identities/${bob.id}`).then(({ status }) => status, String))
    const mails = repeatedly((number) => send(bob.email, `mail ${number}`))
    await expect.poll(() => mails.results.length).toBeGreaterThan(5)
    await both.stop('one')
    const closed = await Promise.race(sockets.map(async (socket) => ({ code: (await socket.closed).code, socket })))
    expect(closed.code).toBe(1001)
    const before = mails.results.length
    await expect.poll(() => mails.results.length).toBeGreaterThan(before + 20)
    await Promise.all([calls.stop(), mails.stop()])
    expect(new Set([...calls.results, ...mails.results])).toEqual(new Set([200, '250']))

    const resumed = await listenTo(bob.id, last)
    const expected = mails.results.map((_, number) => `mail ${number}`)
    await expect.poll(() => heard(resumed).length).toBe(expected.length)
    expect(heard(resumed)).toEqual(expected)
    const stayed = sockets.find((socket) => socket !== closed.socket)!
    await expect.poll(() => heard(stayed)).toEqual(['before', ...expected])
    await both.serve('one')
    await both.inTurns()
  })

  test('lose nothing that they acknowledged when Patroni makes the other server the primary', async () => {
    const cal = await identity('Cal')
    const { cluster } = both
    const before = await cluster.primary()
    const acknowledged: string[] = []
    const senders = ['a', 'b', 'c'].map((name) =>
      repeatedly(async (number) => {
        const reply = await deliver(cal.email, `${name} ${number}`).catch(String)
        if (reply.startsWith('250 ')) acknowledged.push(`${name} ${number}`)
      }),
    )
    await expect.poll(() => acknowledged.length).toBeGreaterThan(10)
    await cluster.switchover()
    const count = acknowledged.length
    // mail is taken again, at the other server
    await expect.poll(() => acknowledged.length).toBeGreaterThan(count + 10)
    await Promise.all(senders.map((sender) => sender.stop()))
    expect(await cluster.primary()).not.toBe(before)
    const found = new Set(await subjects(cal.id))
    expect(acknowledged.filter((subject) => !found.has(subject))).toEqual([])
    await expect.poll(() => cluster.isSynchronous()).toBe(true)
  })

  test('go on when the machine of one is cut off', async () => {
    const dan = await identity('Dan')
    await both.namespaces.connect('two', false)
    const results = []
    for (let count = 0; count < 6; count += 1) {
      results.push((await deliver(dan.email, `cut ${count}`)).slice(0, 3))
      results.push((await ask('GET', `/v1/identities/${dan.id}`)).status)
    }
    expect(new Set(results)).toEqual(new Set(['250', 200]))
    await both.namespaces.connect('two', true)
    await both.inTurns()
    expect((await subjects(dan.id)).toSorted()).toEqual(Array.from({ length: 6 }, (_, count) => `cut ${count}`))
  })
})
