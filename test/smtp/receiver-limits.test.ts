import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import type { ReceiverSettings } from '../../src/smtp/receiver.ts'
import { type Running, startReceiver } from '../support/receiver.ts'
import { Dialogue, sendInPieces } from '../support/smtp.ts'

const message = 'Subject: hello\r\n\r\nhi\r\n'

let box: Running
afterEach(() => box.receiver.stop())

async function start(changes: Partial<ReceiverSettings> = {}): Promise<void> {
  box = await startReceiver(changes)
}

/** Waits until no session is left open. */
async function emptied(): Promise<void> {
  for (let turn = 0; turn < 600 && box.receiver.stats.connections > 0; turn++) await wait(10)
  expect(box.receiver.stats.connections).toBe(0)
}

describe('size', () => {
  const header = 'Subject: x\r\n\r\n'

  async function deliverOf(size: number, stuffed: boolean): Promise<string> {
    const client = await Dialogue.hello(box.port)
    const line = stuffed ? '.23456\r\n' : '123456\r\n'
    const body = (header + line.repeat(Math.ceil(size / 8))).slice(0, size - 2) + '\r\n'
    await client.begin()
    client.send(`${stuffed ? body.replaceAll(/^\./gm, '..') : body}.\r\n`)
    const reply = await client.reply()
    client.destroy()
    return reply
  }

  test.each([false, true])('is exact, dots stuffed: %s', async (stuffed) => {
    await start({ size: 10_006 })
    expect(await deliverOf(10_006, stuffed)).toMatch(/^250 /)
    expect(await deliverOf(10_007, stuffed)).toMatch(/^552 5\.3\.4 /)
    expect(box.deliveryTarget.kept.map(({ raw }) => raw.length)).toEqual([10_006])
  })

  test('overrun without end is cut off, with a reply, after little more than the limit', async () => {
    await start({ size: 1_048_576 })
    const client = await Dialogue.hello(box.port)
    await client.begin()
    const before = client.socket.bytesWritten
    const block = Buffer.alloc(1_048_576, `${'x'.repeat(76)}\r\n`)
    let accepted = 0
    for (; accepted < 1024 && !client.closed; accepted++) {
      if (client.socket.write(block)) continue
      await Promise.race([new Promise((resolve) => client.socket.once('drain', resolve)), client.end()])
    }
    await client.end()
    expect(client.transcript).toMatch(/^552 5\.3\.4 /m)
    expect(accepted).toBeLessThan(16)
    expect(client.socket.bytesWritten - before).toBeLessThan(16 * 1_048_576)
    expect(box.deliveryTarget.kept).toEqual([])
    await emptied()
  })

  test('overrun by a little is read to its end, and the session goes on', async () => {
    await start({ size: 10_000 })
    const client = await Dialogue.hello(box.port)
    expect(await client.deliver(`${header}${'x'.repeat(20_000)}\r\n`)).toMatch(/^552 5\.3\.4/)
    expect(await client.deliver(message)).toMatch(/^250/)
    client.destroy()
  })
})

test('a message of nothing but stuffed dots is kept, and others are served meanwhile', async () => {
  await start()
  const client = await Dialogue.hello(box.port)
  await client.begin()
  client.send(`\r\n${'..\r\n'.repeat(100_000)}.\r\n`)
  const other = await Dialogue.hello(box.port)
  expect(await other.deliver(message)).toMatch(/^250 /)
  expect(await client.reply()).toMatch(/^250 /)
  const kept = box.deliveryTarget.kept.map(({ raw }) => raw.toString())
  expect(kept.toSorted()).toEqual([`\r\n${'.\r\n'.repeat(100_000)}`, message])
  client.destroy()
  other.destroy()
})

describe('memory', () => {
  const big = `Subject: big\r\n\r\n${`${'y'.repeat(98)}\r\n`.repeat(950)}`

  /** A client in the middle of a message, all but the end of which has arrived. */
  async function holding(): Promise<Dialogue> {
    const client = await Dialogue.hello(box.port)
    await client.begin()
    const before = box.receiver.stats.octets_held
    client.send(big)
    for (let turn = 0; turn < 600 && box.receiver.stats.octets_held < before + big.length - 100; turn++) await wait(5)
    return client
  }

  test('has room for so many messages, another time for the others, and is given back', async () => {
    await start({ size: 100_000, max_memory: 500_000 })
    const inside: Dialogue[] = []
    for (let count = 0; count < 5; count++) inside.push(await holding())
    const late = await Dialogue.hello(box.port)
    expect(await late.deliver(big)).toMatch(/^452 4\.3\.1 /)
    expect(await late.deliver(message)).toMatch(/^250 /)
    inside[0]?.reset()
    inside[1]?.destroy()
    for (const client of inside.slice(2)) expect(await client.say('.')).toMatch(/^250 /)
    expect(await late.deliver(big)).toMatch(/^250 /)
    for (const client of [...inside, late]) client.destroy()
    await emptied()
    expect(box.receiver.stats).toMatchObject({ octets_held: 0, messages: 5, refused_messages: 1 })
  })

  test('is never too little for two of the largest', async () => {
    await start({ size: 100_000, max_memory: 0 })
    const inside: Dialogue[] = []
    for (let count = 0; count < 2; count++) inside.push(await holding())
    const late = await Dialogue.hello(box.port)
    expect(await late.deliver(big)).toMatch(/^452 4\.3\.1 /)
    for (const client of inside) expect(await client.say('.')).toMatch(/^250 /)
    for (const client of [...inside, late]) client.destroy()
  })

  test('is held until the message is kept, also when the client no longer waits', async () => {
    await start({ data_timeout: 50 })
    const { promise, resolve } = Promise.withResolvers<void>()
    box.deliveryTarget.before = () => promise
    const client = await Dialogue.hello(box.port)
    expect(await client.deliver(message)).toMatch(/^451 /)
    expect(box.receiver.stats.octets_held).toBe(message.length)
    resolve()
    await wait(1)
    expect(box.receiver.stats.octets_held).toBe(0)
    client.destroy()
  })

  test('is given back for messages that are refused', async () => {
    await start({ size: 10_000 })
    const client = await Dialogue.hello(box.port)
    expect(await client.deliver(`${message}${'x'.repeat(20_000)}\r\n`)).toMatch(/^552/)
    expect(await client.deliver(`${'received: x\r\n'.repeat(51)}\r\n`)).toMatch(/^554/)
    expect(await client.deliver('a\nb\r\n')).toMatch(/^550/)
    expect(box.receiver.stats.octets_held).toBe(0)
    client.destroy()
  })
})

describe('recipients', () => {
  test('beyond the hundredth wait for another time, and the message goes to the hundred', async () => {
    await start()
    const client = await Dialogue.hello(box.port)
    await client.say('MAIL FROM:<a@client.test>')
    client.send(Array.from({ length: 300 }, (_, index) => `RCPT TO:<user${index}@box.test>\r\n`).join(''))
    const replies: string[] = []
    for (let count = 0; count < 300; count++) replies.push((await client.reply()).slice(0, 9))
    expect(replies.filter((reply) => reply === '250 2.1.5').length).toBe(100)
    expect(replies.filter((reply) => reply === '452 4.5.3').length).toBe(200)
    await client.say('DATA')
    client.send(`${message}.\r\n`)
    expect(await client.reply()).toMatch(/^250/)
    expect(box.deliveryTarget.kept[0]?.envelope.recipients.length).toBe(100)
    client.destroy()
  })

  test('named twice are one', async () => {
    await start()
    const client = await Dialogue.hello(box.port)
    await client.deliver(message, ['user@box.test', '"user"@box.test', 'user@BOX.test'])
    expect(box.deliveryTarget.kept[0]?.envelope.recipients).toEqual(['user@box.test'])
    client.destroy()
  })
})

describe('patience', () => {
  test.each([
    ['refused recipients', (index: number) => `RCPT TO:<x${index}@box.test>`, 25],
    ['foreign recipients', () => 'RCPT TO:<x@y.test>', 25],
    ['bad syntax', (index: number) => `RCPT TO:bad${index}`, 25],
    ['unknown commands', () => 'ZZZ', 25],
    ['NOOP', () => 'NOOP', 101],
    ['RSET', () => 'RSET', 101],
    ['EHLO', () => 'EHLO again.test', 101],
    ['VRFY', (index: number) => `VRFY u${index}`, 101],
    ['MAIL and RSET', () => 'MAIL FROM:<a@client.test>\r\nRSET', 101],
    ['one recipient over and over', () => 'RCPT TO:<user@box.test>', 101],
    ['recipients beyond the limit', (index: number) => `RCPT TO:<user${index}@box.test>`, 1205],
  ])('ends with 5000 pipelined: %s', async (_, command, most) => {
    await start()
    const client = await Dialogue.hello(box.port)
    await client.say('MAIL FROM:<a@client.test>')
    const before = client.transcript.length
    client.send(Array.from({ length: 5000 }, (_command, index) => `${command(index)}\r\n`).join(''))
    await client.end()
    const replies = client.transcript.slice(before).match(/^\d{3} .*$/gm) ?? []
    expect(replies.at(-1)).toMatch(/^421 4\.[47]\.\d /)
    expect(replies.length).toBeLessThanOrEqual(most)
  })

  test('is new after each message', async () => {
    await start({ max_errors: 3, max_commands: 10 })
    const client = await Dialogue.hello(box.port)
    for (let round = 0; round < 10; round++) {
      await client.say('MAIL FROM:<a@client.test>')
      for (let count = 0; count < 3; count++) expect(await client.say('RCPT TO:<nobody@box.test>')).toMatch(/^550/)
      await client.say('RCPT TO:<user@box.test>')
      await client.say('DATA')
      expect(await client.say('.')).toMatch(/^250/)
    }
    client.destroy()
  })
})

describe('connections', () => {
  test('from one address are capped, those inside go on, and the place is given back, after STARTTLS too', async () => {
    await start({ max_connections_per_address: 5 })
    for (let round = 0; round < 3; round++) {
      const inside: Dialogue[] = []
      for (let count = 0; count < 5; count++) inside.push(await Dialogue.hello(box.port))
      for (let count = 0; count < 5; count++) {
        const refused = await Dialogue.connect(box.port)
        expect(await refused.reply()).toMatch(/^421 4\.7\.0 /)
        await refused.end()
      }
      const other = await Dialogue.connect(box.port, '127.0.0.1', '127.0.0.2')
      expect(await other.reply()).toMatch(/^220/)
      other.destroy()
      await inside[0]?.say('STARTTLS')
      await inside[0]?.upgrade()
      await inside[1]?.say('STARTTLS')
      inside[1]?.reset()
      expect(await inside[2]?.deliver(message)).toMatch(/^250/)
      for (const client of inside) client.destroy()
      await emptied()
    }
    expect(box.receiver.stats.refused_connections).toBe(15)
  })

  test('are capped altogether', async () => {
    await start({ max_connections: 3 })
    const inside = await Promise.all([1, 2, 3].map((last) => Dialogue.connect(box.port, '127.0.0.1', `127.0.0.${last}`)))
    for (const client of inside) expect(await client.reply()).toMatch(/^220/)
    const refused = await Dialogue.connect(box.port, '127.0.0.1', '127.0.0.9')
    expect(await refused.reply()).toMatch(/^421 4\.3\.2 /)
    for (const client of inside) client.destroy()
  })

  test('of who has most give way to others when all places are taken, those in a transaction last', async () => {
    await start({ max_connections: 4, max_connections_per_address: 3 })
    const from = async (address: string): Promise<Dialogue> => {
      const client = await Dialogue.connect(box.port, '127.0.0.1', address)
      expect(await client.reply()).toMatch(/^220/)
      return client
    }
    const other = await from('127.0.0.2')
    const [first, second, third] = [await from('127.0.0.1'), await from('127.0.0.1'), await from('127.0.0.1')]
    for (const command of ['EHLO client.test', 'MAIL FROM:<>', 'RCPT TO:<user@box.test>']) await first.say(command)
    const newcomer = await from('127.0.0.3')
    await second.end()
    expect(second.transcript).toMatch(/^421 4\.3\.2 /m)
    for (const client of [other, third]) expect(await client.say('NOOP')).toMatch(/^250/)
    expect(await first.say('DATA')).toMatch(/^354/)
    // those of the first address are two now, as many as the newcomer's would be
    const refused = await Dialogue.connect(box.port, '127.0.0.1', '127.0.0.3')
    expect(await refused.reply()).toMatch(/^421 4\.3\.2 /)
    for (const client of [first, third, other, newcomer]) client.destroy()
  })
})

describe('time', () => {
  test('runs out for the idle', async () => {
    await start({ idle_timeout: 500 })
    const client = await Dialogue.hello(box.port)
    await client.end()
    expect(client.transcript).toMatch(/^421 4\.4\.2 /m)
  })

  test.each([
    ['before EHLO', 'N', []],
    ['in a command', 'N', ['EHLO client.test']],
    ['in a message', 'N', ['EHLO client.test', 'MAIL FROM:<>', 'RCPT TO:<user@box.test>', 'DATA']],
  ])('runs out for one who trickles %s', async (_, octet, lines) => {
    await start({ session_timeout: 1000, pace: { octets: 1000, within: 1000 } })
    const client = await Dialogue.connect(box.port)
    await client.reply()
    for (const line of lines) await client.say(line)
    for (let count = 0; count < 200 && !client.closed; count++) {
      client.send(octet)
      await wait(20)
    }
    expect(client.closed).toBe(true)
    expect(client.transcript).toMatch(/^421 4\.4\.2 /m)
    expect(box.deliveryTarget.kept).toEqual([])
    await emptied()
  })

  test('runs out for a handshake that does not come, or does not end', async () => {
    await start({ session_timeout: 1000 })
    for (const garbage of ['', '\x16\x03\x01\x02\x00']) {
      const client = await Dialogue.hello(box.port)
      await client.say('STARTTLS')
      client.send(Buffer.from(garbage, 'latin1'))
      await client.end()
      expect(client.closed).toBe(true)
    }
    await emptied()
  })

  test('does not run out for a message that comes steadily, however long it takes', async () => {
    await start({ session_timeout: 1000, pace: { octets: 10, within: 1000 } })
    const client = await Dialogue.connect(box.port)
    for (const line of ['', 'EHLO client.test\r\n', 'MAIL FROM:<>\r\n', 'RCPT TO:<user@box.test>\r\n', 'DATA\r\n']) {
      client.send(line)
      await client.reply()
    }
    for (const began = Date.now(); Date.now() - began < 1500;) {
      client.send('a line\r\n')
      await wait(20)
    }
    expect(await client.say('.')).toMatch(/^250 /)
    client.destroy()
  })

  test('runs out for one who sends much of a message, and then next to nothing', async () => {
    await start({ pace: { octets: 1000, within: 200 } })
    const client = await Dialogue.hello(box.port)
    await client.begin()
    client.send('a line\r\n'.repeat(50_000))
    for (let count = 0; count < 300 && !client.closed; count++) {
      client.send('x')
      await wait(20)
    }
    expect(client.transcript).toMatch(/^421 4\.4\.2 /m)
    await emptied()
    expect(box.receiver.stats.octets_held).toBe(0)
  })

  test('starts anew with each message', async () => {
    await start({ session_timeout: 3000 })
    const client = await Dialogue.hello(box.port)
    for (let round = 0; round < 5; round++) {
      expect(await client.deliver(message)).toMatch(/^250/)
      await wait(700)
    }
    client.destroy()
  })

  test('does not run out for one who waits for us', async () => {
    await start({ session_timeout: 2000, idle_timeout: 1500 })
    box.deliveryTarget.before = () => wait(2500)
    const client = await Dialogue.hello(box.port)
    expect(await client.deliver(message)).toMatch(/^250/)
    client.destroy()
  })

  test('runs out for a mailroom that hangs: try again later, and the session goes on', async () => {
    await start({ data_timeout: 150 })
    box.deliveryTarget.before = () => new Promise(() => undefined)
    const client = await Dialogue.hello(box.port)
    expect(await client.deliver(message)).toMatch(/^451 4\.3\.0 /)
    box.deliveryTarget.checkRecipient = () => new Promise(() => undefined)
    await client.say('MAIL FROM:<>')
    expect(await client.say('RCPT TO:<user@box.test>')).toMatch(/^451 4\.3\.0 /)
    client.destroy()
  })

  test('is given to greet: who talks first is shown out', async () => {
    await start({ greeting_delay: 200 })
    const early = await Dialogue.connect(box.port)
    early.send('EHLO early.test\r\nMAIL FROM:<>\r\n')
    await early.end()
    expect(early.transcript).toMatch(/^421 [^\n]*\r\n$/)
    const patient = await Dialogue.hello(box.port)
    expect(await patient.deliver(message)).toMatch(/^250/)
    patient.destroy()
  })

  test('is not wasted on a browser', async () => {
    await start()
    const client = await Dialogue.connect(box.port)
    await client.reply()
    client.send('POST / HTTP/1.1\r\nHost: box.test\r\n\r\nMAIL FROM:<>\r\n')
    expect(await client.reply()).toMatch(/^421 /)
    await client.end()
  })
})

describe('a client that vanishes', () => {
  test('in the middle of a message leaves nothing behind', async () => {
    await start()
    const octets = Buffer.from(`Subject: x\r\n\r\n${`${'y'.repeat(76)}\r\n`.repeat(130)}.\r\n`)
    for (let at = 0; at < octets.length; at += 1000) {
      for (const leave of [(client: Dialogue) => client.reset(), (client: Dialogue) => client.destroy()]) {
        const client = await Dialogue.hello(box.port)
        await client.begin()
        await sendInPieces(client, [octets.subarray(0, at)])
        leave(client)
      }
    }
    await emptied()
    expect(box.deliveryTarget.kept).toEqual([])
  })

  test('before it hears 250 does not harm the next', async () => {
    await start()
    box.deliveryTarget.before = () => wait(50)
    const gone = await Dialogue.hello(box.port)
    await gone.begin()
    await sendInPieces(gone, [Buffer.from(`${message}.\r\n`)])
    await wait(10)
    gone.reset()
    await emptied()
    const client = await Dialogue.hello(box.port)
    expect(await client.deliver(message)).toMatch(/^250/)
    client.destroy()
  })

  test('three hundred times, in every rude way, does not keep the box from the next message', async () => {
    await start({ max_connections_per_address: 500 })
    for (let count = 0; count < 300; count++) {
      const client = await Dialogue.hello(box.port)
      const way = count % 5
      if (way === 0) client.send('STARTTLS\r\n')
      if (way === 1) await client.say('STARTTLS')
      if (way === 2) await client.begin()
      if (way === 3) client.send('MAIL FROM:<>\r\nRCPT TO:<user@box.test>\r\nDATA\r\nx')
      if (way < 4) await sendInPieces(client, [Buffer.from('garbage\r\n'.repeat(9))])
      client.reset()
    }
    await emptied()
    const client = await Dialogue.hello(box.port)
    expect(await client.deliver(message)).toMatch(/^250/)
    expect(box.deliveryTarget.kept.length).toBe(1)
    client.destroy()
  })
})

describe('closing down', () => {
  test('lets a message in flight end, sends the others away, and takes no more', async () => {
    await start()
    const idle = await Dialogue.hello(box.port)
    const busy = await Dialogue.hello(box.port)
    await busy.begin()
    const stopped = box.receiver.stop()
    expect(await idle.reply()).toMatch(/^421 4\.3\.2 /)
    busy.send(`${message}.\r\n`)
    expect(await busy.reply()).toMatch(/^250 2\.0\.0/)
    expect(await busy.reply()).toMatch(/^421 4\.3\.2/)
    await stopped
    expect(box.deliveryTarget.kept.length).toBe(1)
    await expect(Dialogue.connect(box.port)).rejects.toThrow('ECONNREFUSED')
  })

  test('does not wait for one who never ends', async () => {
    await start()
    const busy = await Dialogue.hello(box.port)
    await busy.begin()
    await box.receiver.stop()
    await busy.end()
    expect(box.deliveryTarget.kept).toEqual([])
  })
})
