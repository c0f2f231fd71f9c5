import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { connect as connectSecurely } from 'node:tls'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { certificate, type Running, startReceiver } from '../support/receiver.ts'
import { Dialogue } from '../support/smtp.ts'
import { openToybox, type Toybox } from '../http/toy-box.ts'

const proxy = '127.0.0.9'
const header = {
  one: Buffer.from('PROXY TCP4 192.0.2.7 198.51.100.1 56324 25\r\n'),
  two: Buffer.from('\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\xc6\x33\x64\x01\xdc\x04\0\x19', 'latin1'),
  six: Buffer.from('PROXY TCP6 2001:db8::7 2001:db8::1 56324 25\r\n'),
  check: Buffer.from('\r\n\r\n\0\r\nQUIT\n\x20\0\0\0', 'latin1'),
}

async function from(address: string, port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: address, noDelay: true })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

describe('mail', () => {
  let box: Running | undefined
  afterEach(() => box?.receiver.stop())
  const start = async (changes: Parameters<typeof startReceiver>[0] = {}): Promise<Running> =>
    (box = await startReceiver({ proxy_protocol: [proxy], ...changes }))

  test.each([
    ['version 1', header.one, '192.0.2.7'],
    ['version 2', header.two, '192.0.2.7'],
    ['IPv6', header.six, '2001:db8::7'],
    ['a health check', header.check, proxy],
  ])('through a listed proxy has the address of its client: %s', async (_, sent, address) => {
    const { port, deliveryTarget, logged } = await start()
    const client = new Dialogue(await from(proxy, port))
    client.send(sent)
    expect(await client.reply()).toMatch(/^220 /)
    await client.say('EHLO client.test')
    expect(await client.deliver('Subject: hello\r\n\r\nhi\r\n')).toMatch(/^250 /)
    expect(deliveryTarget.kept).toMatchObject([{ envelope: { remote_address: address } }])
    expect(await client.say('RCPT TO:<nobody@box.test>')).toMatch(/^503 /)
    await client.say('MAIL FROM:<a@client.test>')
    expect(await client.say('RCPT TO:<nobody@box.test>')).toMatch(/^550 /)
    expect(JSON.parse(logged.at(-1)!)).toMatchObject({ msg: 'recipient refused', ip: address })
  })

  test('is taken when each byte of the header comes alone, and STARTTLS is offered as to others', async () => {
    const { port, deliveryTarget } = await start()
    const client = new Dialogue(await from(proxy, port))
    for (const byte of header.two) {
      client.send(Buffer.of(byte))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await client.reply()).toMatch(/^220 /)
    await client.say('EHLO client.test')
    await client.say('STARTTLS')
    await client.upgrade()
    await client.say('EHLO client.test')
    expect(await client.deliver('Subject: hello\r\n\r\nhi\r\n')).toMatch(/^250 /)
    expect(deliveryTarget.kept).toMatchObject([{ envelope: { remote_address: '192.0.2.7', tls: { version: 'TLSv1.3' } } }])
  })

  test('of a client that sends commands before the greeting is refused, also behind the header', async () => {
    const { port } = await start({ greeting_delay: 50 })
    const client = new Dialogue(await from(proxy, port))
    client.send(Buffer.concat([header.one, Buffer.from('EHLO client.test\r\n')]))
    expect(await client.reply()).toMatch(/^(?:421|554) /)
  })

  test('under TLS from the first byte comes through, with the header before it', async () => {
    const { port, deliveryTarget } = await start({ implicit_tls: true, tls: await certificate() })
    const plain = await from(proxy, port)
    plain.write(header.two)
    const secure = connectSecurely({ socket: plain, rejectUnauthorized: false })
    await once(secure, 'secureConnect')
    const client = new Dialogue(secure)
    expect(await client.reply()).toMatch(/^220 /)
    await client.say('EHLO client.test')
    expect(await client.deliver('Subject: hello\r\n\r\nhi\r\n')).toMatch(/^250 /)
    expect(deliveryTarget.kept).toMatchObject([{ envelope: { remote_address: '192.0.2.7' } }])
  })

  test('through a listed proxy without the header is not taken, and the log says which proxy', async () => {
    const { port, logged } = await start()
    const socket = await from(proxy, port)
    socket.write('EHLO client.test\r\n')
    expect(await text(socket)).toBe('')
    expect(logged.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        level: 'warn',
        ip: proxy,
        why: 'it does not begin with a PROXY protocol header',
        msg: 'connection of a proxy was closed',
      }),
    ])
  })

  test('a probe of the port by a proxy is no warning', async () => {
    const { port, logged } = await start()
    const socket = await from(proxy, port)
    socket.end()
    expect(await text(socket)).toBe('')
    expect(logged).toEqual([])
  })

  test('from anybody else the header is what a client has sent: no address is taken from it', async () => {
    const { port, logged } = await start()
    for (const sent of [header.one, header.two]) {
      const client = new Dialogue(await from('127.0.0.8', port))
      await client.reply()
      client.send(sent)
      client.send('\r\n')
      expect(await client.reply()).toMatch(/^5\d\d /)
      client.destroy()
    }
    expect(logged.join('')).not.toContain('192.0.2.7')
  })

  test('is limited by the addresses of clients, not by that of the proxy', async () => {
    const { port } = await start({ max_connections_per_address: 1 })
    const greeting = async (sent: Buffer): Promise<string> => {
      const client = new Dialogue(await from(proxy, port))
      client.send(sent)
      return client.reply()
    }
    expect(await greeting(header.one)).toMatch(/^220 /)
    expect(await greeting(header.six)).toMatch(/^220 /)
    expect(await greeting(header.two)).toMatch(/^421 4\.7\.0 /)
  })

  test('a reload lists another proxy for new connections', async () => {
    const { port, receiver, settings } = await start()
    receiver.reload({ ...settings, proxy_protocol: [] })
    const client = new Dialogue(await from(proxy, port))
    expect(await client.reply()).toMatch(/^220 /)
    receiver.reload({ ...settings, proxy_protocol: ['127.0.0.0/8'] })
    const proxied = new Dialogue(await from('127.0.0.8', port))
    proxied.send(header.one)
    expect(await proxied.reply()).toMatch(/^220 /)
  })

  test('connections whose header does not come are closed by a stop, and after five seconds', { timeout: 60_000 }, async () => {
    const { port, receiver, logged } = await start()
    const slow = await from(proxy, port)
    slow.write(header.one.subarray(0, 20))
    expect(await text(slow)).toBe('')
    expect(logged.join('')).toContain('it sent no PROXY protocol header within 5000 ms')
    const silent = await from(proxy, port)
    const closed = text(silent)
    await receiver.stop()
    expect(await closed).toBe('')
  })
})

describe('calls', () => {
  let box: Toybox | undefined
  afterEach(() => box?.server.stop())
  const asked = 'GET /v1/toys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer all\r\nConnection: close\r\n'
  const addresses = (): unknown[] =>
    box!.lines.map((line) => JSON.parse(line)).flatMap(({ msg, address }) => (msg === 'request' ? [address] : []))

  test('through a listed proxy have the address of their client, in one packet with the header or behind it', async () => {
    box = await openToybox({ proxy_protocol: [proxy] })
    for (const [sent, rest] of [
      [Buffer.concat([header.one, Buffer.from(`${asked}\r\n`)]), ''],
      [header.two, `${asked}\r\n`],
      [Buffer.concat([header.six, Buffer.from(asked)]), '\r\n'],
    ] as const) {
      const socket = await from(proxy, box.port)
      socket.write(sent)
      if (rest !== '') setImmediate(() => socket.write(rest))
      expect(await text(socket)).toContain('HTTP/1.1 200 OK')
    }
    expect(addresses()).toEqual(['192.0.2.7', '192.0.2.7', '2001:db8::7'])
  })

  test('believe X-Forwarded-For only of a client that is a trusted proxy itself', async () => {
    box = await openToybox({ proxy_protocol: [proxy], trusted_proxies: [proxy, '2001:db8::7'] })
    for (const sent of [header.one, header.six]) {
      const socket = await from(proxy, box.port)
      socket.write(Buffer.concat([sent, Buffer.from(`${asked}X-Forwarded-For: 203.0.113.5\r\n\r\n`)]))
      expect(await text(socket)).toContain('HTTP/1.1 200 OK')
    }
    expect(addresses()).toEqual(['192.0.2.7', '203.0.113.5'])
  })

  test('under TLS come through, with the header before it', async () => {
    const pair = await certificate()
    box = await openToybox({ proxy_protocol: [proxy], tls: { listen: { host: '127.0.0.1', port: 0 }, certificate: () => pair } })
    const plain = await from(proxy, box.server.addresses.tls!.port)
    plain.write(header.two)
    const secure = connectSecurely({ socket: plain, rejectUnauthorized: false })
    secure.write(`${asked}\r\n`)
    expect(await text(secure)).toContain('HTTP/1.1 200 OK')
    expect(addresses()).toEqual(['192.0.2.7'])
  })

  test('are not answered without the header, and from anybody else with it', async () => {
    box = await openToybox({ proxy_protocol: [proxy] })
    const without = await from(proxy, box.port)
    without.write(`${asked}\r\n`)
    expect(await text(without)).toBe('')
    const stranger = await from('127.0.0.8', box.port)
    stranger.write(Buffer.concat([header.one, Buffer.from(`${asked}\r\n`)]))
    expect(await text(stranger)).toContain('HTTP/1.1 400 Bad Request')
    const other = await from('127.0.0.8', box.port)
    other.write(`${asked}\r\n`)
    expect(await text(other)).toContain('HTTP/1.1 200 OK')
  })

  test('have the rate limit of their client', async () => {
    box = await openToybox({ proxy_protocol: [proxy], public_rate_limit: 1 })
    const ask = async (sent: Buffer): Promise<string> => {
      const socket = await from(proxy, box!.port)
      socket.write(Buffer.concat([sent, Buffer.from('GET /v1/toys HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')]))
      return (await text(socket)).slice(0, 12)
    }
    expect([await ask(header.one), await ask(header.two), await ask(header.six)]).toEqual([
      'HTTP/1.1 401',
      'HTTP/1.1 429',
      'HTTP/1.1 401',
    ])
  })

  test('a large body behind the header arrives whole', async () => {
    box = await openToybox({ proxy_protocol: [proxy] })
    const body = `${' '.repeat(300_000)}{"name":"taken"}`
    const socket = await from(proxy, box.port)
    const fields = asked
      .replace('GET', 'POST')
      .replace('Connection', `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection`)
    socket.write(Buffer.concat([header.two, Buffer.from(`${fields}\r\n${body}`)]))
    expect(await text(socket)).toContain('There is a toy of that name.')
  })

  test('a stop does not wait for a header', async () => {
    box = await openToybox({ proxy_protocol: [proxy] })
    const closed = text(await from(proxy, box.port))
    await box.server.stop()
    expect(await closed).toBe('')
    box = undefined
  })
})
