import { afterEach, expect, test } from 'vitest'
import { type Running, startReceiver } from '../support/receiver.ts'
import { Dialogue } from '../support/smtp.ts'

const line = `${'y'.repeat(98)}\r\n`

let box: Running
afterEach(() => box.receiver.stop())

/** A box with memory for two of the largest messages. */
async function start(connections = 20): Promise<void> {
  box = await startReceiver({ size: 1_000_000, max_memory: 0, max_connections_per_address: connections })
}

/** Waits until these octets of messages are held. */
async function held(octets: number): Promise<void> {
  await expect.poll(() => box.receiver.stats.octets_held, { timeout: 100_000, interval: 5 }).toBe(octets)
}

function messageOf(octets: number): string {
  return `Subject: x\r\n\r\n`
    .padEnd(100, `a\r\n`)
    .slice(0, 98)
    .concat('\r\n', line.repeat(octets / 100 - 1))
}

async function from(address: string): Promise<Dialogue> {
  const client = await Dialogue.connect(box.port, '127.0.0.1', address)
  await client.reply()
  await client.say('EHLO client.test')
  return client
}

/** A client that has sent a message of so many octets, but not its end. */
async function holding(address: string, octets: number): Promise<Dialogue> {
  const client = await from(address)
  await client.begin()
  const { octets_held } = box.receiver.stats
  client.send(messageOf(octets))
  await held(octets_held + octets)
  return client
}

/** Delivers a message, and returns the reply. */
async function deliver(address: string, octets: number): Promise<string> {
  const client = await from(address)
  const reply = await client.deliver(messageOf(octets))
  client.destroy()
  return reply
}

test('a small message has room when large ones hold all of the memory, from the same address too', async () => {
  await start()
  const clients = [await holding('127.0.0.2', 1_000_000), await holding('127.0.0.2', 1_000_000)]
  for (const address of ['127.0.0.2', '127.0.0.3']) {
    expect(await deliver(address, 60_000)).toMatch(/^250 /)
    expect(await deliver(address, 5000)).toMatch(/^250 /)
  }
  expect(await deliver('127.0.0.2', 70_000)).toMatch(/^452 4\.3\.1 /)
  for (const client of clients) expect(await client.say('.')).toMatch(/^250 /)
  await held(0)
  for (const client of clients) client.destroy()
})

test('small messages beyond one for each connection share the memory with large ones', async () => {
  await start(2)
  box.deliveryTarget.before = () => new Promise(() => undefined)
  // their clients are gone, and they are still being stored
  for (const count of [1, 2]) {
    const gone = await from('127.0.0.2')
    await gone.begin()
    gone.send(`${messageOf(5000)}.\r\n`)
    await held(count * 5000)
    gone.destroy()
    await expect.poll(() => box.receiver.stats.connections, { timeout: 100_000 }).toBe(0)
  }
  const clients = [await holding('127.0.0.3', 1_000_000), await holding('127.0.0.3', 990_000)]
  box.deliveryTarget.before = async () => undefined
  expect(await deliver('127.0.0.2', 5000)).toMatch(/^250 /)
  // that of who holds most gives way once both do not fit
  expect(await deliver('127.0.0.2', 20_000)).toMatch(/^250 /)
  expect(await clients[0]!.say('.')).toMatch(/^452 4\.3\.1 /)
  expect(await clients[1]!.say('.')).toMatch(/^250 /)
  for (const client of clients) client.destroy()
})

test('who holds most gives up its largest unfinished message for one who holds less, and its session goes on', async () => {
  await start()
  const largest = await holding('127.0.0.2', 980_000)
  const other = await holding('127.0.0.2', 900_000)
  const third = await holding('127.0.0.3', 100_000)
  expect(await deliver('127.0.0.4', 500_000)).toMatch(/^250 /)
  await held(1_000_000)
  largest.send(line.repeat(100))
  expect(await largest.say('.')).toMatch(/^452 4\.3\.1 /)
  for (const client of [other, third]) expect(await client.say('.')).toMatch(/^250 /)
  expect(await largest.deliver(messageOf(1_000_000))).toMatch(/^250 /)
  await held(0)
  expect(box.deliveryTarget.kept.map(({ raw }) => raw.length)).toEqual([500_000, 900_000, 100_000, 1_000_000])
  for (const client of [largest, other, third]) client.destroy()
})

test('nobody gives up a message for one who would hold as much', async () => {
  await start()
  const clients = [await holding('127.0.0.2', 600_000), await holding('127.0.0.3', 600_000)]
  expect(await deliver('127.0.0.4', 900_000)).toMatch(/^452 4\.3\.1 /)
  for (const client of clients) expect(await client.say('.')).toMatch(/^250 /)
  for (const client of clients) client.destroy()
})

test('a message that was received whole is not given up', async () => {
  await start()
  const { promise, resolve } = Promise.withResolvers<void>()
  let storing = 0
  box.deliveryTarget.before = () => {
    storing += 1
    return promise
  }
  const clients = [await holding('127.0.0.2', 1_000_000), await holding('127.0.0.3', 800_000)]
  for (const client of clients) client.send('.\r\n')
  await expect.poll(() => storing, { timeout: 100_000 }).toBe(2)
  expect(await deliver('127.0.0.4', 300_000)).toMatch(/^452 4\.3\.1 /)
  resolve()
  for (const client of clients) expect(await client.reply()).toMatch(/^250 /)
  for (const client of clients) client.destroy()
})
