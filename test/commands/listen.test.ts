import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { verifyWebhook } from '../../clients/typescript/src/index.ts'
import { appliance, deliver, message } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { identity } from '../support/live.ts'
import { pillarbox } from '../support/pillarbox.ts'
import { type BoxProcess, boxProcess } from '../support/process.ts'
import { says, WebhookSink } from '../support/webhook-sink.ts'

/** The command, once it listens. */
async function listening(env: Record<string, string>, words: string[]): Promise<BoxProcess> {
  const command = boxProcess(env, ['listen', ...words])
  await expect.poll(() => command.errors()).toContain('Signing secret: ')
  return command
}

test('live events reach a program on this machine as signed webhook requests, and each is shown with its answer', async () => {
  const box = await appliance()
  const ada = await identity(box)
  const other = await identity(box)
  const sink = await WebhookSink.start()
  const env = { PILLARBOX_API_KEY: box.key, PILLARBOX_URL: box.url }
  const command = await listening(env, ['--forward', `${sink.url}/hook`, '--identity', ada.email, '--event', 'email.received'])
  await deliver(box.smtp, { to: other.email, raw: message({ Subject: 'Not this' }, 'x\n') })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'This' }, 'x\n') })
  const [{ raw, headers, path }] = (await sink.until(1)) as [(typeof sink.received)[0]]
  const secret = /Signing secret: (whsec_\S+)/.exec(command.errors())![1]!
  const event = await verifyWebhook(raw, headers, secret)
  expect([path, event.type, event.data]).toMatchObject(['/hook', 'email.received', { subject: 'This' }])
  await expect.poll(() => command.output()).toMatch(new RegExp(`email\\.received  ${event.id}  200 in \\d+ ms\n`))

  sink.behaviour = says(500)
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Refused' }, 'x\n') })
  await expect.poll(() => command.output()).toMatch(/ {2}500 in \d+ ms\n/)
  await sink.stop()
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Nobody there' }, 'x\n') })
  await expect.poll(() => command.output()).toMatch(/ {2}failed: .*ECONNREFUSED/)
  expect(sink.received.map(({ body }) => body.data['subject'])).toEqual(['This', 'Refused'])
})

test('what happens while the box is restarted is forwarded afterwards, once', async () => {
  const port = await freePort()
  const box = await appliance({ PILLARBOX_HTTP__LISTEN: `127.0.0.1:${port}` })
  const { email } = await identity(box)
  const sink = await WebhookSink.start()
  const env = { PILLARBOX_API_KEY: box.key, PILLARBOX_WEBHOOK_SECRET: 'a secret of my own' }
  const words = ['--forward', sink.url, '--url', box.url, '--event', 'email.received', '--json']
  const command = await listening(env, words)
  const subjects: string[] = []
  for (const subject of ['One', 'Two', 'Three', 'Four']) {
    if (subject === 'Three') await box.restart()
    await deliver(box.smtp, { to: email, raw: message({ Subject: subject }, 'x\n') })
    subjects.push(subject)
  }
  const received = await sink.until(4)
  expect(received.map(({ body }) => body.data['subject'])).toEqual(subjects)
  for (const { raw, headers } of received) await verifyWebhook(raw, headers, 'a secret of my own')
  expect(command.errors()).toContain('connecting again')
  await expect.poll(() => command.output().trim().split('\n').length).toBe(4)
  expect(JSON.parse(command.output().split('\n')[0]!)).toMatchObject({ type: 'email.received', status: 200, error: null })
})

/** What sends these frames to everybody who connects; answers its URL. */
async function sender(frames: string[], connected: () => void = () => undefined): Promise<string> {
  const server = createServer((_, response) => {
    const { port } = server.address() as AddressInfo
    response.end(JSON.stringify({ url: `ws://127.0.0.1:${port}`, token: 'x' }))
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    connected()
    for (const frame of frames) socket.send(frame)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    sockets.close()
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const subscribed = '{"type":"subscribed"}'

test.each(['not json', 'null', '{"type":"event"}', '{"type":"event","event":null}'])(
  'a frame that no box sends, %s, ends it with a sentence',
  async (frame) => {
    const env = { PILLARBOX_API_KEY: 'pbx_any', PILLARBOX_URL: await sender([subscribed, frame]) }
    const words = ['listen', '--forward', 'http://localhost:3000/hook']
    const { status, errors } = await pillarbox({ env, directory: folder() }, words)
    expect(status).toBe(1)
    expect(errors).toContain('The server sent what is no frame of a Pillarbox.')
    expect(errors).not.toMatch(/^ +at /m)
  },
)

test.each(['internal_error', 'token_expired', 'too_many_frames'])('after the error %s it connects again', async (code) => {
  let connections = 0
  const error = JSON.stringify({ type: 'error', code, message: 'That did not work.' })
  const url = await sender([subscribed, error], () => (connections += 1))
  const command = await listening({ PILLARBOX_API_KEY: 'pbx_any', PILLARBOX_URL: url }, [
    '--forward',
    'http://localhost:3000/hook',
  ])
  await expect.poll(() => connections).toBeGreaterThan(1)
  expect(command.errors()).toContain('The connection ended (That did not work.); connecting again.')
})

test('what cannot work is said at once', async () => {
  const box = await appliance()
  const forward = ['--forward', 'http://localhost:3000/hook']
  const said = (env: Record<string, string>, ...words: string[]): ReturnType<typeof pillarbox> =>
    pillarbox({ env: { ...box.env, PILLARBOX_URL: box.url, PILLARBOX_API_KEY: box.key, ...env }, directory: box.directory }, [
      'listen',
      ...words,
    ])
  const cases: [Promise<{ status: number | null; errors: string }>, string][] = [
    [said({ PILLARBOX_API_KEY: '' }, ...forward), 'Set PILLARBOX_API_KEY'],
    [said({ PILLARBOX_API_KEY: 'pbx_wrong' }, ...forward), 'API key'],
    [said({ PILLARBOX_URL: 'http://127.0.0.1:9' }, ...forward), 'No box answers at http://127.0.0.1:9'],
    [said({}, '--forward', 'localhost:3000'), 'is not a URL such as http://localhost:3000/hook'],
    [said({}, '--forward', 'http://example.com/hook'), 'names another machine, example.com'],
    [said({}, '--forward', 'http://127.0.0.1.example.com/'), 'names another machine'],
    [said({}, ...forward, '--identity', 'Nobody'), 'The account has no identity Nobody'],
    [said({}, ...forward, '--since', 'evt_01jd3v8m2ef1pbx9mz5k7q4w6a'), 'log'],
  ]
  for (const [answer, words] of cases) {
    const { status, errors } = await answer
    expect([errors, status]).toEqual([expect.stringContaining(words), 1])
    expect(errors).not.toContain(box.key)
  }
})
