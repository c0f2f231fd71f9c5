import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Zone } from './dns-server.ts'

/** A name server in a process of its own. */
export interface NameServer {
  /** `address:port`. */
  address: string
  stop(): void
}

/** Serves the zone on loopback, where it is told or on a free port; `directory` is where the zone's file is written. */
export async function startNameServer(directory: string, zone: Zone, at?: { host: string; port: number }): Promise<NameServer> {
  const file = join(directory, 'zone.json')
  writeFileSync(file, JSON.stringify(zone))
  const program = fileURLToPath(new URL('dns-server.ts', import.meta.url))
  const child = spawn(process.execPath, [program, file, ...(at ? [at.host, String(at.port)] : [])], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const stop = (): void => void child.kill()
  // nobody else would end it when the bench is interrupted
  process.once('exit', stop)
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`The name server ended with ${String(code)}.`)
  })
  const [said] = (await Promise.race([once(child.stdout.setEncoding('utf8'), 'data'), ended])) as [string]
  // when it is stopped, nobody waits for its end
  ended.catch(() => undefined)
  return {
    address: said.trim(),
    stop() {
      process.off('exit', stop)
      stop()
    },
  }
}
