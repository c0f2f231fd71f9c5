import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { generate } from 'selfsigned'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { root } from '../docs/pages.ts'
import { type Answer, bootstrapKey, message } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { DnsStub } from '../support/dns-stub.ts'
import { blocksOf, machines, startHaproxy } from '../support/haproxy.ts'
import { live } from '../support/live.ts'
import { MailSink } from '../support/mail-sink.ts'
import { createNamespaces, namespacesOf } from '../support/namespaces.ts'
import { type Cluster, startCluster } from '../support/patroni.ts'
import { peer } from '../support/peer.ts'
import { type BoxProcess, startProcess } from '../support/process.ts'
import { run } from '../support/program.ts'
import { Dialogue } from '../support/smtp.ts'
import { verifiedDomain } from '../support/verified-domain.ts'
import { WebhookSink } from '../support/webhook-sink.ts'

/** Set inside of the namespaces, where this file runs once more. */
const inside = process.env['TEST_NAMESPACES']
const page = 'several-boxes.md'
const proxy = '10.0.0.10'

test.runIf(inside === undefined)(
  'two boxes behind HAProxy, on PostgreSQL under Patroni, by the examples and the page that we ship',
  { timeout: 580_000 },
  async () => {
    const prefix = `pillarbox-${process.pid}`
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

interface Box {
  name: 'one' | 'two'
  process: BoxProcess
  env: Record<string, string>
}

describe.runIf(inside !== undefined)('two boxes behind HAProxy', () => {
  const namespaces = namespacesOf(inside ?? '', Object.keys(machines))
  const swaksProgram = peer('swaks')
  const processes: BoxProcess[] = []
  let directory = ''
  let cluster: Cluster
  let dns: DnsStub
  let sink: MailSink
  let hooks: WebhookSink
  let one: Box
  let two: Box

  async function serve(name: Box['name']): Promise<Box> {
    const own = join(directory, name)
    mkdirSync(own, { recursive: true })
    const [settings] = blocksOf(page, 'yaml')
    const [url] = blocksOf(page, '')
    writeFileSync(join(own, 'database-url'), url!, { mode: 0o640 })
    writeFileSync(join(own, 'pillarbox.yaml'), settings!.replaceAll('/etc/pillarbox', own))
    const pair = { cert: join(process.env['TEST_PAIR']!, 'cert.pem'), key: join(process.env['TEST_PAIR']!, 'key.pem') }
    const env = {
      PILLARBOX_CONFIG: join(own, 'pillarbox.yaml'),
      PILLARBOX_DATA_DIR: join(own, 'data'),
      PILLARBOX_KEYS_DIR: join(own, 'keys'),
      PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
      PILLARBOX_HTTP__TLS__CERT: pair.cert,
      PILLARBOX_HTTP__TLS__KEY: pair.key,
      PILLARBOX_SMTP__TLS__CERT: pair.cert,
      PILLARBOX_SMTP__TLS__KEY: pair.key,
      PILLARBOX_HTTP__RATE_LIMIT: '0',
      PILLARBOX_LIMITS__IDENTITIES: '12',
      PILLARBOX_DNS__SERVERS: dns.servers.join(','),
      PILLARBOX_OUTBOUND__ALLOW_NETWORKS: '10.0.0.0/8',
      PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '10.0.0.0/8',
      PILLARBOX_SMS__PROVIDER: 'loopback',
      PILLARBOX_MIN_FREE: '0',
    }
    const [program, ...words] = [...namespaces.in(name), process.execPath, `${root}src/main.ts`, 'serve']
    const started = startProcess(env, words, own, program)
    processes.push(started)
    await started.said('started')
    return { name, process: started, env }
  }

  const lines = ({ process: { output } }: Box): Record<string, ReturnType<typeof JSON.parse>>[] =>
    output()
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line))

  /** The log lines with this text, of both boxes. */
  const said = (msg: string): ReturnType<typeof lines>[] =>
    [one, two].map((box) => lines(box).filter((line) => line['msg'] === msg))

  /** A call by a connection of its own: HAProxy gives each to the next box. */
  async function ask(
    method: string,
    path: string,
    body?: unknown,
    { key = bootstrapKey, from = '10.0.0.2', host = proxy }: { key?: string; from?: string; host?: string } = {},
  ): Promise<Answer<ReturnType<typeof JSON.parse>>> {
    const sent = body === undefined ? undefined : JSON.stringify(body)
    const type =
      sent === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(sent)) }
    const outgoing = request({
      host,
      servername: 'box.example.com',
      localAddress: from,
      agent: false,
      method,
      path,
      headers: { Host: 'box.example.com', Authorization: `Bearer ${key}`, ...type },
    })
    outgoing.setTimeout(60_000, () => outgoing.destroy(new Error('no answer within a minute')))
    outgoing.end(sent)
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    const received = await text(response)
    return {
      status: response.statusCode!,
      headers: new Headers(response.headers as Record<string, string>),
      body: received === '' ? null : JSON.parse(received),
    }
  }

  const swaks = async (from: string, ...options: string[]): Promise<string> => {
    const { output } = await run(swaksProgram!, [
      '--server',
      proxy,
      '--local-interface',
      from,
      '--helo',
      'mx.sender.test',
      ...options,
    ])
    return output.toString()
  }

  /** Sends a message as another mail server does; answers the reply to its end. */
  async function deliver(to: string, subject: string): Promise<string> {
    const client = await Dialogue.connect(25, proxy, '10.0.0.2')
    try {
      await client.reply()
      await client.say('EHLO mx.sender.test')
      return await client.deliver(message({ To: to, Subject: subject }, 'hello\n'), [to])
    } finally {
      client.destroy()
    }
  }

  const identity = async (name: string): Promise<{ id: string; email: string; phone_number: string }> => {
    const { status, body } = await ask('POST', '/v1/identities', { name, provision_phone: true })
    expect(status).toBe(201)
    return body
  }

  const subjects = async (id: string): Promise<string[]> => {
    const { body } = await ask('GET', `/v1/identities/${id}/emails?limit=100`)
    return body.data.map(({ subject }: { subject: string }) => subject)
  }

  /** Waits until HAProxy gives connections to both boxes. */
  async function bothServe(): Promise<void> {
    const answered = (box: Box): number => lines(box).filter(({ route }) => route === '/v1/account').length
    const before = [one, two].map(answered)
    const until = Date.now() + 60_000
    while (![one, two].every((box, index) => answered(box) > before[index]!)) {
      if (Date.now() > until) throw new Error('One of the boxes gets no connections after a minute.')
      await ask('GET', '/v1/account').catch(() => undefined)
      await sleep(50)
    }
  }

  beforeAll(async () => {
    expect(swaksProgram).toBeDefined()
    directory = mkdtempSync(join(process.env['TEST_PAIR']!, 'run-'))
    // PostgreSQL and etcd do not run as root
    for (const path of [process.env['TEST_PAIR']!, directory]) await run('chmod', ['755', path])
    dns = await DnsStub.start('10.0.0.1')
    dns.txt('sender.test', 'v=spf1 ip4:10.0.0.2 -all').mx('sender.test', 'mx.sender.test').a('mx.sender.test', '10.0.0.1')
    sink = await MailSink.open({ host: '10.0.0.1', port: 25 })
    hooks = await WebhookSink.open(0, '10.0.0.1')
    const [etcd, certificate, database] = blocksOf(page, 'sh')
    cluster = await startCluster(namespaces, directory, { etcd: etcd!, certificate: certificate! })
    processes.push(...cluster.processes)
    await cluster.onPrimary(database!)
    processes.push(await startHaproxy(namespaces))
    const first = await serve('one')
    expect(await first.process.end('SIGTERM')).toBe(0)
    mkdirSync(join(directory, 'two', 'keys'), { recursive: true, mode: 0o700 })
    copyFileSync(join(directory, 'one', 'keys', 'master.key'), join(directory, 'two', 'keys', 'master.key'))
    ;[one, two] = await Promise.all([serve('one'), serve('two')])
    await bothServe()
  })

  afterAll(async () => {
    await Promise.all([dns?.close(), sink?.stop(), hooks?.stop()])
    for (const { child } of processes) child.kill('SIGKILL')
  })

  test('are one box to callers and to mail servers, and see their addresses', async () => {
    await verifiedDomain({ key: bootstrapKey, dns, call: (method, path, body) => ask(method, path, body) as never })
    const ada = await identity('Ada')
    await ask('POST', '/v1/webhooks', { url: `http://10.0.0.1:${hooks.port}/hook`, events: ['email.received'] })

    // each box answers some of the calls, with the address of the caller
    for (const from of ['10.0.0.2', '10.0.0.3']) {
      for (let count = 0; count < 4; count += 1)
        expect((await ask('GET', `/v1/identities/${ada.id}`, undefined, { from })).status).toBe(200)
    }
    expect((await ask('GET', `/v1/identities/${ada.id}`, undefined, { from: 'fd00::1', host: 'fd00::10' })).status).toBe(200)
    const callers = (): string[][] =>
      said('request').map((some) => some.filter(({ route }) => route === '/v1/identities/:id').map(({ address }) => address))
    // the log is written some time later
    await expect
      .poll(() =>
        callers()
          .map(({ length }) => length)
          .toSorted(),
      )
      .toEqual([4, 5])
    expect([...new Set(callers().flat())].toSorted()).toEqual(['10.0.0.2', '10.0.0.3', 'fd00::1'])

    // SPF, the log and Received have the address of the other mail server
    const mail = ['--from', 'sam@sender.test', '--to', ada.email, '--port', '25', '--body', 'hello']
    for (const from of ['10.0.0.2', '10.0.0.3', '10.0.0.2', '10.0.0.3'])
      expect(await swaks(from, ...mail, '--tls', '--header', `Subject: from ${from}`)).toMatch(/<~ +250 .*queued/)
    const taken = (): string[][] => said('Message taken').map((some) => some.map(({ ip, spf }) => `${ip} ${spf}`))
    await expect.poll(() => taken().map(({ length }) => length)).toEqual([2, 2])
    const verdicts = ['10.0.0.2 pass', '10.0.0.2 pass', '10.0.0.3 fail', '10.0.0.3 fail']
    expect(taken().flat().toSorted()).toEqual(verdicts)
    expect((await subjects(ada.id)).toSorted()).toEqual(['from 10.0.0.2', 'from 10.0.0.2', 'from 10.0.0.3', 'from 10.0.0.3'])
    await expect.poll(() => hooks.received.length).toBe(4)

    // a reply goes out once
    const { body: inbox } = await ask('GET', `/v1/identities/${ada.id}/emails`)
    const reply = await ask('POST', `/v1/identities/${ada.id}/emails/${inbox.data[0].id}/reply`, { body: 'Thank you.' })
    expect(reply.status).toBe(201)
    await expect.poll(() => sink.messages.length).toBe(1)
    await expect
      .poll(async () => (await ask('GET', `/v1/identities/${ada.id}/emails/${reply.body.id}`)).body.status)
      .toBe('delivered')
    expect(sink.messages).toMatchObject([{ to: ['sam@sender.test'], raw: expect.stringContaining('Thank you.') }])
    expect(sink.messages[0]!.raw).not.toContain(proxy)

    // mail programs, both ways
    const { body: made } = await ask('POST', '/v1/api-keys', {
      label: 'mail program',
      scopes: ['messages:write'],
      identity_id: ada.id,
    })
    const login = [
      '--from',
      ada.email,
      '--to',
      'sam@sender.test',
      '--auth',
      'PLAIN',
      '--auth-user',
      ada.email,
      '--auth-password',
      made.key,
    ]
    expect(await swaks('10.0.0.3', '--port', '587', '--tls', ...login)).toMatch(/<~ +250 .*queued/)
    expect(await swaks('10.0.0.3', '--port', '465', '--tlsc', ...login)).toMatch(/<~ +250 .*queued/)
    await expect.poll(() => sink.messages.length).toBe(3)
    const submitted = (): ReturnType<typeof lines> =>
      said('Message taken')
        .flat()
        .filter(({ part }) => part === 'submission')
    await expect.poll(() => submitted().map(({ ip }) => ip)).toEqual(['10.0.0.3', '10.0.0.3'])

    // text messages and one-time passwords are read at either
    const injected = { from: '+15550100199', to: ada.phone_number, body: 'Your code is 493817' }
    expect((await ask('POST', '/v1/sms/loopback/inject', injected)).status).toBe(201)
    for (let count = 0; count < 2; count += 1) {
      const { body: sms } = await ask('GET', `/v1/identities/${ada.id}/sms`)
      expect(sms.data).toMatchObject([{ body: 'Your code is 493817' }])
    }
    const { body: totp } = await ask('POST', `/v1/identities/${ada.id}/totp`, {
      secret: 'JBSWY3DPEHPK3PXP',
      service_name: 'Example',
    })
    const codes = []
    for (let count = 0; count < 2; count += 1)
      codes.push((await ask('GET', `/v1/identities/${ada.id}/totp/${totp.id}/code?min_remaining=5`)).body.code)
    expect(codes).toEqual([expect.stringMatching(/^\d{6}$/), codes[0]])

    const doctor = await ask('POST', '/v1/doctor')
    const wrong = doctor.body.lines.filter(
      ({ name, status }: Record<string, string>) => /^(?:ports|boxes)$/.test(name!) && status !== 'pass',
    )
    expect(wrong).toEqual([])
  })

  test('take no connection of HAProxy without the header, and no header of anybody else', async () => {
    const closed = (): ReturnType<typeof lines> => said('connection of a proxy was closed').flat()
    // not even by health checks
    expect(closed()).toEqual([])
    const curl = async (name: string, ...options: string[]): Promise<[number | null, string]> => {
      const words = ['curl', '--silent', '--insecure', '--max-time', '20', ...options, 'https://10.0.0.11/healthz']
      const [program, ...rest] = [...namespaces.in(name), ...words]
      const { code, output } = await run(program!, rest)
      return [code, output.toString()]
    }
    expect(await curl('proxy')).toEqual([expect.any(Number), ''])
    await expect.poll(closed).toMatchObject([{ level: 'warn', ip: proxy, why: 'it does not begin with a PROXY protocol header' }])
    expect(await curl('proxy', '--haproxy-protocol')).toEqual([0, expect.stringContaining('ok')])
    expect(await curl('world', '--haproxy-protocol')).toEqual([expect.any(Number), ''])
    expect(await curl('world')).toEqual([0, expect.stringContaining('ok')])
  })

  test('hold limits together: budgets and plans exactly, rates within a second, and a revoked key', async () => {
    const eve = await identity('Eve')
    const { body: stored } = await ask('POST', `/v1/identities/${eve.id}/cards`, card({ budget_cents: 1000 }))
    const reveals = await Promise.all(
      Array.from({ length: 40 }, () => ask('POST', `/v1/cards/${stored.id}/reveal`, { amount_cents: 100 })),
    )
    expect(reveals.filter(({ status }) => status === 200)).toHaveLength(10)

    const { body: all } = await ask('GET', '/v1/identities?limit=100')
    const created = await Promise.all(
      Array.from({ length: 16 }, (_, number) => ask('POST', '/v1/identities', { name: `Name ${number}` })),
    )
    expect(created.filter(({ status }) => status === 201)).toHaveLength(12 - all.data.length)
    for (const { status, body } of created) if (status === 201) await ask('DELETE', `/v1/identities/${body.id}`)

    const { body: limited } = await ask('POST', '/v1/api-keys', { label: 'few', scopes: ['identities:read'], rate_limit: 20 })
    const statuses = async (count: number, key: string): Promise<number[]> => {
      const answers = await Promise.all(Array.from({ length: count }, () => ask('GET', '/v1/identities', undefined, { key })))
      return answers.map(({ status }) => status)
    }
    const burst = await statuses(50, limited.key)
    const admitted = burst.filter((status) => status === 200).length
    expect(admitted).toBeGreaterThanOrEqual(20)
    expect(admitted).toBeLessThanOrEqual(42)
    await sleep(2500)
    expect(new Set(await statuses(4, limited.key))).toEqual(new Set([429]))

    const { body: short } = await ask('POST', '/v1/api-keys', { label: 'short', scopes: ['identities:read'] })
    expect(new Set(await statuses(4, short.key))).toEqual(new Set([200]))
    await ask('DELETE', `/v1/api-keys/${short.id}`)
    await sleep(1000)
    expect(new Set(await statuses(8, short.key))).toEqual(new Set([401]))
  })

  test('go on when one is stopped: calls and mail at the other, and a socket resumes there without a gap', async () => {
    const bob = await identity('Bob')
    const socket = async (since?: string): Promise<Awaited<ReturnType<typeof live>>> => {
      const { body } = await ask('POST', '/v1/realtime/token', {})
      expect(body.url).toBe('wss://box.example.com/v1/realtime')
      const opened = await live(`${body.url}?token=${body.token}`)
      opened.say({ type: 'subscribe', channel: 'email_messages', identity_id: bob.id, ...(since && { since }) })
      await opened.until('subscribed')
      return opened
    }
    const heard = (frames: ReturnType<typeof JSON.parse>[]): string[] =>
      frames.filter(({ type }) => type === 'event').map(({ event }) => event.data.subject)
    const sockets = [await socket()]
    // the token and the socket were two connections: after another call the next socket is at the other box
    await ask('GET', '/v1/account')
    sockets.push(await socket())
    expect(await deliver(bob.email, 'before')).toMatch(/^250 /)
    for (const { until } of sockets) await until('event')
    const last = sockets[0]!.frames.at(-1).event.id

    const results: (number | string)[] = []
    let isStopping = true
    const calling = (async () => {
      while (isStopping) {
        results.push(await ask('GET', `/v1/identities/${bob.id}`).then(({ status }) => status, String))
        results.push((await deliver(bob.email, `meanwhile ${results.length}`).catch(String)).slice(0, 3))
        await sleep(20)
      }
    })()
    await expect.poll(() => results.length).toBeGreaterThan(6)
    expect(await one.process.end('SIGTERM')).toBe(0)
    const closed = await Promise.race(sockets.map(async (socket) => ({ code: (await socket.closed).code, socket })))
    expect(closed.code).toBe(1001)
    const count = results.length
    await expect.poll(() => results.length).toBeGreaterThan(count + 40)
    isStopping = false
    await calling
    expect([...new Set(results)]).toEqual([200, '250'])

    const stayed = sockets.find((socket) => socket !== closed.socket)!
    const resumed = await socket(last)
    const expected = results.flatMap((result, index) => (result === '250' ? [`meanwhile ${index}`] : []))
    await expect.poll(() => heard(resumed.frames).length).toBe(expected.length)
    expect(heard(resumed.frames)).toEqual(expected)
    await expect.poll(() => heard(stayed.frames)).toEqual(['before', ...expected])
    one = await serve('one')
    await bothServe()
  })

  test('lose nothing that they acknowledged when Patroni makes the other server the primary', async () => {
    const cal = await identity('Cal')
    const before = await cluster.primary()
    const acknowledged: string[] = []
    let isSwitching = true
    let number = 0
    const sender = async (name: string): Promise<void> => {
      while (isSwitching) {
        const subject = `${name} ${(number += 1)}`
        if ((await deliver(cal.email, subject).catch(String)).startsWith('250')) acknowledged.push(subject)
        await sleep(30)
      }
    }
    const senders = ['a', 'b', 'c'].map(sender)
    await expect.poll(() => acknowledged.length).toBeGreaterThan(10)
    await cluster.switchover()
    const count = acknowledged.length
    // mail is taken again, at the other server
    await expect.poll(() => acknowledged.length).toBeGreaterThan(count + 10)
    isSwitching = false
    await Promise.all(senders)
    expect(await cluster.primary()).not.toBe(before)
    const found: string[] = []
    let cursor = ''
    do {
      const { body } = await ask('GET', `/v1/identities/${cal.id}/emails?limit=100${cursor}`)
      found.push(...body.data.map(({ subject }: { subject: string }) => subject))
      cursor = body.has_more ? `&cursor=${encodeURIComponent(body.next_cursor)}` : ''
    } while (cursor !== '')
    expect(acknowledged.filter((subject) => !found.includes(subject))).toEqual([])
    await expect.poll(() => cluster.isSynchronous()).toBe(true)
  })

  test('go on when the machine of one is cut off', async () => {
    const dan = await identity('Dan')
    await namespaces.connect('two', false)
    const results = []
    for (let count = 0; count < 6; count += 1) {
      results.push((await deliver(dan.email, `cut ${count}`)).slice(0, 3))
      results.push((await ask('GET', `/v1/identities/${dan.id}`)).status)
    }
    expect(new Set(results)).toEqual(new Set(['250', 200]))
    await namespaces.connect('two', true)
    await bothServe()
    expect((await subjects(dan.id)).toSorted()).toEqual(Array.from({ length: 6 }, (_, count) => `cut ${count}`))
  })
})
