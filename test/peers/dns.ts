import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Knot DNS on a loopback port of its own, with the root zone a test wrote: names that are not in it do not exist. */
export interface NameServer {
  /** `address:port`, as PILLARBOX_DNS__SERVERS takes it. */
  server: string
  /** Serves these records instead, once that resolves. */
  change(records: string[]): Promise<void>
  /** Ends it; what is asked from then on has no answer. */
  stop(): Promise<void>
}

/** Starts `knotd` with these lines of a zone file, names relative to the root. Ended and removed when the test ends. */
export async function nameServer(knotd: string, records: string[]): Promise<NameServer> {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-knot-'))
  let serial = 0
  const write = (lines: string[]): void => {
    serial += 1
    const origin = ['$ORIGIN .', '$TTL 60', `@ SOA ns.peer.test. host.peer.test. ${serial} 60 60 60 60`, '@ NS ns.peer.test.']
    writeFileSync(join(directory, 'zone'), `${[...origin, 'ns.peer.test. A 127.0.0.1', ...lines].join('\n')}\n`)
  }
  write(records)
  let child: ChildProcess | undefined
  const stop = async (): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  onTestFinished(async () => {
    await stop()
    rmSync(directory, { recursive: true, force: true })
  })
  // the free port may be taken by another before Knot has it
  for (let attempt = 1; ; attempt++) {
    const port = await freePort()
    writeFileSync(join(directory, 'knot.conf'), configuration(directory, port))
    // when the test runner itself is killed, Knot goes too
    const parameters = ['--pdeathsig', 'KILL', knotd, '-c', join(directory, 'knot.conf')]
    child = spawn('setpriv', parameters, { stdio: ['ignore', 'pipe', 'pipe'] })
    const said = await started(child)
    if (said === null) {
      const change = async (lines: string[]): Promise<void> => {
        write(lines)
        const loaded = spoken(child!, `[.] loaded, serial ${serial - 1} -> ${serial}`)
        child!.kill('SIGHUP')
        await loaded
      }
      return { server: `127.0.0.1:${port}`, change, stop }
    }
    if (attempt === 5) throw new Error(`Knot did not start:\n${said}`)
  }
}

/** The text of a TXT record in a zone file: strings of at most 255 octets (RFC 1035 3.3.14). */
export function text(value: string): string {
  return `TXT ${(value.match(/.{1,255}/gs) ?? ['']).map((piece) => `"${piece.replaceAll(/["\\]/g, '\\$&')}"`).join(' ')}`
}

/** Once it said this; throws what it said instead when it ends, or after ten seconds. */
async function spoken(child: ChildProcess, line: string): Promise<void> {
  let said = ''
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const read = (chunk: Buffer): void => {
    said += chunk.toString()
    if (said.includes(line)) resolve()
  }
  const give = (): void => reject(new Error(`Knot did not say “${line}”:\n${said}`))
  const timer = setTimeout(give, 10_000)
  child.stdout?.on('data', read)
  child.once('close', give)
  await promise.finally(() => {
    clearTimeout(timer)
    child.stdout?.off('data', read)
    child.off('close', give)
  })
}

/** Null once it serves its zone, or what it said before it ended. */
async function started(child: ChildProcess): Promise<string | null> {
  let said = ''
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const read = (chunk: Buffer): void => {
    said += chunk.toString()
    if (said.includes('server started') && said.includes('[.] loaded')) resolve(null)
  }
  child.stdout?.on('data', read)
  child.stderr?.on('data', read)
  child.once('close', () => resolve(said))
  return promise
}

async function freePort(): Promise<number> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  socket.close()
  return port
}

function configuration(directory: string, port: number): string {
  return `server:
    listen: 127.0.0.1@${port}
    rundir: "${directory}"
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
log:
  - target: stdout
    any: info
database:
    storage: "${directory}"
zone:
  - domain: "."
    file: "${directory}/zone"
    semantic-checks: off
    journal-content: none
`
}
