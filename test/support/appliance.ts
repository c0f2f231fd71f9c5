import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { App } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import type { Clock } from '../../src/core/clock.ts'
import { createLog } from '../../src/core/log.ts'
import { DnsStub } from './dns-stub.ts'

/** What the tests of a box hold: the real app on ports of its own, over a directory of its own. */
export interface Appliance {
  app: App
  directory: string
  url: string
  key: string
  smtp: { host: string; port: number }
  dns: DnsStub
  /** Everything the box logged, one JSON line each. */
  logged: string[]
  env: Record<string, string>
  call: Call
  /** Opens the same directory again, as after a restart. */
  restart(): Promise<void>
}

export interface Answer<Body = unknown> {
  status: number
  headers: Headers
  body: Body
}

export type Call = <Body = never>(
  method: string,
  path: string,
  body?: unknown,
  options?: { key?: string | null; headers?: Record<string, string> },
) => Promise<Answer<[Body] extends [never] ? Answered : Body>>

// answers are JSON of any shape; tests say what they expect of it
type Answered = Record<string, Any> & { data: Any[]; error: Record<string, Any> }
type Any = ReturnType<typeof JSON.parse>

export const bootstrapKey = 'test-key-with-every-scope-1234567890'

/** Starts a box on loopback with an empty zone of DNS. Stopped and removed when the test ends. */
export async function appliance(env: Record<string, string> = {}, clock?: Clock): Promise<Appliance> {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-test-'))
  const dns = await DnsStub.start()
  const logged: string[] = []
  const settings = {
    PILLARBOX_DATA_DIR: join(directory, 'data'),
    PILLARBOX_HTTP__LISTEN: '127.0.0.1:0',
    PILLARBOX_SMTP__LISTEN: '127.0.0.1:0',
    PILLARBOX_SMTP__GREETING_DELAY: '0 ms',
    PILLARBOX_DNS__SERVERS: dns.servers.join(','),
    PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
    PILLARBOX_HTTP__RATE_LIMIT: '0',
    PILLARBOX_HTTP__PUBLIC_RATE_LIMIT: '0',
    PILLARBOX_MIN_FREE: '0',
    ...env,
  }
  const log = createLog('debug', { write: (line: string) => void logged.push(line) })
  const open = async (): Promise<App> => {
    const app = await App.open(await loadConfig({ env: settings, cwd: directory }), log, clock)
    await app.start()
    return app
  }
  const box: Appliance = {
    app: await open(),
    directory,
    url: '',
    key: bootstrapKey,
    smtp: { host: '127.0.0.1', port: 0 },
    dns,
    logged,
    env: settings,
    call: async (method, path, body, options = {}) => call(box, method, path, body, options),
    async restart() {
      await box.app.stop()
      box.app = await open()
      settle(box)
    },
  }
  settle(box)
  onTestFinished(async () => {
    await box.app.stop()
    await dns.close()
    rmSync(directory, { recursive: true, force: true })
  })
  return box
}

function settle(box: Appliance): void {
  box.url = box.app.publicUrl
  box.smtp = box.app.smtpAddresses[0]!
}

async function call(
  box: Appliance,
  method: string,
  path: string,
  body: unknown,
  options: { key?: string | null; headers?: Record<string, string> },
): Promise<Answer<never>> {
  const key = options.key === undefined ? box.key : options.key
  const response = await fetch(path.startsWith('http') ? path : `${box.url}${path}`, {
    method,
    redirect: 'manual',
    headers: {
      ...(key === null ? {} : { Authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...options.headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const json = response.headers.get('content-type')?.includes('json') ?? false
  return { status: response.status, headers: response.headers, body: (json ? JSON.parse(text) : text) as never }
}

/** Sends one message the way any server does; answers the reply to its end of data, or to the command that was refused. */
export async function deliver(
  smtp: { host: string; port: number },
  message: { from?: string; to: string | string[]; raw: string | Buffer },
): Promise<string> {
  const socket = createConnection(smtp)
  await once(socket, 'connect')
  socket.setEncoding('latin1')
  let text = ''
  const reply = async (): Promise<string> => {
    for (;;) {
      const match = /^(?:\d{3}-[^\n]*\n)*\d{3} [^\n]*\n/.exec(text)
      if (match) {
        text = text.slice(match[0].length)
        return match[0].trim()
      }
      const [chunk] = (await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [''])])) as [string]
      if (chunk === '') return 'closed'
      text += chunk
    }
  }
  const say = (line: string): Promise<string> => {
    socket.write(`${line}\r\n`)
    return reply()
  }
  try {
    await reply()
    await say('EHLO client.test')
    const accepted = await say(`MAIL FROM:<${message.from ?? 'sender@sender.test'}>`)
    if (!accepted.startsWith('250')) return accepted
    for (const to of [message.to].flat()) {
      const answer = await say(`RCPT TO:<${to}>`)
      if (!answer.startsWith('250')) return answer
    }
    const go = await say('DATA')
    if (!go.startsWith('354')) return go
    const raw = Buffer.isBuffer(message.raw) ? message.raw.toString('latin1') : Buffer.from(message.raw).toString('latin1')
    const stuffed = raw.replace(/^\./gm, '..')
    socket.write(stuffed.endsWith('\r\n') || stuffed === '' ? stuffed : `${stuffed}\r\n`, 'latin1')
    return await say('.')
  } finally {
    socket.end('QUIT\r\n')
    socket.destroySoon()
  }
}

/** A plain message, CRLF throughout. */
export function message(fields: Record<string, string>, body: string): string {
  const head = Object.entries({ From: 'Sam <sender@sender.test>', Date: 'Fri, 20 Nov 2026 10:00:00 +0000', ...fields })
  return `${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body.replace(/\r?\n/g, '\r\n')}`
}
