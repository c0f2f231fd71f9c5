import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { certificate } from '../../src/certificates/self-signed.ts'

/** Answers a request of an ACME client. */
export type Manner = (request: IncomingMessage, response: ServerResponse) => void

/** A CA on loopback that answers what a test says. */
export interface LyingCa {
  url: string
  directory: string
  ca_file: string
  /** The paths that were asked for. */
  asked: string[]
  manner: Manner
}

/** Ended when the test ends. */
export async function lyingCa(manner: Manner): Promise<LyingCa> {
  const folder = mkdtempSync(join(tmpdir(), 'pillarbox-ca-'))
  const { cert, key } = await certificate(folder, 'ca.peer.test')
  const server = createServer({ cert, key }, (request, response) => {
    ca.asked.push(request.url!)
    request.resume()
    ca.manner(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const ca: LyingCa = { url, directory: `${url}/dir`, ca_file: join(folder, 'cert.pem'), asked: [], manner }
  return ca
}

/** JSON with what every answer of a CA has. */
export function answer(response: ServerResponse, status: number, data: unknown, headers: Record<string, string> = {}): void {
  const type = status < 400 ? 'application/json' : 'application/problem+json'
  response.writeHead(status, { 'Content-Type': type, 'Replay-Nonce': 'bm9uY2U', ...headers }).end(JSON.stringify(data))
}

/** Goes through all of RFC 8555 without looking at anything, and hands out this token and this chain. */
export function careless(base: () => string, given: { token?: string; chain?: string; names?: string[]; authorizations?: number }): Manner {
  const { token, chain = '', names = ['mx.example.test'], authorizations = 1 } = given
  const at = (path: string): string => `${base()}/${path}`
  const order = (): object => ({
    status: 'valid',
    authorizations: Array.from({ length: authorizations }, () => at('authz')),
    finalize: at('finalize'),
    certificate: at('cert'),
    identifiers: names.map((value) => ({ type: 'dns', value })),
  })
  const authorization = (): object => ({
    status: token === undefined ? 'valid' : 'pending',
    identifier: { type: 'dns', value: names[0] },
    challenges: token === undefined ? [] : [{ type: 'http-01', url: at('challenge'), token, status: 'pending' }],
  })
  return ({ url, method }, response) => {
    if (url === '/dir') return answer(response, 200, { newNonce: at('nonce'), newAccount: at('account'), newOrder: at('order') })
    if (method === 'HEAD') return void response.writeHead(200, { 'Replay-Nonce': 'bm9uY2U' }).end()
    if (url === '/account') return answer(response, 201, { status: 'valid' }, { Location: at('account/1') })
    if (url === '/order') return answer(response, 201, order(), { Location: at('order/1') })
    if (url === '/authz') return answer(response, 200, authorization())
    if (url === '/cert') return void response.writeHead(200, { 'Content-Type': 'application/pem-certificate-chain' }).end(chain)
    answer(response, 200, order())
  }
}
