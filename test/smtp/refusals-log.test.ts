import { expect, onTestFinished, test, vi } from 'vitest'
import type { ReceiverSettings } from '../../src/smtp/receiver.ts'
import { setLevels } from '../../src/core/log.ts'
import { type Running, startReceiver } from '../support/receiver.ts'
import { Dialogue } from '../support/smtp.ts'

interface Line extends Record<string, unknown> {
  level: string
  msg: string
}

async function receiver(changes: Partial<ReceiverSettings> = {}): Promise<Running> {
  const box = await startReceiver(changes)
  onTestFinished(() => box.receiver.stop())
  return box
}

/** What an administrator sees at the level info. */
function lines(box: Running): Line[] {
  return box.logged.map((line) => JSON.parse(line) as Line).filter(({ level }) => level !== 'debug')
}

test('a MAIL that is too large, a bad sender, an unknown recipient and a relay are each a line with address, command and the exact reply', async () => {
  const box = await receiver({ size: 10_000 })
  const client = await Dialogue.hello(box.port)
  const replies = [
    await client.say('MAIL FROM:<big@far.test> SIZE=999999'),
    await client.say('MAIL FROM:<no address>'),
    await client.say('MAIL FROM:<ada@far.test> WHAT=ever'),
  ]
  await client.say('MAIL FROM:<ada@far.test>')
  replies.push(await client.say('RCPT TO:<nobody@box.test>'), await client.say('RCPT TO:<bob@elsewhere.test>'))
  client.destroy()
  expect(replies.map((reply) => reply.slice(0, 9))).toEqual(['552 5.3.4', '501 5.1.7', '555 5.5.4', '550 5.1.1', '550 5.7.1'])
  const logged = lines(box)
  expect(logged).toMatchObject([
    { msg: 'command refused', command: 'MAIL FROM:<big@far.test> SIZE=999999', from: 'big@far.test', code: 552 },
    { msg: 'command refused', command: 'MAIL FROM:<no address>', code: 501 },
    { msg: 'sender refused', from: 'ada@far.test', code: 555, enhanced_code: '5.5.4' },
    { msg: 'recipient refused', from: 'ada@far.test', to: 'nobody@box.test', code: 550, enhanced_code: '5.1.1' },
    { msg: 'recipient refused', from: 'ada@far.test', to: 'bob@elsewhere.test', code: 550, enhanced_code: '5.7.1' },
  ])
  expect(logged.map(({ reply }) => reply)).toEqual(replies)
  for (const line of logged) expect(line).toMatchObject({ level: 'info', ip: '127.0.0.1', helo: 'client.test' })
})

test('connections beyond the limit, early talkers, too many errors and silence are each a line', async () => {
  const box = await receiver({ max_connections_per_address: 1, max_errors: 1 })
  const first = await Dialogue.hello(box.port)
  const second = await Dialogue.connect(box.port)
  await second.end()
  const heard = [second.transcript.trimEnd()]
  await first.say('FOO hunter2')
  heard.push(await first.say('BAR'))
  await first.end()
  box.receiver.reload({ ...box.settings, idle_timeout: 300 })
  const silent = await Dialogue.connect(box.port, '127.0.0.1', '127.0.0.2')
  await silent.reply()
  heard.push(await silent.reply())
  await silent.end()
  box.receiver.reload({ ...box.settings, greeting_delay: 5000 })
  const early = await Dialogue.connect(box.port, '127.0.0.1', '127.0.0.3')
  early.send('EHLO early.test\r\n')
  heard.push(await early.reply())
  const logged = lines(box)
  expect(heard.map((reply) => reply.slice(0, 3))).toEqual(['421', '421', '421', '421'])
  expect(logged).toMatchObject([
    { msg: 'connection refused', level: 'warn', code: 421, enhanced_code: '4.7.0' },
    { msg: 'command refused', code: 500, enhanced_code: '5.5.2' },
    { msg: 'session closed', code: 421, enhanced_code: '4.7.0' },
    { msg: 'session closed', code: 421, enhanced_code: '4.4.2' },
    { msg: 'session closed', code: 421 },
  ])
  expect(logged.filter(({ code }) => code === 421).map(({ reply }) => reply)).toEqual(heard)
  expect(logged.map(({ ip }) => ip)).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.1', '127.0.0.2', '127.0.0.3'])
  // what is no command may be a password
  expect(box.logged.join('')).not.toContain('hunter2')
})

test('a client that goes away in the middle of a message is a line, and one that is too slow a line of its own', async () => {
  const box = await receiver({ idle_timeout: 1000 })
  for (const leaves of [true, false]) {
    const client = await Dialogue.hello(box.port)
    await client.say('MAIL FROM:<eve@far.test>')
    await client.say('RCPT TO:<user@box.test>')
    await client.say('DATA')
    client.send('Subject: half\r\n\r\nhalf')
    if (leaves) client.destroy()
    await vi.waitFor(() => expect(lines(box)).toHaveLength(leaves ? 1 : 2), 100_000)
    await client.end()
  }
  expect(lines(box)).toMatchObject([
    { msg: 'connection lost during DATA', ip: '127.0.0.1', from: 'eve@far.test', to: ['user@box.test'], result: 'lost' },
    { msg: 'session closed', ip: '127.0.0.1', code: 421 },
  ])
})

test('a TLS handshake that fails is a line that says why', async () => {
  const box = await receiver()
  const client = await Dialogue.hello(box.port)
  await client.say('STARTTLS')
  client.send('this is no handshake\r\n')
  await client.end()
  expect(lines(box)).toMatchObject([{ msg: 'TLS handshake failed', ip: '127.0.0.1', helo: 'client.test' }])
  expect(lines(box)[0]!['reason']).toMatch(/wrong version number|SSL|TLS/)
})

test('a stranger cannot fill the log: what is alike is counted, and lines are bounded and harmless to look at', async () => {
  const box = await startReceiver({ max_errors: 1000, max_commands: 1000 })
  const client = await Dialogue.hello(box.port)
  await client.say('MAIL FROM:<ada@far.test> SMTPUTF8')
  for (let turn = 0; turn < 100; turn++) await client.say(`RCPT TO:<"\u202e${'y'.repeat(500)}${turn}"@box.test>`)
  await client.say('RCPT TO:<x\u009b31m@box.test>')
  await client.say(`VRFY ${'z'.repeat(1500)}`)
  await client.say(`MAIL FROM:<${'z'.repeat(1500)}@far.test> SIZE=x`)
  client.destroy()
  await box.receiver.stop()
  const logged = lines(box)
  const [more] = logged.filter(({ msg }) => msg === 'further rejections of this kind')
  const refused = logged.filter(({ msg }) => msg === 'recipient refused')
  expect(refused).toHaveLength(30)
  expect(more).toMatchObject({ ip: '127.0.0.1', more: 70 })
  for (const line of box.logged) expect(line.length).toBeLessThan(4096)
  // eslint-disable-next-line no-control-regex -- the signs that terminals obey
  for (const line of box.logged) expect(line.trimEnd()).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
})

test('at debug, the whole dialogue is logged, without the message and what belongs to AUTH; at info, nothing of it', async () => {
  const box = await receiver()
  const dialogue = async (): Promise<string[]> => {
    box.logged.length = 0
    const client = await Dialogue.hello(box.port)
    await client.say('AUTH PLAIN AGFkYQB0dWxpcA==')
    await client.say('dHVsaXA=')
    await client.deliver('Subject: tulips\r\n\r\nonions\r\n')
    await client.say('QUIT')
    await client.end()
    return box.logged
      .map((line) => JSON.parse(line) as Line)
      .flatMap(({ msg, command, reply }) =>
        msg === 'SMTP command' ? `C: ${command as string}` : msg === 'SMTP reply' ? `S: ${reply as string}` : [],
      )
  }
  const said = await dialogue()
  expect(said).toEqual(
    expect.arrayContaining([
      'S: 220 box.test ESMTP',
      'C: EHLO client.test',
      'C: AUTH',
      'C: (8 bytes that are not a command)',
      'C: MAIL FROM:<sender@client.test>',
      'C: RCPT TO:<user@box.test>',
      'C: DATA',
      'S: 250 2.0.0 Ok: queued as queue-1',
      'C: QUIT',
    ]),
  )
  expect(box.logged.join('')).not.toMatch(/tulip|onions|dHVsaXA|AGFkYQ/)
  setLevels(box.log, { level: 'debug', levels: { smtp: 'info' } })
  box.receiver.reload(box.settings)
  expect(await dialogue()).toEqual([])
})
