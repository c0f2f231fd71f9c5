import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { App } from '../../src/app.ts'
import { type Config, loadConfig } from '../../src/config.ts'
import type { Clock } from '../../src/core/clock.ts'
import { createLog } from '../../src/core/log.ts'
import type { Testing } from '../../src/assembly.ts'
import { DnsStub } from './dns-stub.ts'
import { prepareByCopy } from './new-database.ts'
import { storeIsAt } from './open-store.ts'
import { newDatabase } from './postgres-server.ts'
import { lendCertificate } from './own-certificate.ts'
import { rsaPairs } from './rsa-pairs.ts'
import { settled } from './settled.ts'
import { Dialogue } from './smtp.ts'
import { twice } from './twice.ts'
import { warmThread } from './warm-threads.ts'

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
  /** Resolves when the box has nothing left to do: events are read, what is due was attempted, jobs have ended. */
  settled(): Promise<void>
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

/** The URL of the server's databases where the tests are run on PostgreSQL. */
const postgres = process.env['TEST_POSTGRES']

/** True where boxes on PostgreSQL are opened as if others used the same database: events get their positions after their transactions. */
const shared = process.env['TEST_SHARED'] === '1'

/** The usual cost takes longer than most tests. */
const cheapPassword = { memory: 64, passes: 1, parallelism: 1 }

export const bootstrapKey = 'test-key-with-every-scope-1234567890'

/** Starts a box on loopback with an empty zone of DNS. Stopped and removed when the test ends. */
export async function appliance(env: Record<string, string> = {}, clock?: Clock, testing?: Testing): Promise<Appliance> {
  const { box, close } = await openAppliance(env, clock, testing)
  onTestFinished(close)
  return box
}

/** The same for all tests of a file, which must close it. */
export async function openAppliance(
  env: Record<string, string> = {},
  clock?: Clock,
  testing?: Testing,
): Promise<{ box: Appliance; close: () => Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-test-'))
  const dns = await DnsStub.start()
  const logged: string[] = []
  const database = postgres === undefined ? undefined : await newDatabase(postgres)
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
    ...(database && { PILLARBOX_DATABASE__URL: database.url }),
    // all there is, so that no test is spared a line
    PILLARBOX_LOG__LEVEL: 'trace',
    ...env,
  }
  // a job runs when a test runs it, not when the clock on the wall says so
  const parts: Testing = {
    schedule: { idle: true },
    prepare: prepareByCopy,
    // most boxes end sooner: a checkpoint starts a thread, which costs as much as the box
    checkpointDelay: 5000,
    examiner: { thread: warmThread },
    rsaPair: rsaPairs(),
    passwordCost: cheapPassword,
    twice,
    postgres: { shared },
    ...testing,
  }
  if (database) storeIsAt(settings.PILLARBOX_DATA_DIR, database.url)
  const log = createLog('trace', { write: (line: string) => void logged.push(line) })
  const load = (): Promise<Config> => loadConfig({ env: settings, cwd: directory })
  await lendCertificate(settings.PILLARBOX_DATA_DIR)
  const open = async (): Promise<App> => {
    const app = await App.open(await load(), log, clock, parts, load)
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
    async settled() {
      // a clock that was moved wakes nobody
      await box.app.jobs.find(({ name }) => name === 'sweep-deliveries')!.run()
      await settled(box.app)
    },
    async restart() {
      await box.app.stop()
      box.app = await open()
      settle(box)
    },
  }
  settle(box)
  const close = async (): Promise<void> => {
    await box.app.stop()
    await dns.close()
    await database?.drop()
    rmSync(directory, { recursive: true, force: true })
  }
  return { box, close }
}

function settle(box: Appliance): void {
  box.url = box.app.publicUrl
  box.smtp = box.app.smtpAddresses[0]!
}

/** Makes a call, with the key of the box unless said. */
export async function call(
  box: Pick<Appliance, 'url' | 'key'>,
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
  return { status: response.status, headers: response.headers, body: (json && text !== '' ? JSON.parse(text) : text) as never }
}

/** Sends one message the way any server does; answers the reply to its end of data, or to the command that was refused; empty when the server is gone. */
export async function deliver(
  smtp: { host: string; port: number },
  mail: { from?: string; to: string | string[]; raw: string | Buffer },
): Promise<string> {
  const client = await Dialogue.connect(smtp.port, smtp.host)
  try {
    await client.reply()
    await client.say('EHLO client.test')
    const commands = [`MAIL FROM:<${mail.from ?? 'sender@sender.test'}>`, ...[mail.to].flat().map((to) => `RCPT TO:<${to}>`)]
    for (const command of commands) {
      const answer = await client.say(command)
      if (!answer.startsWith('250')) return answer
    }
    const go = await client.say('DATA')
    if (!go.startsWith('354')) return go
    const stuffed = Buffer.from(mail.raw).toString('latin1').replace(/^\./gm, '..')
    client.send(Buffer.from(stuffed.endsWith('\r\n') || stuffed === '' ? stuffed : `${stuffed}\r\n`, 'latin1'))
    return await client.say('.')
  } finally {
    client.socket.destroy()
  }
}

/** A plain message, CRLF throughout. */
export function message(fields: Record<string, string>, body: string): string {
  const head = Object.entries({ From: 'Sam <sender@sender.test>', Date: 'Fri, 20 Nov 2026 10:00:00 +0000', ...fields })
  return `${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body.replace(/\r?\n/g, '\r\n')}`
}
