import { expect, test, vi } from 'vitest'
import { HeldClock } from '../support/held-clock.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox, type SendingBox } from '../support/outgoing.ts'

const minute = 60_000

async function far(
  env = {},
  options: { clock?: HeldClock } = {},
): Promise<SendingBox & { sink: MailSink; tried: (id: string, attempts: number) => ReturnType<SendingBox['until']> }> {
  const sink = await MailSink.start()
  const sending = await sendingBox(sink.port, env, options)
  sending.box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  const tried = (id: string, attempts: number) =>
    vi.waitFor(
      async () => {
        const delivery = await sending.until(id, 'deferred')
        expect(delivery.attempts).toBe(attempts)
        return delivery
      },
      { timeout: 100_000, interval: 10 },
    )
  return { ...sending, sink, tried }
}

/** How a refusal is understood: what the status becomes, and whether the address is written to again. */
const refusals: [at: RegExp, reply: string, status: string, code: [number, string | null], suppressed: boolean][] = [
  [/^RCPT/, '550 5.1.1 No such user', 'bounced', [550, '5.1.1'], true],
  [/^RCPT/, '550 No such user here', 'bounced', [550, null], true],
  [/^RCPT/, '551 5.1.6 Moved away', 'bounced', [551, '5.1.6'], true],
  [/^RCPT/, '553 5.1.3 Bad address', 'bounced', [553, '5.1.3'], true],
  [/^RCPT/, '550 5.2.1 Mailbox disabled', 'bounced', [550, '5.2.1'], true],
  [/^RCPT/, '550-5.1.1 The account does\r\n550-5.1.1 not exist.\r\n550 5.1.1 Good bye', 'bounced', [550, '5.1.1'], true],
  [/^RCPT/, '550 5.7.1 Not from you', 'bounced', [550, '5.7.1'], false],
  [/^RCPT/, '550 5.1.8 Your domain is not there', 'bounced', [550, '5.1.8'], false],
  [/^RCPT/, '550 Blocked, see the block list', 'bounced', [550, null], false],
  [/^RCPT/, '552 5.2.2 Mailbox full', 'bounced', [552, '5.2.2'], false],
  [/^MAIL/, '550 5.1.1 Who are you', 'bounced', [550, '5.1.1'], false],
  [/^<end>/, '554 5.7.1 This is spam', 'bounced', [554, '5.7.1'], false],
  [/^<end>/, '550 5.1.1 Too late, but no', 'bounced', [550, '5.1.1'], true],
  [/^RCPT/, '550 Requested action not taken', 'bounced', [550, null], false],
  [/^RCPT/, '550 5.1.9 Your domain takes no mail', 'bounced', [550, '5.1.9'], false],
  [/^RCPT/, '550 5.0.0 User unknown', 'bounced', [550, '5.0.0'], true],
  [/^RCPT/, '554 Unknown user', 'bounced', [554, null], true],
  [/^RCPT/, '452 4.2.2 Full', 'deferred', [452, '4.2.2'], false],
  [/^DATA/, '451 4.3.0 Trouble', 'deferred', [451, '4.3.0'], false],
  [/^<greeting>/, '554 5.3.2 No service', 'bounced', [554, '5.3.2'], false],
]

test('each refusal is understood, and only addresses where there is nobody are written to no more', async () => {
  const { send, until, events, sink, box } = await far()
  for (const [index, [at, reply, status, [code, enhanced], suppressed]] of refusals.entries()) {
    sink.script = (line) => (at.test(line) ? reply : undefined)
    const to = `bob${index}@far${index}.test`
    box.dns.mx(`far${index}.test`, 'mx.far.test')
    const id = await send(to)
    const delivery = await until(id, /bounced|deferred|failed/)
    expect([reply, delivery.status, delivery.smtp_code, delivery.enhanced_code]).toEqual([reply, status, code, enhanced])
    expect(await events(id)).toEqual([`email.${status}`])
    const { body } = await box.call('GET', '/v1/suppressions?limit=200')
    const found = body.data.filter((one) => one['email'] === to)
    expect([reply, found.length]).toEqual([reply, suppressed ? 1 : 0])
    if (suppressed) expect(found[0]).toMatchObject({ source: 'bounce', email_id: id, reason: delivery.response })
  }
})

test('text of many lines is shown once, without its codes', async () => {
  const { send, until, sink } = await far()
  sink.script = (line) =>
    line.startsWith('RCPT') ? '550-5.1.1 The account does\r\n550-5.1.1 not exist.\r\n550 5.1.1 Good bye' : undefined
  expect((await until(await send('bob@far.test'), 'bounced')).response).toBe('The account does not exist. Good bye')
})

test('a reply has no characters that turn the direction of what stands beside it', async () => {
  const { send, until, sink } = await far()
  sink.script = (line) => (line.startsWith('RCPT') ? '550 5.1.1 No\u202eresu\u2066 such\u2028user' : undefined)
  expect((await until(await send('bob@far.test'), 'bounced')).response).toBe('Noresu such user')
  sink.script = (line) => (line === '<end>' ? '250 2.0.0 Ok\u202e queued' : undefined)
  expect((await until(await send('eve@far.test'), 'delivered')).response).toBe('Ok queued')
})

test('an event has the whole reply about its recipient, and of those about the others the beginning', async () => {
  const { send, until, sink, box, ada, email } = await far()
  const lines = Array.from({ length: 9 }, () => 'x'.repeat(100))
  const reply = lines.join(' ')
  sink.script = (line) =>
    line.startsWith('RCPT')
      ? [...lines.slice(1).map((text) => `550-5.1.1 ${text}`), `550 5.1.1 ${lines[0]}`].join('\r\n')
      : undefined
  const people = ['bob@far.test', 'eve@far.test']
  const id = await send(people)
  for (const one of people) expect((await until(id, 'bounced', one)).response).toBe(reply)
  const { body } = await box.call('GET', `/v1/identities/${ada}/events?type=email.bounced`)
  const bounced = body.data.map(
    (event) => event['data'] as Awaited<ReturnType<typeof email>> & { delivery: { recipient: string; response: string } },
  )
  expect(bounced.map(({ delivery }) => delivery.recipient).toSorted()).toEqual(people)
  for (const { delivery, deliveries } of bounced) {
    expect(delivery.response).toBe(reply)
    for (const { response } of deliveries) expect([null, reply.slice(0, 100)]).toContain(response)
    expect(deliveries.find(({ recipient }) => recipient === delivery.recipient)!.response).toHaveLength(100)
  }
  expect((await email(id)).deliveries.map(({ response }) => response)).toEqual([reply, reply])
})

test('greylisting is tried again within five minutes, other trouble as the schedule says', async () => {
  const clock = new HeldClock()
  const { send, sink, box, inside, tried } = await far({}, { clock })
  const waits: [reply: string, most: number, least: number][] = [
    ['450 4.7.1 Greylisted, come back', 5, 0.5],
    ['451 4.7.1 Try again later', 5, 0.5],
    ['450 4.2.0 Recipient address rejected: Greylisted', 5, 0.5],
    ['451 4.3.0 Server configuration problem', 72, 48],
  ]
  for (const [index, [reply, most, least]] of waits.entries()) {
    box.dns.mx(`far${index}.test`, 'mx.far.test')
    sink.script = (line) => (line.startsWith('RCPT') ? reply : undefined)
    const id = await send(`bob@far${index}.test`)
    // the sixth attempt is an hour after the fifth
    for (let attempt = 1; attempt < 5; attempt++) {
      clock.advance(Date.parse((await tried(id, attempt)).next_attempt_at!) - clock.now())
      inside().queue.wake()
    }
    const wait = Date.parse((await tried(id, 5)).next_attempt_at!) - clock.now()
    expect(wait).toBeLessThanOrEqual(most * minute)
    expect(wait).toBeGreaterThanOrEqual(least * minute)
  }
})

test('the schedule is kept for five days, the sender hears of it twice, and then it has failed', async () => {
  const clock = new HeldClock()
  const { send, sink, inside, tried, until, events, email } = await far({}, { clock })
  sink.script = (line) => (line.startsWith('RCPT') ? '452 4.3.1 No room' : undefined)
  const id = await send('bob@far.test')
  const begun = clock.now()
  const waits: number[] = []
  for (let attempt = 1; attempt < 36; attempt++) {
    const { next_attempt_at } = await tried(id, attempt)
    waits.push(Date.parse(next_attempt_at!) - clock.now())
    clock.advance(waits.at(-1)!)
    inside().queue.wake()
  }
  const planned = [1, 5, 15, 30, 60, 120, ...Array.from({ length: 29 }, () => 240)]
  expect(waits).toHaveLength(planned.length)
  for (const [index, wait] of waits.entries()) {
    expect(wait).toBeGreaterThanOrEqual(0.8 * planned[index]! * minute)
    expect(wait).toBeLessThanOrEqual(1.2 * planned[index]! * minute)
  }
  const failed = await until(id, 'failed')
  expect(failed).toMatchObject({
    attempts: 36,
    smtp_code: 452,
    enhanced_code: '4.3.1',
    response: 'No room',
    next_attempt_at: null,
  })
  expect(clock.now() - begun).toBeGreaterThan(0.8 * 119 * 60 * minute)
  expect(await events(id)).toEqual(['email.deferred', 'email.deferred', 'email.failed'])
  const whole = await email(id)
  expect(whole.status).toBe('failed')
  expect(whole.deliveries[0]!.history).toHaveLength(36)
})

test('a server that never stops greylisting is tried for five days all the same', async () => {
  const clock = new HeldClock()
  const { send, sink, inside, tried, until } = await far({}, { clock })
  sink.script = (line) => (line.startsWith('RCPT') ? '450 4.2.0 Greylisted' : undefined)
  const begun = clock.now()
  const id = await send('bob@far.test')
  const waits: number[] = []
  for (let attempt = 1; clock.now() - begun < 4 * 86_400_000; attempt++) {
    const { next_attempt_at } = await tried(id, attempt)
    waits.push(Date.parse(next_attempt_at!) - clock.now())
    clock.advance(waits.at(-1)!)
    inside().queue.wake()
  }
  // soon at first, then no more often than others
  expect(waits.slice(0, 6).every((wait) => wait <= 5 * minute)).toBe(true)
  expect(waits.length).toBeLessThan(45)
  sink.script = undefined
  clock.advance(6 * 60 * minute)
  inside().queue.wake()
  await until(id, 'delivered')
})

test('every attempt sends the same octets', async () => {
  const clock = new HeldClock()
  const { send, sink, inside, tried, until } = await far({}, { clock })
  const ends: string[] = []
  sink.script = (line) => (line === '<end>' && ends.push('') < 3 ? '451 4.3.0 Not yet' : undefined)
  const raws: string[] = []
  const id = await send('bob@far.test')
  for (let attempt = 1; attempt < 3; attempt++) {
    clock.advance(Date.parse((await tried(id, attempt)).next_attempt_at!) - clock.now())
    inside().queue.wake()
  }
  await until(id, 'delivered')
  raws.push(...sink.rejected, ...sink.messages.map(({ raw }) => raw))
  expect(raws).toHaveLength(3)
  expect(new Set(raws).size).toBe(1)
})
