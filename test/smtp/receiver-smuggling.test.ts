import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { longestLine } from '../../src/smtp/data.ts'
import { type Running, startReceiver } from '../support/receiver.ts'
import { Dialogue, sendInPieces } from '../support/smtp.ts'
import { smuggled, smugglers } from '../support/smuggling.ts'

const hidden = smuggled('evil@client.test', 'user@box.test', 'Subject: smuggled')

let box: Running
beforeEach(async () => {
  box = await startReceiver()
})
afterEach(() => box.receiver.stop())

interface Outcome {
  refused: boolean
  /** Replies that say a message was taken, or that one may begin. */
  welcomed: number
  kept: string[]
}

/** Sends a message with the sequence and a second one hidden behind it. */
async function smuggle(sequence: string, cut: (octets: Buffer) => Buffer[]): Promise<Outcome> {
  const client = await Dialogue.hello(box.port)
  await client.begin()
  const before = client.transcript.length
  await sendInPieces(client, cut(Buffer.from(`Subject: a\r\n\r\nbody${sequence}${hidden}QUIT\r\n`)))
  await client.end()
  const said = client.transcript.slice(before)
  const kept = box.deliveryTarget.kept.splice(0).map(({ raw }) => raw.toString())
  return { refused: said.startsWith('550 5.6.0 '), welcomed: said.match(/^(?:250|354) /gm)?.length ?? 0, kept }
}

describe.each(smugglers.map((sequence) => [JSON.stringify(sequence), sequence] as const))('after %s', (_, sequence) => {
  const text = `Subject: a\r\n\r\nbody\r\n.\r\n${hidden.slice(0, -3)}`
  const expected: Outcome =
    sequence === '\r\n..\r\n' ? { refused: false, welcomed: 1, kept: [text] } : { refused: true, welcomed: 0, kept: [] }

  test('no second message, in one packet', async () => {
    expect(await smuggle(sequence, (octets) => [octets])).toEqual(expected)
  })

  test('no second message, one octet a packet', async () => {
    expect(await smuggle(sequence, (octets) => Array.from(octets, (octet) => Buffer.from([octet])))).toEqual(expected)
  })

  test('no second message, split at every place', async () => {
    const length = `Subject: a\r\n\r\nbody${sequence}`.length
    for (let at = 1; at <= length + 4; at++) {
      expect(await smuggle(sequence, (octets) => [octets.subarray(0, at), octets.subarray(at)])).toEqual(expected)
    }
  })
})

test.each(['\n', '\r', '\0', '\n\r', '\r\r\n'])(
  'a message with %j is refused wherever it is, and nothing behind it is read',
  async (octets) => {
    for (const place of [
      `${octets}a: b\r\n\r\nx\r\n`,
      `a: b${octets}c: d\r\n\r\nx\r\n`,
      `a: b\r\n\r\nx${octets}\r\n`,
      `a: b\r\n\r\n${octets}x\r\n`,
    ]) {
      const client = await Dialogue.hello(box.port)
      expect(await client.deliver(place)).toMatch(/^550 5\.6\.0 /)
      await client.end()
    }
    expect(box.deliveryTarget.kept).toEqual([])
  },
)

test('what is pipelined behind a well formed end is a session like any other', async () => {
  const client = await Dialogue.hello(box.port)
  await client.begin()
  client.send(`Subject: a\r\n\r\nbody\r\n.\r\n${hidden}QUIT\r\n`)
  await client.end()
  expect(box.deliveryTarget.kept.map(({ envelope }) => envelope.mail_from)).toEqual(['sender@client.test', 'evil@client.test'])
})

test('a line loses its first dot, whatever follows, and a packet of dots is one piece for whoever reads the message', async () => {
  const writes = vi.spyOn(PassThrough.prototype, 'write')
  onTestFinished(() => writes.mockRestore())
  for (const secure of [false, true]) {
    const client = await Dialogue.hello(box.port)
    if (secure) {
      await client.say('STARTTLS')
      await client.upgrade()
      await client.say('EHLO client.test')
    }
    await client.begin()
    client.send(`.foo\r\n.\t\r\n${'..\r\n'.repeat(1000)}.\r\n`)
    expect(await client.reply()).toMatch(/^250 /)
    expect(box.deliveryTarget.kept.at(-1)?.raw.toString()).toBe(`foo\r\n\t\r\n${'.\r\n'.repeat(1000)}`)
    client.destroy()
  }
  expect(box.deliveryTarget.kept.length).toBe(2)
  expect(writes.mock.calls.length).toBeLessThan(20)
})

describe('a line', () => {
  test('of the longest length is kept, of one more refused', async () => {
    for (const [length, reply] of [
      [longestLine, /^250 /],
      [longestLine + 1, /^554 5\.6\.0 /],
    ] as const) {
      const client = await Dialogue.hello(box.port)
      expect(await client.deliver(`a: b\r\n\r\nshort\r\n${'x'.repeat(length)}\r\nshort\r\n`)).toMatch(reply)
      expect(await client.say('NOOP')).toMatch(/^250/)
      client.destroy()
    }
    expect(box.deliveryTarget.kept.length).toBe(1)
  })

  test('is measured across packets', async () => {
    const client = await Dialogue.hello(box.port)
    await client.begin()
    await sendInPieces(client, [Buffer.from('x'.repeat(40_000)), Buffer.from('x'.repeat(40_000)), Buffer.from('\r\n.\r\n')])
    expect(await client.reply()).toMatch(/^554 5\.6\.0/)
    client.destroy()
  })

  test('of command is at most 2048 octets', async () => {
    const client = await Dialogue.hello(box.port)
    expect(await client.say(`NOOP ${'x'.repeat(2000)}`)).toMatch(/^250/)
    expect(await client.say(`NOOP ${'x'.repeat(2049)}`)).toMatch(/^421 /)
    await client.end()
  })

  test('of command that never ends does not fill the memory', async () => {
    const client = await Dialogue.hello(box.port)
    for (let count = 0; count < 200 && !client.closed; count++) {
      client.send(Buffer.alloc(65_536, 'A'))
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await client.end()
    expect(client.transcript).toMatch(/^421 /m)
  })
})

describe('a header', () => {
  test('over 256 KiB is refused', async () => {
    const client = await Dialogue.hello(box.port)
    const field = `X: ${'y'.repeat(1000)}\r\n`
    expect(await client.deliver(`${field.repeat(200)}\r\nbody\r\n`)).toMatch(/^250/)
    expect(await client.deliver(`${field.repeat(300)}\r\nbody\r\n`)).toMatch(/^552 5\.3\.4/)
    expect(await client.deliver(`a: b\r\n\r\n${field.repeat(300)}`)).toMatch(/^250/)
    client.destroy()
  })

  test('with more than fifty Received fields is a loop', async () => {
    const client = await Dialogue.hello(box.port)
    const hop = 'received: from a\r\n\tby b; now\r\n'
    expect(await client.deliver(`${hop.repeat(50)}\r\n${hop.repeat(50)}`)).toMatch(/^250/)
    expect(await client.deliver(`X: y\r\n${hop.repeat(51)}\r\nbody\r\n`)).toMatch(/^554 5\.4\.6/)
    expect(box.deliveryTarget.kept.length).toBe(1)
    client.destroy()
  })

  test.each(['user@box.test', '<User@BOX.test>', '\r\n\t user@box.test '])(
    'that says it was delivered to the recipient, as %j, is a loop',
    async (address) => {
      const client = await Dialogue.hello(box.port)
      const again = `X: y\r\ndelivered-TO: ${address}\r\nSubject: x\r\n\r\nbody\r\n`
      expect(await client.deliver(again)).toMatch(/^554 5\.4\.6 /)
      expect(await client.deliver(again, ['user2@box.test', 'user@box.test'])).toMatch(/^554 5\.4\.6 /)
      expect(await client.deliver(again, ['user2@box.test'])).toMatch(/^250 /)
      expect(await client.deliver('a: b\r\n\r\nDelivered-To: user@box.test\r\n')).toMatch(/^250 /)
      client.destroy()
    },
  )
})
