import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Authority } from './authority.ts'
import { type TestKey, tokenOf } from './tokens.ts'

interface Page {
  status?: number
  headers?: Record<string, string>
  /** A value is sent as JSON. */
  body?: unknown
  /** Never answered. */
  silent?: boolean
}

/** Another issuer of tokens, on loopback over HTTPS: what it has at which path is up to the test. */
export class IssuerHost {
  readonly pages = new Map<string, Page>()
  /** The paths that were asked for. */
  readonly asked: string[] = []
  #port = 0

  static async start({ certFile, keyFile }: Authority): Promise<IssuerHost> {
    const host = new IssuerHost()
    const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (request, response) => {
      host.asked.push(request.url!)
      const page = host.pages.get(request.url!) ?? { status: 404 }
      if (page.silent) return
      const body = typeof page.body === 'string' ? page.body : JSON.stringify(page.body ?? {})
      response.writeHead(page.status ?? 200, { 'content-type': 'application/json', ...page.headers }).end(body)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    host.#port = (server.address() as AddressInfo).port
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return host
  }

  get origin(): string {
    return `https://127.0.0.1:${this.#port}`
  }

  /** Of the host itself, or of somebody below it: `v1:agents:x`. */
  did(path = ''): string {
    return `did:web:127.0.0.1%3A${this.#port}${path === '' ? '' : `:${path}`}`
  }

  /** Puts a DID document with this key at its place; changes take the place of what it would say. */
  publish(did: string, key: TestKey, changes: Record<string, unknown> = {}, page: Page = {}): void {
    const path = did.split(':').slice(3)
    this.pages.set(path.length === 0 ? '/.well-known/did.json' : `/${path.join('/')}/did.json`, {
      body: { ...documentOf(did, key), ...changes },
      ...page,
    })
  }

  /** A token that says what tokens of this issuer say, with changes. */
  token(key: TestKey, sub: string, changes: Record<string, unknown> = {}, now = Date.now()): string {
    const iat = Math.floor(now / 1000)
    return tokenOf(key, { iss: this.origin, sub, aud: 'https://shop.example.com', iat, nbf: iat, exp: iat + 300, ...changes })
  }
}

/** A method of a DID document, as a JWK. */
export function methodOf(did: string, { kid, x }: TestKey): Record<string, unknown> {
  return { id: `${did}#${kid}`, type: 'JsonWebKey2020', controller: did, publicKeyJwk: { kty: 'OKP', crv: 'Ed25519', x } }
}

function documentOf(did: string, key: TestKey): Record<string, unknown> {
  return { id: did, verificationMethod: [methodOf(did, key)], assertionMethod: [`${did}#${key.kid}`] }
}
