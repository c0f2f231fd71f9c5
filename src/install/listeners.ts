import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** The program that listens at a TCP port of this machine; an empty name where it belongs to another user; undefined for none. */
export function listenerAt(port: number): string | undefined {
  const inodes = new Set(['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) => listening(table, port)))
  if (inodes.size === 0) return undefined
  for (const process of entries('/proc')) {
    if (/^\d+$/.test(process) && holds(process, inodes)) return readable(`/proc/${process}/comm`).trim()
  }
  return ''
}

/** The inodes of the sockets that listen at the port (proc(5): the third field is the state, 0A is LISTEN; ports are in hexadecimal). */
function listening(table: string, port: number): string[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0')
  return readable(table)
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => state === '0A' && local?.endsWith(`:${wanted}`))
    .map((fields) => fields[9]!)
}

function holds(process: string, inodes: Set<string>): boolean {
  const folder = `/proc/${process}/fd`
  return entries(folder).some((file) => inodes.has(/^socket:\[(\d+)\]$/.exec(target(`${folder}/${file}`))?.[1] ?? ''))
}

// processes come and go, and those of other users are not readable
function entries(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function readable(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function target(link: string): string {
  try {
    return readlinkSync(link)
  } catch {
    return ''
  }
}
