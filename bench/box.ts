import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

export const benchKey = 'bench-key-with-every-scope-1234567890'

/** A box as its own process, started the way an operator starts it. */
export interface Box {
  pid: number
  /** Where the API is. */
  url: string
  smtp: { host: string; port: number }
  /** Milliseconds from the start of the process to its first answer. */
  started_in: number
  stop(): Promise<void>
}

export interface BoxOptions {
  directory: string
  /** `address:port` of the name server that is asked. */
  dns: string
  /** Settings beside those of every bench. */
  env?: Record<string, string>
  /** Of another installation than this one. */
  program?: string
  /** A module that node loads before the program. */
  preload?: string
}

/** Starts `bin/pillarbox serve` over a data directory, with its flags; throws with what it said when it ends at once. */
export async function startBox({
  directory,
  dns,
  env = {},
  preload,
  program = `${root}bin/pillarbox`,
}: BoxOptions): Promise<Box> {
  const began = performance.now()
  const options = preload === undefined ? {} : { NODE_OPTIONS: `--import=${preload}` }
  const child = spawn(program, ['serve'], {
    cwd: root,
    env: { PATH: process.env['PATH'] ?? '', ...settings(directory, dns), ...options, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const { api, smtp } = await startedLine(child)
  await firstAnswer(api)
  return {
    pid: child.pid!,
    url: api,
    smtp: smtp[0]!,
    started_in: performance.now() - began,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGTERM')
      await once(child, 'close')
    },
  }
}

function settings(directory: string, dns: string): Record<string, string> {
  return {
    PILLARBOX_DATA_DIR: directory,
    PILLARBOX_BOOTSTRAP_KEY: benchKey,
    PILLARBOX_DNS__SERVERS: dns,
    PILLARBOX_HTTP__LISTEN: '127.0.0.1:0',
    PILLARBOX_HTTP__MAX_CONNECTIONS: '10000',
    // counted, but never reached
    PILLARBOX_HTTP__RATE_LIMIT: '1000000',
    PILLARBOX_HTTP__PUBLIC_RATE_LIMIT: '0',
    PILLARBOX_SMTP__LISTEN: '127.0.0.1:0',
    PILLARBOX_SMTP__GREETING_DELAY: '0 ms',
    PILLARBOX_SMTP__MAX_CONNECTIONS_PER_ADDRESS: '1000',
    PILLARBOX_SMTP__SESSION_TIMEOUT: '1 h',
    PILLARBOX_LOG__LEVEL: 'info',
  }
}

interface Started {
  api: string
  smtp: { host: string; port: number }[]
}

async function startedLine(child: ChildProcess): Promise<Started> {
  let output = ''
  let found: Started | undefined
  const { promise, resolve, reject } = Promise.withResolvers<Started>()
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    if (found) return
    output += text
    const line = output.split('\n').find((one) => one.includes('"msg":"started"') && one.endsWith('}'))
    if (line === undefined) return
    found = JSON.parse(line) as Started
    resolve(found)
  })
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.once('close', () => reject(new Error(`The box did not start:\n${output}`)))
  return promise
}

async function firstAnswer(api: string): Promise<void> {
  const response = await fetch(`${api}/healthz`)
  await response.arrayBuffer()
}
