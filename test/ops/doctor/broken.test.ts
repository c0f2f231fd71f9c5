import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../../support/open-store.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Appliance } from '../../support/appliance.ts'
import { certificatePair } from '../../support/certificate-pair.ts'
import { address, checkup, hostname, linesOf, patient, published } from '../../support/checkup.ts'
import { MailSink } from '../../support/mail-sink.ts'
import { TwilioStub, twilioSettings } from '../../support/twilio-stub.ts'
import { run, succeed } from '../../support/program.ts'
import { says, WebhookSink } from '../../support/webhook-sink.ts'

const program = new URL('../../../src/main.ts', import.meta.url).pathname

/** For what the box does by itself. */
const timeout = { timeout: 100_000 }

const minute = 60_000
const day = 24 * 60 * minute

function smtpTls({ cert, key }: { cert: string; key: string }): Record<string, string> {
  return { PILLARBOX_SMTP__TLS__CERT: cert, PILLARBOX_SMTP__TLS__KEY: key }
}

/** Changes the store from outside. */
function change(box: Appliance, statement: string, ...values: (string | number)[]): void {
  const database = openStore(join(box.env['PILLARBOX_DATA_DIR']!, 'pillarbox.db'), { timeout: 60_000 })
  database.prepare(statement).run(...values)
  database.close()
}

test('of a box that is as it should be nothing fails, and each line says what it saw', async () => {
  const sink = await MailSink.start()
  const { box } = await patient({ PILLARBOX_OUTBOUND__PORT: String(sink.port) })
  await published(box)
  const report = await checkup(box)
  expect(report.lines.filter(({ status }) => status === 'fail')).toEqual([])
  expect(report).toMatchObject({ status: 'warn', fail: 0, pass: report.lines.filter(({ status }) => status === 'pass').length })
  const names = new Set(report.lines.map(({ name }) => name))
  for (const name of 'config version permissions disk clock ports tls helo ptr blocklists port25 mx spf dkim dmarc mta_sts tls_rpt store queue'.split(
    ' ',
  )) {
    expect(names).toContain(name)
  }
  expect(report.lines.every(({ status, fix }) => (status === 'pass') === (fix === null))).toBe(true)
  expect(report.lines.find(({ name }) => name === 'port25')).toMatchObject({
    status: 'pass',
    message: expect.stringContaining('mx.far.test'),
  })
})

describe('names the fault', () => {
  test('of a data directory that others can read', async () => {
    const { box } = await patient()
    const data = box.env['PILLARBOX_DATA_DIR']!
    chmodSync(data, 0o755)
    chmodSync(join(data, 'state.json'), 0o644)
    const line = (await linesOf(box, 'permissions')).find(({ subject }) => subject === data)
    expect(line).toMatchObject({ status: 'fail', fix: `chmod 700 ${data} && chmod 600 ${join(data, 'state.json')}` })
    chmodSync(data, 0o700)
    chmodSync(join(data, 'state.json'), 0o600)
    expect((await linesOf(box, 'permissions')).find(({ subject }) => subject === data)).toMatchObject({ status: 'pass' })
  })

  test('of a master key that others can read', async () => {
    const { box } = await patient()
    const keys = `${box.env['PILLARBOX_DATA_DIR']!}-keys`
    chmodSync(join(keys, 'master.key'), 0o640)
    const line = (await linesOf(box, 'permissions')).find(({ subject }) => subject === keys)
    expect(line).toMatchObject({
      status: 'fail',
      message: expect.stringContaining('master.key'),
      fix: `chmod 600 ${join(keys, 'master.key')}`,
    })
  })

  test('of each record of a domain: MX, SPF, DKIM, DMARC', async () => {
    const { box, clock } = await patient()
    const { dns_records } = await published(box)
    const seen = async (name: string): Promise<object | undefined> => {
      clock.ahead += 6000
      return (await linesOf(box, name)).find(({ subject }) => subject === 'box.test')
    }
    box.dns.drop('box.test', 'MX')
    expect(await seen('mx')).toMatchObject({ status: 'fail', fix: `Publish: box.test. 3600 IN MX 10 ${hostname}.` })
    box.dns.mx('box.test', hostname)
    box.dns.txt('box.test', 'v=spf1 ip4:198.51.100.1 -all')
    expect(await seen('spf')).toMatchObject({
      status: 'fail',
      message: expect.stringContaining(`Mail from ${address}`),
      fix: 'Replace it with: box.test. 3600 IN TXT "v=spf1 mx ~all"',
    })
    const dkim = dns_records.find(({ purpose, required }) => purpose === 'dkim' && required)!
    box.dns.txt(dkim.name, dkim.value.replace(/p=.{8}/, 'p=AAAAAAAA'))
    expect(await seen('dkim')).toMatchObject({
      status: 'fail',
      message: expect.stringContaining('not the key that signs'),
      fix: expect.stringContaining(dkim.name),
    })
    box.dns.drop('_dmarc.box.test', 'TXT')
    expect(await seen('dmarc')).toMatchObject({
      status: 'warn',
      fix: expect.stringMatching(/^Publish: _dmarc\.box\.test\. 3600 IN TXT "v=DMARC1/),
    })
    // no answer is no fault of the record
    box.dns.mx('box.test', hostname).fails('box.test', 'servfail')
    expect(await seen('mx')).toMatchObject({
      status: 'pass',
      message: expect.stringMatching(/^The DNS lookup failed now; on 20.* it was correct/),
    })
  })

  test('of a certificate that ran out, soon will, or does not hold yet', async () => {
    const cases = [
      [{ from: -90 * day, to: -day }, 'fail', /^It expired on \d{4}-/],
      [{ from: -85 * day, to: 5 * day }, 'fail', /^It expires in 4 days/],
      [{ from: -75 * day, to: 15 * day }, 'warn', /^It expires in 14 days/],
      [{ from: -5 * day, to: day }, 'warn', /^It expires in 23 hours/],
      [{ from: 2 * day }, 'fail', /^It is valid only from/],
    ] as const
    for (const [life, status, message] of cases) {
      const { box } = await patient(smtpTls(await certificatePair(hostname, life)))
      const lines = await linesOf(box, 'tls')
      // the file, and what is shown on the port
      expect(lines.map(({ subject }) => subject.split(' ')[0])).toEqual(['smtp.tls', 'smtp'])
      for (const line of lines)
        expect(line).toMatchObject({ status, message: expect.stringMatching(message), fix: expect.any(String) })
    }
  })

  test('and nothing of a certificate of few days or weeks, which is renewed in time', async () => {
    for (const life of [
      { from: -3 * day, to: 3 * day },
      { from: -29 * day, to: 16 * day },
    ]) {
      const { box } = await patient(smtpTls(await certificatePair(hostname, life)))
      expect((await linesOf(box, 'tls'))[0]).toMatchObject({ subject: expect.stringMatching(/^smtp\.tls /), status: 'pass' })
    }
  })

  test('of a certificate that is to come by ACME, and how to hasten it', async () => {
    const { box } = await patient({
      PILLARBOX_ACME__AGREE_TERMS: 'true',
      PILLARBOX_ACME__DIRECTORY: 'https://127.0.0.1:9/directory',
    })
    expect(await linesOf(box, 'tls')).toMatchObject([
      { status: 'warn', fix: 'pillarbox certificate list shows the problem; then: pillarbox certificate renew' },
    ])
  })

  test('of a certificate for another name, and of a key that is not its', async () => {
    const other = await certificatePair('mail.elsewhere.test')
    const { box } = await patient(smtpTls(other))
    for (const line of await linesOf(box, 'tls')) {
      expect(line).toMatchObject({ status: 'fail', message: `It is for DNS:mail.elsewhere.test, not for ${hostname}.` })
    }
    const { key } = await certificatePair(hostname)
    // replaced under a box that runs: it would not come up again
    writeFileSync(other.key, readFileSync(key))
    expect((await linesOf(box, 'tls'))[0]).toMatchObject({
      status: 'fail',
      message: expect.stringContaining(`The key in ${other.key} does not belong to the certificate`),
    })
  })

  test('of a certificate that nobody trusts, which counts once others are told to ask for one', async () => {
    const { box } = await patient()
    expect(await linesOf(box, 'tls')).toMatchObject([{ status: 'warn', fix: expect.stringContaining('smtp.tls.cert') }])
    const { box: strict } = await patient({ PILLARBOX_MAIL__MTA_STS: 'enforce' })
    expect(await linesOf(strict, 'tls')).toMatchObject([{ status: 'fail' }])
  })

  test('of a port that does not answer as it should', async () => {
    const { box } = await patient({ PILLARBOX_SMTP__MAX_CONNECTIONS: '1' })
    const socket = connect(box.smtp.port, box.smtp.host)
    onTestFinished(() => void socket.destroy())
    await once(socket, 'data')
    const line = (await linesOf(box, 'ports')).find(({ subject }) => subject === `smtp 127.0.0.1:${box.smtp.port}`)
    expect(line).toMatchObject({ status: 'fail', fix: expect.stringContaining(`ss -ltnp 'sport = :${box.smtp.port}'`) })
  })

  test('of an address without a name, with one that does not point back, and with another than ours', async () => {
    const { box } = await patient()
    box.dns.drop('25.2.0.192.in-addr.arpa', 'PTR')
    const fix = expect.stringContaining(`set the reverse DNS of ${address} to ${hostname}`)
    expect(await linesOf(box, 'ptr')).toMatchObject([
      { subject: address, status: 'fail', message: expect.stringContaining('PTR record'), fix },
    ])
    box.dns.ptr(address, 'vm-25.provider.test')
    expect(await linesOf(box, 'ptr')).toMatchObject([
      { status: 'fail', message: expect.stringContaining('does not point back'), fix },
    ])
    box.dns.a('vm-25.provider.test', address)
    expect(await linesOf(box, 'ptr')).toMatchObject([{ status: 'warn', message: expect.stringContaining('vm-25.provider.test') }])
    box.dns.fails('25.2.0.192.in-addr.arpa', 'servfail')
    expect(await linesOf(box, 'ptr')).toMatchObject([{ status: 'warn', message: 'The DNS lookup failed.' }])
  })

  test('of a host name that leads nowhere, or elsewhere', async () => {
    const { box } = await patient()
    box.dns.a(hostname, '192.0.2.99')
    expect(await linesOf(box, 'helo')).toMatchObject([{ status: 'fail', fix: `Publish: ${hostname}. 3600 IN A ${address}` }])
    box.dns.drop(hostname, 'A')
    expect(await linesOf(box, 'helo')).toMatchObject([{ status: 'fail', message: 'It has no address in the DNS.' }])
  })

  test('of an address on a block list; and of a list that does not answer us', async () => {
    const { box } = await patient()
    box.dns.a('25.2.0.192.zen.list.test', '127.0.0.4').txt('25.2.0.192.zen.list.test', 'Listed by XBL')
    box.dns.a('25.2.0.192.bl.list.test', '127.255.255.254')
    expect(await linesOf(box, 'blocklists')).toMatchObject([
      { subject: `${address} zen.list.test`, status: 'fail', message: 'It is listed (127.0.0.4): Listed by XBL' },
      { subject: `${address} bl.list.test`, status: 'warn', fix: expect.stringContaining('dns.servers') },
    ])
  })

  test('of a disk that is full, nearly, out of inodes, or soon', async () => {
    const disk = { free: 2 ** 20, files: 1000, ffree: 900 }
    const measure = async () => ({ bsize: 1024, bavail: disk.free, blocks: 2 ** 21, files: disk.files, ffree: disk.ffree })
    const { box, clock } = await patient({ PILLARBOX_MIN_FREE: '512 MiB' }, { doctor: { measure } })
    const data = box.env['PILLARBOX_DATA_DIR']!
    expect(await linesOf(box, 'disk')).toMatchObject([
      { subject: data, status: 'pass' },
      { subject: 'inodes', status: 'pass' },
    ])
    clock.ahead += day
    disk.free = 900 * 1024
    disk.ffree = 20
    expect(await linesOf(box, 'disk')).toMatchObject([
      { subject: data, status: 'warn' },
      { subject: 'inodes', status: 'warn' },
      { subject: 'trend', status: 'warn', message: 'It grows by 124 MiB a day: at this rate new data is rejected in 3 days.' },
    ])
    disk.free = 100 * 1024
    disk.ffree = 0
    expect(await linesOf(box, 'disk')).toMatchObject([
      {
        subject: data,
        status: 'fail',
        message: expect.stringContaining('100 MiB are free, less than min_free (512 MiB)'),
        fix: expect.stringContaining('du -xh'),
      },
      { subject: 'inodes', status: 'fail' },
      { subject: 'trend', status: 'warn' },
    ])
  })

  test('of a queue that stands still, and of one from which nothing gets through', async () => {
    const { box, clock } = await patient()
    const ago = (milliseconds: number): string => new Date(Date.now() + clock.ahead - milliseconds).toISOString()
    // in a lane that is not listed nobody looks for it
    change(
      box,
      `INSERT INTO deliveries_queue (id, kind, lane, load, state, due_at, created_at) VALUES ('dlv_x', 'email', 'far.test', '{}', 'waiting', ?, ?)`,
      ago(60 * minute),
      ago(90 * minute),
    )
    await box.call('POST', '/v1/identities', { name: 'Ada' })
    expect(await linesOf(box, 'queue')).toMatchObject([
      { subject: 'email', status: 'fail', message: expect.stringContaining('far.test was due 1 hour ago') },
    ])
    for (const number of [1, 2, 3, 4, 5, 6]) {
      change(
        box,
        `INSERT INTO delivery_attempts (delivery_seq, number, started_at, ended_at, outcome, answer) SELECT seq, ?, ?, ?, 'deferred', '421 no' FROM deliveries_queue WHERE id = 'dlv_x'`,
        number,
        ago(minute),
        ago(minute),
      )
    }
    await box.call('POST', '/v1/identities', { name: 'Bob' })
    expect(await linesOf(box, 'queue')).toMatchObject([
      {
        subject: 'email',
        status: 'warn',
        message: 'None of 6 attempts of the last hour succeeded; the last one: 421 no (all to far.test)',
        fix: expect.stringContaining('pillarbox queue list --destination far.test'),
      },
    ])
    change(
      box,
      `INSERT INTO deliveries_queue (id, kind, lane, load, state, due_at, created_at) VALUES ('dlv_y', 'email', 'near.test', '{}', 'waiting', ?, ?)`,
      ago(-minute),
      ago(90 * minute),
    )
    change(
      box,
      `INSERT INTO delivery_attempts (delivery_seq, number, started_at, ended_at, outcome, answer) SELECT seq, 1, ?, ?, 'deferred', '421 neither' FROM deliveries_queue WHERE id = 'dlv_y'`,
      ago(minute),
      ago(minute),
    )
    await box.call('POST', '/v1/identities', { name: 'Cid' })
    // what fails to several destinations has this machine in common
    expect(await linesOf(box, 'queue')).toMatchObject([
      {
        subject: 'email',
        status: 'fail',
        message: expect.stringContaining('421 neither'),
        fix: expect.stringMatching(/port25.*helo.*ptr/),
      },
    ])
  })

  test('of a queue that works on what is older than a thousand new deliveries: it is not stuck', async () => {
    const { box, clock } = await patient()
    const ago = (milliseconds: number): string => new Date(Date.now() + clock.ahead - milliseconds).toISOString()
    const add = (id: string, columns: string, values: string): void =>
      change(
        box,
        `INSERT INTO deliveries_queue (id, kind, lane, load, due_at, created_at, ${columns}) VALUES ('${id}', 'email', 'far.test', '{}', ?, ?, ${values})`,
        ago(20 * minute),
        ago(30 * minute),
      )
    add('dlv_old', 'state', `'waiting'`)
    change(
      box,
      `WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 1500)
        INSERT INTO deliveries_queue (id, kind, lane, load, state, due_at, created_at) SELECT 'dlv_' || n, 'email', 'far.test', '{}', 'waiting', ?, ? FROM many`,
      ago(20 * minute),
      ago(30 * minute),
    )
    const status = async (): Promise<string> => {
      await box.call('POST', '/v1/identities', {})
      return (await linesOf(box, 'queue'))[0]!.status
    }
    expect(await status()).toBe('fail')
    // what else the queue does is not its work on mail
    change(
      box,
      `WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 1500)
        INSERT INTO deliveries_queue (id, kind, lane, load, state, due_at, created_at, ended_at, attempts, first_started_at, first_outcome)
        SELECT 'dlv_w' || n, 'webhook', 'w', '{}', 'done', ?1, ?1, ?1, 1, ?1, 'done' FROM many`,
      ago(0),
    )
    expect(await status()).toBe('fail')
    const attempted = (set: string): void =>
      change(box, `UPDATE deliveries_queue SET ${set}, first_started_at = ?, attempts = 1 WHERE id = 'dlv_old'`, ago(minute))
    for (const set of [
      `state = 'running'`,
      `state = 'waiting', first_outcome = 'deferred'`,
      `state = 'done', first_outcome = 'done', ended_at = '${ago(minute)}'`,
    ]) {
      attempted(set)
      expect([set, await status()]).toEqual([set, 'pass'])
      attempted(`state = 'waiting', ended_at = NULL, first_outcome = NULL`)
      change(box, `UPDATE deliveries_queue SET first_started_at = NULL WHERE id = 'dlv_old'`)
      expect(await status()).toBe('fail')
    }
  })

  test('of a webhook that fails, and of one that was switched off', async () => {
    const sink = await WebhookSink.start()
    const { box, clock } = await patient({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
    const make = async (path: string): Promise<string> => {
      const { body } = await box.call('POST', '/v1/webhooks', { url: `${sink.url}${path}`, events: ['identity.created'] })
      return body.id
    }
    sink.paths.set('/bad?token=canary', says(500))
    sink.paths.set('/gone', says(410))
    const [bad, gone] = [await make('/bad?token=canary'), await make('/gone')]
    // that of an identity that was deleted has not failed
    const { body: eve } = await box.call('POST', '/v1/identities', { name: 'Eve' })
    await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['email.received'], identity_id: eve.id })
    await box.call('DELETE', `/v1/identities/${eve.id}`)
    await box.call('POST', '/v1/identities', { name: 'Ada' })
    await expect.poll(async () => (await box.call('GET', `/v1/webhooks/${gone}`)).body['active'], timeout).toBe(false)
    await expect.poll(async () => (await box.call('GET', `/v1/webhooks/${bad}`)).body['failing_since'], timeout).not.toBeNull()
    clock.ahead += 20 * minute
    const lines = await linesOf(box, 'webhooks')
    expect(lines).toMatchObject([
      {
        status: 'fail',
        message: expect.stringContaining('it answered 410'),
        fix: expect.stringContaining(`PATCH /v1/webhooks/${gone}`),
      },
      {
        status: 'warn',
        message: 'All attempts failed for 20 minutes.',
        fix: expect.stringContaining(`/v1/webhooks/${bad}/deliveries`),
      },
    ])
    expect(JSON.stringify(lines)).not.toContain('canary')
  })

  test('of webhooks that nothing reaches, apart from mail; mended and tried again as it says, they pass', async () => {
    const sink = await WebhookSink.start()
    const { box } = await patient({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
    sink.paths.set('/one', says(500))
    const { body: webhook } = await box.call('POST', '/v1/webhooks', { url: `${sink.url}/one`, events: ['identity.created'] })
    for (const name of ['Ada', 'Bob', 'Cid', 'Dan', 'Eve']) await box.call('POST', '/v1/identities', { name })
    const pillarbox = (...words: string[]): Promise<Buffer> =>
      succeed(process.execPath, [program, ...words], { env: box.env, cwd: box.directory })
    const waiting = async (): Promise<{ id: string; attempts: number }[]> =>
      JSON.parse((await pillarbox('queue', 'list', '--kind', 'webhook', '--json')).toString())
    await expect.poll(async () => (await waiting()).filter(({ attempts }) => attempts > 0).length, timeout).toBeGreaterThan(0)
    for (const { id } of (await waiting()).slice(0, 5)) {
      change(
        box,
        `INSERT INTO delivery_attempts (delivery_seq, number, started_at, ended_at, outcome, answer) SELECT seq, 90, ?, ?, 'deferred', '{"status":500,"body":"canary","error":null}' FROM deliveries_queue WHERE id = ?`,
        new Date().toISOString(),
        new Date().toISOString(),
        id,
      )
    }
    const [line] = await linesOf(box, 'queue')
    expect(line).toMatchObject({
      subject: 'webhook',
      status: 'warn',
      message: expect.stringContaining(`the last one: it answered 500 (all to ${webhook['id']})`),
      fix: expect.stringContaining(`GET /v1/webhooks/${webhook['id']}/deliveries shows its responses`),
    })
    expect(line!.fix).not.toMatch(/port25|helo|ptr/)
    expect(await linesOf(box, 'webhooks')).toMatchObject([
      { status: 'pass', message: 'None has failed for 10 minutes or longer.' },
    ])
    sink.paths.set('/one', says(200))
    expect(line!.fix).toMatch(/once it is fixed: pillarbox queue retry ID, or wait\.$/)
    for (const { id } of await waiting()) {
      const { code, errors } = await run(process.execPath, [program, 'queue', 'retry', id], { env: box.env, cwd: box.directory })
      // the box may have tried it again by itself meanwhile, or be about it
      if (code !== 0) expect(errors).toMatch(/It is done; a retry would deliver it twice\.|An attempt is running;/)
    }
    await expect.poll(() => linesOf(box, 'queue'), timeout).toMatchObject([{ status: 'pass' }])
  })

  test('of a provider of text messages that does not know us', async () => {
    const stub = await TwilioStub.start()
    const { box } = await patient({
      ...twilioSettings(stub),
      PILLARBOX_SMS__TWILIO__AUTH_TOKEN: 'deadbeefdeadbeefdeadbeefdeadbeef',
    })
    expect(await linesOf(box, 'sms')).toMatchObject([
      {
        subject: 'twilio',
        status: 'fail',
        message: expect.stringMatching(/Authenticate/),
        fix: expect.stringContaining('sms.twilio.'),
      },
    ])
    const { box: right } = await patient(twilioSettings(stub))
    expect(await linesOf(right, 'sms')).toMatchObject([{ status: 'pass', message: expect.stringContaining('30038') }])
  })

  test('of a phone that refuses our password, and of a bridge that is gone', async () => {
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`)
      const right = `Basic ${Buffer.from('sms:right').toString('base64')}`
      response.statusCode = request.url === '/bridge' ? 405 : request.headers.authorization === right ? 200 : 401
      response.end('[]')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const phone = (password: string): Record<string, string> => ({
      PILLARBOX_SMS__PROVIDER: 'android',
      PILLARBOX_SMS__ANDROID__URL: url,
      PILLARBOX_SMS__ANDROID__USER: 'sms',
      PILLARBOX_SMS__ANDROID__PASSWORD: password,
      PILLARBOX_SMS__ANDROID__SIGNING_KEY: 'signing',
      PILLARBOX_SMS__ANDROID__NUMBERS: '+4915112345678',
    })
    const { box: wrong } = await patient(phone('wrong'))
    expect(await linesOf(wrong, 'sms')).toMatchObject([
      { subject: 'android', status: 'fail', message: 'The phone answered 401: [].' },
    ])
    const { box: right } = await patient(phone('right'))
    expect(await linesOf(right, 'sms')).toMatchObject([{ subject: 'android', status: 'pass' }])
    const { box: bridged } = await patient({
      PILLARBOX_SMS__PROVIDER: 'http',
      PILLARBOX_SMS__HTTP__URL: `${url}/bridge`,
      PILLARBOX_SMS__HTTP__SECRET: 'a secret of some length',
      PILLARBOX_SMS__HTTP__NUMBERS: '+4915112345678',
    })
    expect(await linesOf(bridged, 'sms')).toMatchObject([{ subject: 'http', status: 'pass' }])
    expect(asked).toContain('GET /bridge')
    server.close()
    server.closeAllConnections()
    expect(await linesOf(bridged, 'sms')).toMatchObject([
      { status: 'fail', message: expect.stringContaining('cannot be reached') },
    ])
  })

  test('of port 25 that is closed outwards, and connects nowhere else', async () => {
    const dialled: string[] = []
    const dial = async ({ host, port }: { host: string; port: number }): Promise<never> => {
      dialled.push(`${host}:${port}`)
      throw Object.assign(new Error('no'), { code: 'ETIMEDOUT' })
    }
    const { box } = await patient({}, { dial })
    expect(await linesOf(box, 'port25')).toMatchObject([
      {
        subject: 'direct',
        status: 'fail',
        message: expect.stringContaining('no connection in time'),
        fix: expect.stringContaining('outbound.mode to relay'),
      },
    ])
    expect(dialled).toEqual(['127.0.0.1:25'])
  })

  test('of a box that is not on the internet nobody else is asked', async () => {
    const dialled: unknown[] = []
    const dial = async (place: unknown): Promise<never> => {
      dialled.push(place)
      throw new Error('no')
    }
    const { box } = await patient({ PILLARBOX_DOCTOR__ADDRESSES: '' }, { dial })
    box.dns.a(hostname, '10.0.0.5')
    const { lines } = await checkup(box)
    expect(lines.filter(({ name }) => ['ptr', 'blocklists', 'port25'].includes(name))).toEqual([])
    expect(lines.find(({ name }) => name === 'helo')).toMatchObject({
      status: 'warn',
      message: expect.stringContaining('10.0.0.5'),
    })
    expect(dialled).toEqual([])
    expect(box.dns.queries.filter((query) => query.includes('list.test'))).toEqual([])
  })

  test('of a clock that nobody keeps right, differs from others’, or went back', async () => {
    const { box } = await patient({}, { doctor: { run: async () => 'no\n' } })
    expect(await linesOf(box, 'clock')).toMatchObject([
      { status: 'warn', fix: expect.stringMatching(/^apt-get install -y chrony\n.*timedatectl set-ntp true/) },
    ])
    let behind = 90_000
    const other = createServer((_, response) => response.setHeader('Date', new Date(Date.now() - behind).toUTCString()).end())
    other.listen(0, '127.0.0.1')
    await once(other, 'listening')
    onTestFinished(() => void other.close())
    const time_url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
    const { box: compared, clock } = await patient({ PILLARBOX_DOCTOR__TIME_URL: time_url })
    expect(await linesOf(compared, 'clock')).toMatchObject([
      { status: 'fail', message: expect.stringMatching(/^It is (?:89|9\d)\.\d s ahead of http/) },
    ])
    behind = 0
    expect(await linesOf(compared, 'clock')).toMatchObject([{ status: 'pass' }])
    await compared.call('POST', '/v1/identities', { name: 'Ada' })
    clock.ahead -= 60 * minute
    expect(await linesOf(compared, 'clock')).toMatchObject([
      { status: 'fail', message: expect.stringContaining('It was set back') },
    ])
  })

  test('of backups that nobody makes, or made long ago, or without the keys', async () => {
    const { box } = await patient()
    expect(await linesOf(box, 'backup')).toMatchObject([{ status: 'warn', fix: expect.stringContaining('backup.directory') }])
    const directory = mkdtempSync(join(tmpdir(), 'pillarbox-shelf-'))
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
    const { box: right, clock } = await patient({ PILLARBOX_BACKUP__DIRECTORY: directory })
    // the timer has had no night yet
    expect(await linesOf(right, 'backup')).toMatchObject([
      {
        subject: directory,
        status: 'warn',
        message: 'There is no backup yet.',
        fix: expect.stringMatching(/^pillarbox backup --auto\n/),
      },
    ])
    clock.ahead += 2 * day
    expect(await linesOf(right, 'backup')).toMatchObject([{ status: 'fail', message: 'There is no backup.' }])
    clock.ahead -= 2 * day
    // of another box, and no backup at all
    await succeed(process.execPath, [program, 'backup', join(directory, 'other.tar')], { env: box.env, cwd: box.directory })
    writeFileSync(join(directory, 'notes.txt'), 'not a backup')
    expect(await linesOf(right, 'backup')).toMatchObject([{ status: 'warn', message: 'There is no backup yet.' }])
    await succeed(process.execPath, [program, 'backup', join(directory, 'by hand.tar')], { env: right.env, cwd: right.directory })
    expect(await linesOf(right, 'backup')).toMatchObject([
      {
        message: expect.stringContaining('by hand.tar contains no keys'),
        fix: expect.stringContaining('data-keys/master.key'),
      },
    ])
    rmSync(join(directory, 'by hand.tar'))
    expect((await right.call('POST', '/v1/backups')).status).toBeLessThan(300)
    await expect
      .poll(() => linesOf(right, 'backup'))
      .toMatchObject([
        {
          status: 'warn',
          message: expect.stringContaining('contains no keys'),
          fix: expect.stringContaining('backup.passphrase_file'),
        },
      ])
    clock.ahead += 3 * day
    expect(await linesOf(right, 'backup')).toMatchObject([{ status: 'warn', message: expect.stringMatching(/is 3 days old/) }])
    clock.ahead += 7 * day
    expect(await linesOf(right, 'backup')).toMatchObject([{ status: 'fail' }])
    rmSync(directory, { recursive: true })
    expect(await linesOf(right, 'backup')).toMatchObject([{ status: 'fail', message: expect.stringContaining('cannot be read') }])
  })

  test('of a runtime with known holes, and of the key for the first steps', async () => {
    const { box } = await patient({}, { doctor: { versions: { node: '24.21.0', sqlite: '3.51.2' } } })
    expect(await linesOf(box, 'version')).toMatchObject([
      { subject: 'pillarbox', status: 'pass' },
      { subject: 'node', status: 'warn', fix: expect.stringMatching(/^Upgrade Pillarbox to its newest version/) },
      { subject: 'sqlite', status: 'fail' },
    ])
    const [line] = await linesOf(box, 'bootstrap_key')
    expect(line).toMatchObject({ status: 'warn', fix: expect.stringMatching(/DELETE \/v1\/api-keys\/key_/) })
    expect(JSON.stringify(line)).not.toContain(box.key)
  })
})
