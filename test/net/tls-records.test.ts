import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { connect as connectSecurely, createSecureContext, TLSSocket } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import type { Pair } from '../../src/certificates/pair.ts'
import { certificate } from '../../src/certificates/self-signed.ts'
import { limitRecords } from '../../src/net/tls-records.ts'
import { folder } from '../support/folder.ts'
import { keyUpdates } from '../support/key-updates.ts'

let pair: Pair | undefined

/** A client's connection to a TLS server that reads in turns, and what the server does with it. */
async function connected(serve: (secured: TLSSocket) => void): Promise<{ client: Socket; failed: Promise<string> }> {
  const own = (pair ??= await certificate(folder(), 'box.test'))
  const { promise: failed, resolve } = Promise.withResolvers<string>()
  const server = createServer((socket) => {
    const { stream, complete } = limitRecords(socket)
    const secured = new TLSSocket(stream, { isServer: true, secureContext: createSecureContext(own) })
    secured.on('error', () => undefined)
    stream.on('error', (error) => resolve(error.message))
    secured.once('secure', () => {
      complete(secured)
      serve(secured)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.on('error', () => undefined)
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  return { client, failed }
}

test('megabytes of text come whole and in order, however slowly they are read', async () => {
  const text = randomBytes(5_000_000)
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  const { client } = await connected((secured) => {
    // nothing is read at first: what the client sends must wait
    setTimeout(() => resolve(buffer(secured)), 200)
  })
  connectSecurely({ socket: client, rejectUnauthorized: false }).end(text)
  expect((await promise).equals(text)).toBe(true)
})

test('text comes back to a client that has ended its side', async () => {
  const { client } = await connected((secured) => secured.pipe(secured))
  const secure = connectSecurely({ socket: client, rejectUnauthorized: false })
  secure.end('there and back')
  expect((await buffer(secure)).toString()).toBe('there and back')
})

test('text in the smallest records is read', async () => {
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  const { client } = await connected((secured) => resolve(buffer(secured)))
  const secure = connectSecurely({ socket: client.setNoDelay(true), rejectUnauthorized: false })
  for (const octet of 'a few words') secure.write(octet)
  secure.end()
  expect((await promise).toString()).toBe('a few words')
})

test.each([false, true])(
  'a client that sends new keys and no text is disconnected, also when they must be answered (%s)',
  async (answered) => {
    const { client, failed } = await connected((secured) => secured.resume())
    client.write(await keyUpdates(client, 6000, answered))
    expect(await failed).toBe('it sends TLS records without text')
  },
)

test('a client that sends a hundred new keys is answered', async () => {
  const { client } = await connected((secured) => secured.resume())
  const records = await keyUpdates(client, 100, true)
  const before = client.bytesRead
  client.write(records)
  await expect.poll(() => client.bytesRead).toBeGreaterThan(before + 2000)
  expect(client.destroyed).toBe(false)
})

test('a handshake of more than 16 KiB is refused', async () => {
  const { client, failed } = await connected(() => undefined)
  // a ClientHello that announces 100,000 bytes, in records of a thousand
  const piece = Buffer.concat([Buffer.from([22, 3, 1, 3, 232]), Buffer.alloc(1000)])
  const first = Buffer.from(piece)
  first.set([1, 1, 134, 160], 5)
  client.write(Buffer.concat([first, ...Array.from({ length: 40 }, () => piece)]))
  expect(await failed).toBe('its TLS handshake has more than 16384 bytes')
})
