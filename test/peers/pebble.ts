import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { IncomingMessage } from 'node:http'
import { onTestFinished } from 'vitest'
import { certificate } from '../../src/certificates/self-signed.ts'
import { freePort } from '../support/free-port.ts'

/** Pebble, a CA that speaks ACME and lies on purpose, on loopback. */
export interface Ca {
  /** The URL of its directory. */
  directory: string
  /** The file with the root that its own server is checked against. */
  ca_file: string
  /** PEM of the root that its certificates lead to; another with each start. */
  root: string
  /** Ends it; the next start knows nothing of this one. */
  stop(): Promise<void>
}

export interface CaInput {
  /** Where it looks for challenges, in place of port 80. */
  httpPort: number
  /** Its name server, as `address:port`. */
  dns: string
  /** Accounts are for those who have one of these keys. */
  binding?: { kid: string; key: string }
  env?: Record<string, string>
}

/** Starts `pebble`; ended and removed when the test ends. */
export async function pebble(program: string, { httpPort, dns, binding, env = {} }: CaInput): Promise<Ca> {
  const folder = mkdtempSync(join(tmpdir(), 'pillarbox-pebble-'))
  const { cert } = await certificate(folder, 'ca.peer.test')
  for (let attempt = 1; ; attempt++) {
    const [port, management] = [await freePort(), await freePort()]
    const settings = {
      listenAddress: `127.0.0.1:${port}`,
      managementListenAddress: `127.0.0.1:${management}`,
      certificate: join(folder, 'cert.pem'),
      privateKey: join(folder, 'key.pem'),
      httpPort,
      tlsPort: 1,
      externalAccountBindingRequired: binding !== undefined,
      externalAccountMACKeys: binding ? { [binding.kid]: binding.key } : {},
    }
    writeFileSync(join(folder, 'pebble.json'), JSON.stringify({ pebble: settings }))
    // when the test runner itself is killed, Pebble goes too
    const parameters = ['--pdeathsig', 'KILL', program, '-config', join(folder, 'pebble.json'), '-dnsserver', dns]
    const child = spawn('setpriv', parameters, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'] ?? '', PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '15', ...env },
    })
    const stop = async (): Promise<void> => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    }
    const said = await started(child)
    if (said !== null && attempt < 5) continue
    onTestFinished(async () => {
      await stop()
      rmSync(folder, { recursive: true, force: true })
    })
    if (said !== null) throw new Error(`Pebble did not start:\n${said}`)
    return {
      directory: `https://127.0.0.1:${port}/dir`,
      ca_file: join(folder, 'cert.pem'),
      root: await got(`https://127.0.0.1:${management}/roots/0`, cert),
      stop,
    }
  }
}

/** The settings that make a box ask this CA. */
export function asking({ directory, ca_file }: Pick<Ca, 'directory' | 'ca_file'>): Record<string, string> {
  return {
    PILLARBOX_ACME__AGREE_TERMS: 'true',
    PILLARBOX_ACME__DIRECTORY: directory,
    PILLARBOX_ACME__CA_FILE: ca_file,
    PILLARBOX_ACME__EMAIL: 'admin@example.net',
  }
}

async function get(url: string, ca: string): Promise<string> {
  const [answer] = (await once(request(url, { ca, agent: false }).end(), 'response')) as [IncomingMessage]
  return text(answer)
}

/** Its management begins to listen after it has said that it does. */
async function got(url: string, ca: string): Promise<string> {
  for (let attempt = 1; attempt < 50; attempt++) {
    const answer = await get(url, ca).catch(() => undefined)
    if (answer !== undefined) return answer
    await sleep(100)
  }
  return get(url, ca)
}

/** Null once it listens, or what it said before it ended. */
async function started(child: ChildProcess): Promise<string | null> {
  let said = ''
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const read = (chunk: Buffer): void => {
    said += chunk.toString()
    if (said.includes('Listening on') && said.includes('ACME directory available')) resolve(null)
  }
  child.stdout?.on('data', read)
  child.stderr?.on('data', read)
  child.once('close', () => resolve(said))
  return promise
}
