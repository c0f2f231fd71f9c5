import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { certificate, type Running, startReceiver } from '../support/receiver.ts'
import { Dialogue } from '../support/smtp.ts'

const message = 'Subject: hello\r\n\r\nhi\r\n'
const run = promisify(execFile)

let box: Running
beforeEach(async () => {
  box = await startReceiver()
})
afterEach(() => box.receiver.stop())

async function secured(): Promise<{ client: Dialogue; socket: TLSSocket }> {
  const client = await Dialogue.hello(box.port)
  expect(await client.say('STARTTLS')).toMatch(/^220 /)
  return { client, socket: await client.upgrade() }
}

function serial(socket: TLSSocket): string | undefined {
  return socket.getPeerX509Certificate()?.serialNumber
}

test('a message comes in under TLS, and the envelope says how', async () => {
  const { client, socket } = await secured()
  expect(await client.say('EHLO client.test')).not.toContain('STARTTLS')
  expect(await client.say('STARTTLS')).toMatch(/^503 /)
  expect(await client.deliver(message)).toMatch(/^250/)
  expect(box.deliveryTarget.kept[0]?.envelope.tls).toEqual({ version: 'TLSv1.3', cipher: socket.getCipher().name })
  client.destroy()
})

test('what was said before the handshake is forgotten', async () => {
  const client = await Dialogue.hello(box.port)
  await client.say('MAIL FROM:<a@client.test>')
  await client.say('RCPT TO:<user@box.test>')
  await client.say('STARTTLS')
  await client.upgrade()
  expect(await client.say('DATA')).toMatch(/^503 /)
  expect(await client.say('MAIL FROM:<a@client.test>')).toMatch(/^503 /)
  await client.say('EHLO client.test')
  expect(await client.say('DATA')).toMatch(/^503 /)
  client.destroy()
})

describe('commands injected behind STARTTLS', () => {
  const injected = 'MAIL FROM:<evil@client.test>\r\nRCPT TO:<user@box.test>\r\n'

  test.each([
    ['at once', injected],
    ['after 250 others', 'NOOP\r\n'.repeat(250) + injected],
    ['in half a line', 'MAIL FROM:<evil@client.test>'],
  ])('never run, sent %s', async (_, plain) => {
    const client = await Dialogue.hello(box.port)
    client.send(`STARTTLS\r\n${plain}`)
    expect(await client.reply()).toMatch(/^220 /)
    await client.upgrade()
    const before = client.transcript.length
    await wait(50)
    expect(client.transcript.slice(before)).toBe('')
    expect(await client.say('EHLO client.test')).toMatch(/^250-box\.test/)
    expect(await client.say('RCPT TO:<user@box.test>')).toMatch(/^503 /)
    expect(box.deliveryTarget.asked).toEqual([])
    client.destroy()
  })

  test('before it, and then no handshake, run no more either', async () => {
    const client = await Dialogue.hello(box.port)
    client.send(`STARTTLS\r\n${injected}DATA\r\n${message}.\r\n`)
    await client.reply()
    const before = client.transcript.length
    await wait(100)
    expect(client.transcript.slice(before)).toBe('')
    expect(box.deliveryTarget.asked).toEqual([])
    client.destroy()
  })
})

test.each([
  ['-tls1', false],
  ['-tls1_1', false],
  ['-tls1_2', true],
  ['-tls1_3', true],
])('openssl s_client %s connects: %s', async (version, accepted) => {
  const asked = [
    's_client',
    '-starttls',
    'smtp',
    '-connect',
    `127.0.0.1:${box.port}`,
    '-cipher',
    'ALL:@SECLEVEL=0',
    version,
    '-brief',
  ]
  const client = run('openssl', asked, { timeout: 20_000 })
  client.child.stdin?.end('QUIT\r\n')
  const outcome = await client.then(
    () => true,
    () => false,
  )
  expect(outcome).toBe(accepted)
})

describe('reload', () => {
  test('serves the new certificate to new sessions and lets the old live on', async () => {
    const old = await secured()
    await old.client.say('EHLO client.test')
    const fresh = await certificate('new.test')
    box.receiver.reload({ ...box.settings, tls: fresh, hostname: 'new.test', size: 2_000_000 })
    const young = await secured()
    expect(serial(young.socket)).toBe(new X509Certificate(fresh.cert).serialNumber)
    expect(serial(young.socket)).not.toBe(serial(old.socket))
    expect(await young.client.say('EHLO client.test')).toContain('SIZE 2000000')
    expect(await old.client.deliver(message)).toMatch(/^250/)
    expect(young.client.transcript).toMatch(/^220 new\.test ESMTP/)
    old.client.destroy()
    young.client.destroy()
  })

  test('of a broken certificate changes nothing', async () => {
    const broken = { cert: box.settings.tls.cert, key: 'no key' }
    expect(() => box.receiver.reload({ ...box.settings, tls: broken, size: 5 })).toThrow('DECODER')
    const other = await certificate()
    expect(() => box.receiver.reload({ ...box.settings, tls: { cert: other.cert, key: box.settings.tls.key }, size: 5 })).toThrow(
      'key values mismatch',
    )
    const { client } = await secured()
    expect(await client.say('EHLO client.test')).toContain('SIZE 1048576')
    client.destroy()
  })
})

test('without a certificate the receiver does not start, nor on a place it cannot have', async () => {
  await expect(startReceiver({ tls: { cert: '', key: '' } })).rejects.toThrow('certificate')
  await expect(
    startReceiver({
      listen: [
        { host: '127.0.0.1', port: 0 },
        { host: '127.0.0.1', port: box.port },
      ],
    }),
  ).rejects.toThrow('EADDRINUSE')
})

test('it listens on every place it is given, IPv6 too', async () => {
  const both = await startReceiver({
    listen: [
      { host: '127.0.0.1', port: 0 },
      { host: '::1', port: 0 },
    ],
  })
  const hosts = both.receiver.addresses
  expect(hosts.map(({ host }) => host)).toEqual(['127.0.0.1', '::1'])
  for (const { host, port } of hosts) {
    const client = await Dialogue.connect(port, host)
    expect(await client.reply()).toMatch(/^220/)
    client.destroy()
  }
  await both.receiver.stop()
})

test('swaks delivers over STARTTLS, and is told who is unknown', async () => {
  const asked = [
    '--server',
    `127.0.0.1:${box.port}`,
    '--tls',
    '--helo',
    'swaks.test',
    '--from',
    'a@swaks.test',
    '--body',
    '.dot\n..\nend',
  ]
  const { stdout } = await run('swaks', [...asked, '--to', 'user@box.test'])
  expect(stdout).toContain('250 2.0.0 Ok: queued as queue-1')
  expect(box.deliveryTarget.kept[0]?.envelope).toMatchObject({ helo: 'swaks.test', mail_from: 'a@swaks.test' })
  expect(box.deliveryTarget.kept[0]?.raw.toString()).toContain('\r\n.dot\r\n..\r\nend\r\n')
  await expect(run('swaks', [...asked, '--to', 'nobody@box.test'])).rejects.toMatchObject({
    stdout: expect.stringContaining('550 5.1.1'),
  })
})
