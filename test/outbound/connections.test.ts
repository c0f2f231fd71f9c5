import { expect, test, vi } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'

async function far(extensions?: string[]) {
  const sink = await MailSink.start(extensions ? { extensions } : {})
  const sending = await sendingBox(sink.port)
  sending.box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  return { sink, ...sending }
}

test('one connection serves message after message', async () => {
  const { sink, send, until, box } = await far()
  for (let count = 0; count < 10; count++) await until(await send(`bob${count}@far.test`), 'delivered')
  expect(sink.messages.map(({ to }) => to[0])).toEqual(Array.from({ length: 10 }, (_, count) => `bob${count}@far.test`))
  expect(sink.connections).toBe(1)
  expect(sink.commands.filter((line) => line === 'RSET')).toHaveLength(9)
  const metrics = await box.app.metrics.text()
  expect(metrics).toContain('pillarbox_mail_connections{state="idle"} 1')
  expect(metrics).toContain('pillarbox_mail_connections{state="busy"} 0')
  expect(metrics).toContain('pillarbox_mail_deliveries_total{result="delivered",tls="none"} 10')
})

test('one that was refused a recipient serves on, and so does a new one when the server has gone', async () => {
  const { sink, send, until } = await far()
  sink.script = (line) => (line.startsWith('RCPT TO:<no') ? '550 5.1.1 No' : undefined)
  await until(await send('bob@far.test'), 'delivered')
  await until(await send('nobody@far.test'), 'bounced')
  await until(await send('bob@far.test'), 'delivered')
  expect(sink.connections).toBe(1)
  sink.script = (line, { socket }) => (line === 'RSET' ? (socket.destroy(), null) : undefined)
  await until(await send('bob@far.test'), 'delivered')
  expect(sink.connections).toBe(2)
  expect(sink.messages).toHaveLength(3)
})

test('421 ends the connection and those that were idle', async () => {
  const { sink, send, until } = await far()
  // the first opens the lane, then two go side by side
  await until(await send('bob@far.test'), 'delivered')
  const waiting: (() => void)[] = []
  sink.script = (line, { write }) => {
    if (line !== '<end>') return undefined
    waiting.push(() => write('250 2.0.0 Ok\r\n'))
    return null
  }
  const side = await Promise.all([send('one@far.test'), send('two@far.test')])
  await vi.waitFor(() => expect(waiting).toHaveLength(2), 100_000)
  for (const go of waiting) go()
  for (const id of side) await until(id, 'delivered')
  expect(sink.open).toBe(2)
  sink.script = (line) => (line.startsWith('MAIL') ? '421 4.7.0 Too much' : undefined)
  expect(await until(await send('bob@far.test'), 'deferred')).toMatchObject({ smtp_code: 421, enhanced_code: '4.7.0' })
  await vi.waitFor(() => expect(sink.open).toBe(0), 100_000)
})

test('a box that stops says no more to anybody, and the message that was on its way goes out after the start', async () => {
  const { sink, send, until, box } = await far()
  sink.script = (line) => (line === '<end>' ? null : undefined)
  const id = await send('bob@far.test')
  await vi.waitFor(() => expect(sink.rejected).toHaveLength(1), 100_000)
  await box.restart()
  sink.script = undefined
  const delivery = await until(id, 'delivered')
  expect(delivery.attempts).toBe(2)
  expect(sink.messages[0]!.raw).toBe(sink.rejected[0])
})

test('settings that were read again hold for the next attempt', async () => {
  const { sink, send, until, box } = await far()
  await until(await send('bob@far.test'), 'delivered')
  await box.app.reload(await loadConfig({ env: { ...box.env, PILLARBOX_OUTBOUND__MODE: 'none' }, cwd: box.directory }))
  expect(await until(await send('bob@far.test'), 'deferred')).toMatchObject({
    response: expect.stringContaining('outbound.mode is none'),
  })
  expect(sink.messages).toHaveLength(1)
})

test('what a server cannot take is not sent to it', async () => {
  const { sink, send, until } = await far(['SIZE 400'])
  expect(await until(await send('bob@far.test', { text: 'x'.repeat(1000) }), 'bounced')).toMatchObject({ enhanced_code: '5.3.4' })
  expect(await until(await send('jürgen@far.test'), 'bounced')).toMatchObject({ enhanced_code: '5.6.7' })
  expect(sink.messages).toEqual([])
  expect(sink.commands.filter((line) => /^(?:MAIL|DATA)/.test(line))).toEqual([])
})

test('addresses beyond ASCII are said to be that, in the envelope and in the header', async () => {
  const { sink, send, until } = await far(['SMTPUTF8', '8BITMIME', 'SIZE'])
  await until(await send('jürgen@far.test'), 'delivered')
  await until(await send('bob@far.test', { fields: { Cc: 'jürgen@far.test' } }), 'delivered')
  await until(await send('bob@far.test'), 'delivered')
  expect(sink.messages.map(({ to, parameters }) => [to[0], parameters.includes('SMTPUTF8')])).toEqual([
    ['jürgen@far.test', true],
    ['bob@far.test', true],
    ['bob@far.test', false],
  ])
})

test('domains beyond ASCII are asked for and written in A-labels', async () => {
  const { sink, send, until, box } = await far()
  box.dns.mx('xn--bcher-kva.test', 'mx.far.test')
  await until(await send('bob@Bücher.test', { fields: { To: 'bob@xn--bcher-kva.test' } }), 'delivered')
  expect(sink.messages.map(({ to, parameters }) => [to[0], parameters])).toEqual([
    ['bob@xn--bcher-kva.test', expect.not.stringContaining('SMTPUTF8')],
  ])
})

test('octets beyond ASCII go only to a server that takes them', async () => {
  const { sink, send, until } = await far(['SIZE'])
  expect(await until(await send('bob@far.test', { text: 'Grüße\n' }), 'bounced')).toMatchObject({
    enhanced_code: '5.6.3',
    response: expect.stringContaining('8BITMIME'),
  })
  await until(await send('bob@far.test'), 'delivered')
  expect(sink.messages).toHaveLength(1)
})

test('a server that wants nobody does not speak for one that was not reached', async () => {
  const { sink, send, until, box } = await far()
  box.dns.mx('two.test', '5 down.two.test', '10 mx.far.test').a('down.two.test', '127.0.0.2')
  sink.script = (line) => (line === '<greeting>' ? '554 5.3.2 No service' : undefined)
  expect(await until(await send('bob@two.test'), /deferred|bounced/)).toMatchObject({
    status: 'deferred',
    response: expect.stringContaining('refused'),
  })
  expect(await until(await send('bob@far.test'), /deferred|bounced/)).toMatchObject({ status: 'bounced', smtp_code: 554 })
})
