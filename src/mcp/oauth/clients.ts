import { lruMap } from '../../core/memory.ts'
import { type Clock, minute } from '../../core/clock.ts'
import { mac, sameBytes } from '../../core/seal/seal.ts'
import { displayLine, upToLength } from '../../core/text.ts'
import { type Outside, Unreachable } from '../../net/outside.ts'
import { ClientMetadata } from './model.ts'
import { OAuthError } from './oauth-error.ts'

/** A program that asks a person for access. */
export interface OAuthClient {
  id: string
  /** What it calls itself. */
  name: string
  /** The host that vouches for it; null for a client that only registered. */
  host: string | null
  redirect_uris: string[]
}

/** Bytes of a metadata document, and milliseconds to fetch it. */
const fetched = { limit: 16 * 1024, deadline: 5000 }

/** Milliseconds for which a metadata document is used again. */
const kept = 5 * minute

/** The longest client id. */
const longest = 2048

const registered = 'registered.'

interface Deps {
  outside: Pick<Outside, 'get'>
  clock: Clock
  /** Signs the ids of registered clients. */
  key: Buffer
}

/**
 * The clients of OAuth, of which nothing is stored. A client that has a web site is its metadata document; one that registers (RFC 7591), as programs
 * on a person's machine do, gets an id that holds what it registered, signed.
 */
export class Clients {
  readonly #deps: Deps
  readonly #known = lruMap<{ client: OAuthClient; until: number }>(500)

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Throws OAuthError `invalid_client`. */
  async find(id: string, signal: AbortSignal): Promise<OAuthClient> {
    if (id.length > longest) throw new OAuthError('invalid_client', 'client_id is too long.')
    if (id.startsWith(registered)) return this.#registered(id)
    const known = this.#known.get(id)
    if (known && known.until > this.#deps.clock.now()) return known.client
    const client = await this.#fetched(id, signal)
    this.#known.set(id, { client, until: this.#deps.clock.now() + kept })
    return client
  }

  /** The id of a client that registers. Throws OAuthError. */
  register(input: unknown): { client_id: string; metadata: ClientMetadata } {
    const metadata = metadataOf(input, 'invalid_client_metadata')
    const said = Buffer.from(JSON.stringify([nameOf(metadata, 'A program'), metadata.redirect_uris])).toString('base64url')
    const client_id = `${registered}${said}.${this.#signature(said)}`
    if (client_id.length > longest)
      throw new OAuthError('invalid_redirect_uri', 'The name and redirect_uris are too long together.')
    return { client_id, metadata }
  }

  #registered(id: string): OAuthClient {
    const [, said = '', signature = '', ...more] = id.split('.')
    if (more.length > 0 || !sameBytes(Buffer.from(signature), Buffer.from(this.#signature(said)))) {
      throw new OAuthError('invalid_client', 'client_id was not registered here. Register again.')
    }
    const [name, redirect_uris] = JSON.parse(Buffer.from(said, 'base64url').toString()) as [string, string[]]
    return { id, name, host: null, redirect_uris }
  }

  #signature(said: string): string {
    return mac(this.#deps.key, `client|${said}`).toString('base64url')
  }

  /** The client whose metadata document is at its id (draft-ietf-oauth-client-id-metadata-document). */
  async #fetched(id: string, signal: AbortSignal): Promise<OAuthClient> {
    const url = URL.parse(id)
    const plain = url && url.href === id && url.hash === '' && url.username === '' && url.password === ''
    if (!plain || url.protocol !== 'https:' || url.pathname === '/') {
      throw new OAuthError(
        'invalid_client',
        'client_id must be the https URL of a metadata document, or one that was registered here.',
      )
    }
    const document = await this.#document(id, url.host, signal)
    const metadata = metadataOf(document, 'invalid_client')
    if (metadata.client_id !== id)
      throw new OAuthError('invalid_client', 'The client_id in the metadata document is not its URL.')
    return { id, name: nameOf(metadata, url.host), host: url.host, redirect_uris: metadata.redirect_uris }
  }

  async #document(id: string, host: string, signal: AbortSignal): Promise<unknown> {
    try {
      const { status, body } = await this.#deps.outside.get(id, { ...fetched, signal, headers: { accept: 'application/json' } })
      if (status !== 200)
        throw new OAuthError('invalid_client', `${host} answered ${status} for the metadata document of the client.`)
      return JSON.parse(body.toString()) as unknown
    } catch (error) {
      if (error instanceof OAuthError) throw error
      const reason = error instanceof Unreachable ? `cannot be fetched: ${error.message}` : 'is not JSON'
      throw new OAuthError('invalid_client', `The metadata document of the client ${reason}.`)
    }
  }
}

function metadataOf(input: unknown, error: string): ClientMetadata {
  const result = ClientMetadata.safeParse(input)
  if (!result.success) {
    const [issue] = result.error.issues
    throw new OAuthError(error, `${issue!.path.join('.') || 'The metadata'} of the client is not valid: ${issue!.message}`)
  }
  const { token_endpoint_auth_method: method = 'none', redirect_uris } = result.data
  if (method !== 'none') throw new OAuthError(error, 'token_endpoint_auth_method must be none: clients here have no secrets.')
  const wrong = redirect_uris.find((uri) => !isRedirectable(uri))
  if (wrong !== undefined) {
    throw new OAuthError(
      error === 'invalid_client' ? error : 'invalid_redirect_uri',
      'A redirect_uri must be https, http of the machine itself (127.0.0.1, [::1], localhost), or of a scheme of the program with a period (com.example.app:), without a fragment.',
    )
  }
  return result.data
}

function nameOf({ client_name }: ClientMetadata, otherwise: string): string {
  return upToLength(displayLine((client_name ?? '').replace(/\p{Cf}/gu, '')), 80) || otherwise
}

/**
 * Schemes of one program: with a period (RFC 8252 7.1), or of an editor that has none. Others do more than they are told: `microsoft-edge:` and
 * `search-ms:` open what a stranger has written.
 */
const ofOneProgram = /^(?:[a-z][a-z\d+-]*(?:\.[a-z\d+-]+)+|cursor|vscode|vscode-insiders|vscodium|windsurf|zed|raycast):$/

/** What stands in the policy of a page as it is. */
const plainHost = /^(?:[a-z\d.-]+|\[[\da-f:.]+\])$/

function isRedirectable(uri: string): boolean {
  const url = URL.parse(uri)
  if (!url || uri.includes('#') || /[\s\\]/.test(uri) || url.username !== '' || url.password !== '') return false
  return (url.protocol === 'https:' && plainHost.test(url.hostname)) || isLoopback(url) || ofOneProgram.test(url.protocol)
}

function isLoopback({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(hostname)
}

/** True if a client may be answered there: exactly one of its URIs; for a program on the person's machine at any port (RFC 8252 7.3). */
export function isRedirectOf(client: OAuthClient, uri: string): boolean {
  if (!isRedirectable(uri)) return false
  return client.redirect_uris.some((own) => own === uri || withoutPort(own) === withoutPort(uri))
}

/** The URI of a program on this machine without its port; another URI has none that could differ. */
function withoutPort(uri: string): string | symbol {
  const url = URL.parse(uri)
  if (!url || !isLoopback(url)) return Symbol(uri)
  return `${url.hostname} ${url.pathname}${url.search}`
}
