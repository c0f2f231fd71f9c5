import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { deliver, message } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { OutboundProcess } from '../support/outbound-process.ts'
import { pillarbox } from '../support/pillarbox.ts'
import { failureReport } from '../support/reports.ts'
import { says, WebhookSink } from '../support/webhook-sink.ts'

interface Line extends Record<string, unknown> {
  msg: string
}

/** What `pillarbox log` shows of the box's log, as people and as programs read it. */
async function logOf(desk: OutboundProcess, ...words: string[]): Promise<{ lines: string[]; json: Line[] }> {
  const directory = folder()
  const file = join(directory, 'box.log')
  writeFileSync(file, desk.box.output())
  const said = await pillarbox({ env: {}, directory }, ['log', '--file', file, ...words])
  expect(said.status).toBe(0)
  // what the box prints at its first start is for people
  expect(said.errors).toMatch(/^\d+ lines were not from the box, and skipped\.\n$/)
  const { output } = await pillarbox({ env: {}, directory }, ['log', '--file', file, '--json', ...words])
  const json = output.trimEnd().split('\n')
  return { lines: said.output.trimEnd().split('\n'), json: json.map((line) => JSON.parse(line) as Line) }
}

async function smtpOf(desk: OutboundProcess): Promise<{ host: string; port: number }> {
  return (await desk.box.said('started'))['smtp'][0] as { host: string; port: number }
}

test('one message is followed from RCPT to the webhooks that told of it', async () => {
  const desk = await OutboundProcess.open()
  const sink = await WebhookSink.start()
  sink.behaviour = (response, received) => says(received.path === '/broken' ? 503 : 200)(response, received)
  for (const path of ['/mail', '/broken']) {
    await desk.post('/v1/webhooks', { url: `${sink.url}${path}`, events: ['email.received'] })
  }
  const smtp = await smtpOf(desk)
  const mail = { 'Message-ID': '<lunch.1@far.test>', From: 'Eve <eve@far.test>', Subject: 'Secret lunch' }
  // another's, which must not be shown
  await deliver(smtp, { to: desk.bob.email, raw: message({ 'Message-ID': '<other.1@far.test>' }, 'Hello\n') })
  expect(await deliver(smtp, { to: ['nobody@pillarbox.test'], raw: message(mail, 'Now\n') })).toMatch(/^550/)
  expect(await deliver(smtp, { from: 'eve@far.test', to: desk.ada.email, raw: message(mail, 'Now\n') })).toMatch(/^250/)
  await sink.until(4)
  await desk.box.said('webhook attempt', 4)
  const { lines, json: all } = await logOf(desk, '--message-id', 'lunch.1@far.test')
  // the one that is down may have been tried once more meanwhile
  const json = all.filter(({ attempt = 1 }) => attempt === 1)
  expect(json.map(({ msg }) => msg)).toEqual(['message taken', 'webhook attempt', 'webhook attempt'])
  expect(json[0]).toMatchObject({
    msg: 'message taken',
    message_id: '<lunch.1@far.test>',
    from: 'eve@far.test',
    from_domain: 'far.test',
    to: [desk.ada.email],
    ip: '127.0.0.1',
    result: 'accepted',
  })
  const [emailId] = json[0]!['email_ids'] as string[]
  for (const line of json.slice(1)) {
    expect(line).toMatchObject({ part: 'webhooks', event: 'email.received', email_id: emailId, message_id: '<lunch.1@far.test>' })
  }
  expect(json.slice(1).toSorted((one, other) => Number(one['code']) - Number(other['code']))).toMatchObject([
    { code: 200, result: 'delivered', next_attempt_at: null },
    { code: 503, result: 'deferred', next_attempt_at: expect.stringMatching(/^2/) },
  ])
  expect(lines[0]).toMatch(
    /^2\S+ \S+ smtp +message taken: from eve@far\.test, to ada@\S+, client 127\.0\.0\.1 \(client\.test\), SPF none, .*“250 2\.0\.0 Ok: queued as/,
  )
  expect(lines.join('\n')).toMatch(
    /webhooks +webhook attempt: email\.received to 127\.0\.0\.1:\d+, attempt 1, deferred, “status 503”, next 2/,
  )
  expect(lines.join('\n')).not.toMatch(/other\.1|Secret lunch/)

  // the recipient that was refused has no Message-ID, but an address
  const refused = await logOf(desk, '--to', 'NOBODY@pillarbox.test')
  expect(refused.json).toMatchObject([{ msg: 'recipient refused', to: 'nobody@pillarbox.test', code: 550 }])
  expect(await desk.box.end('SIGTERM')).toBe(0)
})

test('one message is followed from the call that sent it to the bounce that came back', async () => {
  const desk = await OutboundProcess.open()
  const hook = await WebhookSink.start()
  await desk.post('/v1/webhooks', { url: hook.url, events: ['email.bounced'] })
  const [id] = await desk.send({}, ['bob1@far1.test'])
  await desk.send({}, ['bob2@far2.test'])
  await desk.box.said('delivery attempt', 2)
  const landed = desk.sink.messages.find(({ to }) => to.includes('bob1@far1.test'))!
  const { message_id } = await desk.email(id!)
  // the far server took it, and finds out later that nobody has the address
  const report = failureReport({ recipient: 'bob1@far1.test', reporter: 'mx.far.test' })
  const raw = `Message-ID: <report.1@mx.far.test>\r\n${report}`
  expect(await deliver(await smtpOf(desk), { from: '', to: landed.from, raw })).toMatch(/^250/)
  await hook.until(1)
  await desk.box.said('webhook attempt')

  const { lines, json } = await logOf(desk, '--message-id', message_id!)
  expect(json).toHaveLength(5)
  expect(json[0]!.msg).toBe('message queued')
  const [queued, attempt, back, taken, told] = [
    'message queued',
    'delivery attempt',
    'bounce or report received',
    'message taken',
    'webhook attempt',
  ].map((msg) => json.find((line) => line.msg === msg))
  expect(queued).toMatchObject({ part: 'outbound', email_id: id, message_id, from: desk.ada.email, to: ['bob1@far1.test'] })
  expect(attempt).toMatchObject({
    message_id,
    to: 'bob1@far1.test',
    return_path: landed.from,
    mx: 'mx.far.test',
    ip: '127.0.0.1',
    code: 250,
    result: 'delivered',
  })
  expect(back).toMatchObject({
    message_id,
    email_id: id,
    delivery_id: attempt!['queue_id'],
    to: 'bob1@far1.test',
    code: 550,
    enhanced_code: '5.1.1',
    outcome: 'bounced',
  })
  expect(taken).toMatchObject({ message_id: '<report.1@mx.far.test>', from: '', to: [landed.from], session: back!['session'] })
  expect(told).toMatchObject({ event: 'email.bounced', email_id: id, message_id, result: 'delivered' })
  expect(lines[1]).toMatch(
    /delivery attempt: from ada@\S+, to bob1@far1\.test, at mx\.far\.test \[127\.0\.0\.1\], attempt 1, delivered, “250 2\.0\.0 Ok: queued”/,
  )
  // by whom it went to, and by the address of the server, it is found as well
  expect((await logOf(desk, '--to', '@far1.test')).json).toEqual(json)
  const all = (await logOf(desk, '--from', desk.ada.email, '--ip', '127.0.0.1')).json
  expect(all.filter(({ msg }) => msg === 'delivery attempt')).toHaveLength(2)
  expect(await desk.box.end('SIGTERM')).toBe(0)
})
