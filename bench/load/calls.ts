import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { benchKey } from '../box.ts'

export interface Calls {
  url: string
  connections: number
  seconds: number
  /** Sent as JSON by POST; left out: GET. */
  body?: string
  /** Instead of that of the bench. */
  key?: string
  /** Further header fields. */
  headers?: Record<string, string>
}

export interface Answered {
  perSecond: number
  /** Milliseconds. */
  p99: number
  total: number
}

const autocannon = fileURLToPath(new URL('../../node_modules/autocannon/autocannon.js', import.meta.url))

/** Calls by autocannon, in a process of its own; throws when any answer was not 2xx. */
export async function call({ url, connections, seconds, body, key = benchKey, headers: more = {} }: Calls): Promise<Answered> {
  const fields = Object.entries({ Authorization: `Bearer ${key}`, ...more })
  const headers = fields.flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const post = body === undefined ? [] : ['-m', 'POST', '-H', 'Content-Type: application/json', '-b', body]
  const options = ['-j', '-c', String(connections), '-d', String(seconds), ...headers, ...post]
  const { stdout } = await promisify(execFile)(process.execPath, [autocannon, ...options, url], { maxBuffer: 64 * 1024 * 1024 })
  const said = JSON.parse(stdout) as Said
  if (said.non2xx > 0 || said.errors > 0)
    throw new Error(`${said.non2xx} answers of ${url} were not 2xx, ${said.errors} calls failed`)
  return { perSecond: said.requests.total / said.duration, p99: said.latency.p99, total: said.requests.total }
}

interface Said {
  requests: { total: number }
  latency: { p99: number }
  duration: number
  non2xx: number
  errors: number
}
