import type { Socket } from 'node:net'
import { expect, test, vi } from 'vitest'
import { type Guest, MailSink, type Script } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'

const timeout = { usual: 4000, large: 4000 }

/** Writes the same again and again until the other side has gone. */
function without(end: (guest: Guest) => string | Buffer, every: number) {
  return (guest: Guest): null => {
    const timer = setInterval(() => guest.write(end(guest)), every)
    guest.socket.on('close', () => clearInterval(timer))
    return null
  }
}

const dripping = without(() => '2', 20)
const endless = without(() => '220-and more\r\n'.repeat(1000), 1)
const flooding = without(() => 'x'.repeat(65_536), 1)
const blank = without(() => '\n'.repeat(65_536), 1)
const unasked = without(() => '250 ok\r\n'.repeat(1000), 1)

type Act = (guest: Guest) => string | null

/** What a server does, at the command named. */
const hostile: [what: string, at: RegExp, act: Act, said: RegExp][] = [
  ['an endless banner', /^<greeting>/, endless, /valid SMTP greeting/],
  ['a banner that drips', /^<greeting>/, dripping, /not finished within|valid SMTP greeting/],
  ['no banner at all', /^<greeting>/, () => null, /not finished within/],
  ['a web page', /^<greeting>/, () => 'HTTP/1.1 400 Bad Request\r\n\r\n<html>', /invalid reply|valid SMTP greeting/],
  ['999 for a greeting', /^<greeting>/, () => '999 hello', /invalid reply|valid SMTP greeting/],
  ['a line without end', /^EHLO/, flooding, /valid SMTP greeting/],
  ['empty lines without end', /^EHLO/, blank, /valid SMTP greeting/],
  ['replies without end', /^MAIL/, unasked, /connection was lost/],
  ['a reply of ten megabytes', /^MAIL/, (guest) => (guest.write('250-more\r\n'.repeat(1_000_000)), null), /connection was lost/],
  ['999 for a recipient', /^RCPT/, () => '999 perhaps', /invalid reply/],
  ['words for a reply', /^RCPT/, () => 'well, hello there', /invalid reply/],
  ['two hundred and fifty of nothing', /^<end>/, () => '2 thanks', /invalid reply/],
  ['silence after MAIL', /^MAIL/, () => null, /not finished within/],
  ['a reply to DATA that drips', /^DATA/, dripping, /not finished within|connection was lost/],
  ['silence after the final dot', /^<end>/, () => null, /not finished within/],
  ['a cut after DATA', /^DATA/, (guest) => (guest.socket.resetAndDestroy(), null), /connection was lost/],
  ['a cut after the final dot', /^<end>/, (guest) => (guest.socket.resetAndDestroy(), null), /connection was lost/],
  ['a close before the banner', /^<greeting>/, (guest) => (guest.socket.end(), null), /valid SMTP greeting/],
  ['421 for a greeting', /^<greeting>/, () => '421 4.3.2 Go away', /^Go away/],
  ['421 for EHLO', /^EHLO/, () => '421 4.3.2 Go away', /^Go away/],
  ['421 for MAIL', /^MAIL/, () => '421 4.3.2 Go away', /^Go away/],
  ['421 for RCPT', /^RCPT/, () => '421 4.3.2 Go away', /^Go away/],
  ['421 for DATA', /^DATA/, () => '421 4.3.2 Go away', /^Go away/],
  ['421 after the final dot', /^<end>/, () => '421 4.3.2 Go away', /^Go away/],
]

for (const pipelining of [false, true]) {
  test(`whatever a server does ${pipelining ? 'that takes commands together' : 'step by step'}, the attempt ends and the message is tried later`, async () => {
    const extensions = ['SIZE 10485760', '8BITMIME', ...(pipelining ? ['PIPELINING'] : [])]
    const sink = await MailSink.start({ extensions })
    const { box, send, until } = await sendingBox(sink.port, {}, { testing: { timeout } })
    const before = process.memoryUsage().rss
    const ends = async (index: number, script: (at: RegExp, act: Act) => Promise<string> | string): Promise<void> => {
      const [what, at, act, said] = hostile[index]!
      const address = await script(at, act)
      box.dns.mx(`far${index}.test`, `mx${index}.far.test`).a(`mx${index}.far.test`, address)
      const id = await send(`bob@far${index}.test`)
      const delivery = await until(id, /deferred|bounced|failed|delivered/)
      expect([what, delivery.status, delivery.response]).toEqual([what, 'deferred', expect.stringMatching(said)])
      expect(delivery.next_attempt_at).not.toBeNull()
    }
    const unfinished = [...hostile.keys()].filter((index) => hostile[index]![3].source.includes('not finished'))
    // each has a server of its own, so that their time runs out together
    await Promise.all(
      unfinished.map((index) =>
        ends(index, async (at, act) => {
          const host = `127.0.0.${index + 2}`
          await MailSink.start({ extensions, host, port: sink.port, script: on(at, act) })
          return host
        }),
      ),
    )
    for (const index of hostile.keys()) {
      if (unfinished.includes(index)) continue
      await ends(index, (at, act) => {
        sink.script = on(at, act)
        return '127.0.0.1'
      })
    }
    // these servers run in this process too, and what they write waits in its memory
    expect(process.memoryUsage().rss - before).toBeLessThan(400 * 1024 * 1024)
    sink.script = undefined
    box.dns.mx('good.test', 'mx.good.test').a('mx.good.test', '127.0.0.1')
    await until(await send('bob@good.test'), 'delivered')
    expect(sink.messages.map(({ to }) => to)).toEqual([['bob@good.test']])
  })
}

test('a 250 is a 250, though the server hangs afterwards', async () => {
  const sink = await MailSink.start()
  const { box, send, until } = await sendingBox(sink.port, {}, { testing: { timeout: { usual: 20_000, large: 20_000 } } })
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  sink.script = on(/^(?:RSET|QUIT)/, () => null)
  await until(await send('bob@far.test'), 'delivered')
  expect(sink.messages).toHaveLength(1)
})

test.each([
  ['250 2.0.0 Ok', { status: 'deferred', response: expect.stringContaining('replied before the end of the message') }],
  ['550 5.7.1 No', { status: 'bounced', response: 'No' }],
])('after %s before the end of a message the connection is closed', async (early, became) => {
  const sink = await MailSink.start({ extensions: ['SIZE 33554432'] })
  const { box, send, until } = await sendingBox(sink.port)
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  sink.script = on(/^DATA/, ({ socket }) => {
    socket.removeAllListeners('data').pause()
    socket.write(`354 Go on\r\n${early}\r\n`)
    server = socket
    return null
  })
  let server: Socket | undefined
  const text = `${'x'.repeat(70)}\r\n`.repeat(250_000)
  expect(await until(await send('bob@far.test', { text }), /deferred|delivered|bounced/)).toMatchObject(became)
  // the server reads again, and finds the end
  server!.resume()
  await vi.waitFor(() => expect(server!.destroyed).toBe(true), 30_000)
})

test('a message of lines that are dots arrives as it is', async () => {
  const sink = await MailSink.start({ extensions: ['SIZE 33554432'] })
  const { box, send, until } = await sendingBox(sink.port)
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  const text = '.\r\n'.repeat(200_000)
  await until(await send('bob@far.test', { text }), 'delivered')
  expect(sink.messages[0]!.raw.endsWith(`\r\n\r\n${text}`)).toBe(true)
})

test('a destination that hangs keeps nobody else waiting', async () => {
  const sink = await MailSink.start()
  const { box, send, until } = await sendingBox(sink.port)
  for (const name of ['slow', 'far'])
    box.dns.mx(`${name}.test`, `mx.${name}.test`).a(`mx.${name}.test`, name === 'slow' ? '127.0.0.2' : '127.0.0.1')
  const slow = await MailSink.start({ host: '127.0.0.2', port: sink.port, script: () => null })
  const hanging = await Promise.all(Array.from({ length: 5 }, (_, index) => send(`bob${index}@slow.test`)))
  const others = await Promise.all(Array.from({ length: 10 }, (_, index) => send(`bob${index}@far.test`)))
  for (const id of others) await until(id, 'delivered')
  for (const id of hanging) await until(id, /sending|queued/)
  expect(slow.connections).toBeGreaterThan(0)
})

function on(at: RegExp, act: Act): Script {
  return (line, guest) => (at.test(line) ? act(guest) : undefined)
}
