import { type ChildProcess, execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, request as forward } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { folder } from '../support/folder.ts'
import { prepared } from '../support/prepared.ts'

/** It knows revision 2026-07-28 too, which the versions before 0.2 do not. */
const suite = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const directory = fileURLToPath(new URL('../../node_modules/.cache/mcp-conformance', import.meta.url))
const run = promisify(execFile)

/** One of the things that a scenario looks at. */
export interface Check {
  id: string
  status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO' | 'SKIPPED'
  errorMessage?: string
}

/** The program of the suite, installed at the first use. */
export function conformance(): string {
  prepared(directory, `npm install --no-save --no-audit --no-fund --ignore-scripts --prefix . ${suite}`)
  return join(directory, 'node_modules/.bin/conformance')
}

/** The names of all scenarios against a server, with the revisions that they are for. */
export async function scenarios(): Promise<Map<string, string[]>> {
  const { stdout } = await run(process.execPath, [conformance(), 'list', '--server'])
  const lines = [...stdout.matchAll(/^ {2}- (\S+) \[(.*)\]$/gm)]
  return new Map(lines.map(([, name, revisions]) => [name!, revisions!.split(',')]))
}

/** Runs a scenario, and returns what it found. */
export async function checksOf(scenario: string, revision: string, url: string): Promise<Check[]> {
  const given = ['server', '--url', url, '--scenario', scenario]
  return found([...given, '--spec-version', revision])
}

/** An authorization server, a client that is registered there, and a person who follows the link that the client shows. */
interface Granting {
  url: string
  clientId: string
  resource: string
  /** Of the client, at `http://127.0.0.1:<port>/callback`. */
  port: number
  follow: (link: string) => Promise<void>
}

/** Runs the scenarios against an authorization server. */
export async function authorizationChecks({ url, clientId, resource, port, follow }: Granting): Promise<Check[]> {
  const client = ['--client-id', clientId, '--resource', resource, '--port', String(port)]
  return found(['authorization', '--url', url, ...client], async (program) => {
    let shown = ''
    for await (const piece of program.stdout!.setEncoding('utf8')) {
      const before = shown
      shown += String(piece)
      const link = /^http\S+code_challenge=\S+$/m
      if (link.test(shown) && !link.test(before)) await follow(link.exec(shown)![0])
    }
  })
}

/** Runs the program of the suite, and returns all that it found. */
async function found(given: string[], meanwhile?: (program: ChildProcess) => Promise<void>): Promise<Check[]> {
  const output = folder()
  const running = run(process.execPath, [conformance(), ...given, '--output-dir', output])
  await meanwhile?.(running.child)
  // it ends with 1 when a check fails, which the checks themselves say better
  const said = await running.catch((error: { stdout: string; stderr: string }) => error)
  const results = readdirSync(output)
  if (results.length === 0) throw new Error(`${given.join(' ')}:\n${said.stdout}\n${said.stderr}`)
  return results.flatMap((name) => JSON.parse(readFileSync(join(output, name, 'checks.json'), 'utf8')) as Check[])
}

/** A server that hands every request to another, those to `/mcp` with a key: the suite sends none. */
export class KeyedProxy {
  target = { port: 0, key: '' }
  readonly #server = createServer((incoming, outgoing) => {
    const { port, key } = this.target
    const headers = { ...(incoming.url === '/mcp' ? { authorization: `Bearer ${key}` } : {}), ...incoming.headers }
    const onward = forward({ host: '127.0.0.1', port, method: incoming.method, path: incoming.url, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    outgoing.on('close', () => onward.destroy())
    incoming.pipe(onward)
  })

  static async start(): Promise<KeyedProxy> {
    const proxy = new KeyedProxy()
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}
