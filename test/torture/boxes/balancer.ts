import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../support/free-port.ts'

/** HAProxy in front of boxes: a connection goes to one of those that are ready. */
export interface Balancer {
  http: number
  smtp: number
  close(): Promise<void>
}

/** The ports of a box. */
export interface Ports {
  http: number
  smtp: number
}

/** Starts HAProxy (Debian's) in this directory. */
export async function startBalancer(program: string, directory: string, boxes: readonly Ports[]): Promise<Balancer> {
  const ports = { http: await freePort(), smtp: await freePort() }
  const file = join(directory, 'haproxy.cfg')
  writeFileSync(file, settings(ports, boxes))
  const child = spawn(program, ['-db', '-f', file], { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  const ended = once(child, 'close')
  for (const end = Date.now() + 10_000; !(await listens(ports.http)); await sleep(20))
    if (child.exitCode !== null || Date.now() > end) throw new Error(`HAProxy does not start:\n${errors}`)
  return {
    ...ports,
    async close() {
      kill()
      await ended
      process.off('exit', kill)
    },
  }
}

/** A box that is not ready is left out after a second, and its connections are ended. */
function settings({ http, smtp }: Ports, boxes: readonly Ports[]): string {
  return `global
  maxconn 2000
defaults
  mode tcp
  timeout connect 2s
  timeout check 3s
  timeout client 10m
  timeout server 10m
  option redispatch
  option httpchk GET /readyz
  balance roundrobin
  default-server inter 500 fall 2 rise 2 on-marked-down shutdown-sessions
listen http
  bind 127.0.0.1:${http}
${boxes.map((box, index) => `  server box${index} 127.0.0.1:${box.http} check\n`).join('')}
listen smtp
  bind 127.0.0.1:${smtp}
${boxes.map((box, index) => `  server box${index} 127.0.0.1:${box.smtp} check port ${box.http}\n`).join('')}`
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
