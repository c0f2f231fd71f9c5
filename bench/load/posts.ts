import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { benchKey } from '../box.ts'

export interface Posts {
  url: string
  connections: number
  count: number
  /** Sent as JSON; `[<id>]` in it is another word each time. */
  body: object
}

const autocannon = fileURLToPath(new URL('../../node_modules/autocannon/autocannon.js', import.meta.url))

/** So many calls by autocannon, in a process of its own; throws when any answer was not 2xx. */
export async function send({ url, connections, count, body }: Posts): Promise<void> {
  const headers = ['-H', `Authorization: Bearer ${benchKey}`, '-H', 'Content-Type: application/json']
  const options = [
    '-j',
    '-I',
    '-c',
    String(connections),
    '-a',
    String(count),
    '-m',
    'POST',
    ...headers,
    '-b',
    JSON.stringify(body),
  ]
  const { stdout } = await promisify(execFile)(process.execPath, [autocannon, ...options, url], { maxBuffer: 64 * 1024 * 1024 })
  const said = JSON.parse(stdout) as { non2xx: number; errors: number; '2xx': number }
  if (said['2xx'] !== count) throw new Error(`${said['2xx']} answers of ${count} were 2xx, ${said.errors} calls failed`)
}
