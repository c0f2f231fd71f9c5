import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { SecureDns } from '../../src/net/secure-dns.ts'

type Change = (answer: Buffer, query: Buffer) => Buffer | null

/**
 * A name server on loopback that answers every question with one TLSA record, after `overUdp` and `overTcp` have changed that; and how long it is
 * waited for, in milliseconds: a second where no answer comes, long where one must.
 */
async function nameServer(overUdp: Change, overTcp = (answer: Buffer) => answer, timeout = 60_000): Promise<SecureDns> {
  const tcp = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', (query: Buffer) => {
      const answer = overTcp(answerTo(query.subarray(2)))
      const length = Buffer.alloc(2)
      length.writeUInt16BE(answer.length)
      // in two pieces, as the network likes it
      socket.write(Buffer.concat([length, answer.subarray(0, 5)]), () => socket.write(answer.subarray(5)))
    })
  })
  tcp.listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  const { port } = tcp.address() as AddressInfo
  const udp = createSocket('udp4')
  udp.on('message', (query, from) => {
    const answer = overUdp(answerTo(query), query)
    if (answer) udp.send(answer, from.port, from.address)
  })
  udp.bind(port, '127.0.0.1')
  await once(udp, 'listening')
  onTestFinished(() => {
    udp.close()
    tcp.close()
  })
  return new SecureDns({ servers: [`127.0.0.1:${port}`], timeout })
}

function answerTo(query: Buffer): Buffer {
  const question = query.subarray(12, query.indexOf(0, 12) + 5)
  const header = Buffer.from(query.subarray(0, 12))
  header.writeUInt16BE(0x81a0, 2)
  header.writeUInt16BE(1, 6)
  header.writeUInt16BE(0, 10)
  const record = Buffer.from([0xc0, 12, 0, 52, 0, 1, 0, 0, 0, 60, 0, 5, 3, 1, 1, 0xca, 0xfe])
  return Buffer.concat([header, question, record])
}

const name = '_25._tcp.mx.far.test'
const record = Buffer.from([3, 1, 1, 0xca, 0xfe])

test('an answer says whether it is vouched for', async () => {
  const secure = await nameServer((answer) => answer)
  expect(await secure.ask(name, 'TLSA')).toEqual({ secure: true, found: [record] })
  expect(await secure.ask(name, 'A')).toEqual({ secure: true, found: [] })
  const plain = await nameServer((answer) => (answer.writeUInt16BE(0x8180, 2), answer))
  expect(await plain.ask(name, 'TLSA')).toEqual({ secure: false, found: [record] })
})

test('an answer that does not fit is asked for over TCP', async () => {
  const short = await nameServer((answer) => (answer.writeUInt16BE(0x8380, 2), answer.subarray(0, -17)))
  expect(await short.ask(name, 'TLSA')).toEqual({ secure: true, found: [record] })
})

test('an answer over TCP that is longer than any in use is not read', async () => {
  const long = await nameServer(
    (answer) => (answer.writeUInt16BE(0x8380, 2), answer.subarray(0, -17)),
    (answer) => Buffer.concat([answer, Buffer.alloc(8192)]),
  )
  await expect(long.ask(name, 'TLSA')).rejects.toThrow('sent a mismatched answer')
})

test.each<[string, Change]>([
  ['another id', (answer) => (answer.writeUInt16BE(answer.readUInt16BE(0) ^ 1, 0), answer)],
  ['another question', (answer) => (answer.write('x', 14), answer)],
  ['no answer but the question', (_answer, query) => query],
  ['cut off in its header', (answer) => answer.subarray(0, 8)],
  ['nothing', () => null],
])('what is %s is no answer', async (_what, change) => {
  const dns = await nameServer(change, undefined, 1000)
  await expect(dns.ask(name, 'TLSA')).rejects.toThrow('did not answer in time')
})

test.each<[string, Change, RegExp]>([
  ['trouble', (answer) => (answer.writeUInt16BE(0x81a2, 2), answer), /error \(2\)/],
  ['a record that is cut off', (answer) => answer.subarray(0, -12), /past end of message/],
  ['a count that is a lie', (answer) => (answer.writeUInt16BE(60_000, 6), answer), /past end of message/],
])('%s is told', async (_what, change, reason) => {
  const dns = await nameServer(change)
  await expect(dns.ask(name, 'TLSA')).rejects.toThrow(reason)
})

test('no such name is an answer', async () => {
  const dns = await nameServer((answer) => {
    answer.writeUInt16BE(0x81a3, 2)
    answer.writeUInt16BE(0, 6)
    return answer
  })
  expect(await dns.ask(name, 'TLSA')).toEqual({ secure: true, found: [] })
})
