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

/** Serves the zone on loopback; `directory` is where the zone's file is written. */
export async function startNameServer(directory: string, zone: Zone): Promise<NameServer> {
  const file = join(directory, 'zone.json')
  writeFileSync(file, JSON.stringify(zone))
  const program = fileURLToPath(new URL('dns-server.ts', import.meta.url))
  const child = spawn(process.execPath, [program, file], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [said] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
  return { address: said.trim(), stop: () => void child.kill() }
}
