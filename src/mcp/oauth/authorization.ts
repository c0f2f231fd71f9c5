import { createHash, randomBytes } from 'node:crypto'
import { type Clock, minute } from '../../core/clock.ts'
import { detached } from '../../core/memory.ts'
import type { Caller } from '../../core/scopes.ts'
import { sameBytes } from '../../core/seal/seal.ts'
import type { Codes, IssuedCode } from './codes.ts'
import { type Clients, isRedirectOf, type OAuthClient } from './clients.ts'
import type { Grants, Tokens } from './grants.ts'
import { offered, type Offered, usual } from './model.ts'
import { OAuthError, required } from './oauth-error.ts'

/** A request for access, once its client and where it is answered are known to belong together. */
export interface AuthorizationRequest {
  client: OAuthClient
  redirect_uri: string
  state: string | undefined
  challenge: string
  /** What it asks for and can be granted, and what it asks for in vain. */
  scopes: Offered[]
  refused: string[]
}

/** An error that the client is told at its redirect URI; any other is told to the person. */
export interface RedirectedError {
  redirect_uri: string
  state: string | undefined
  error: OAuthError
}

/** Milliseconds for which a code is valid. */
const validity = minute

interface Deps {
  clients: Clients
  codes: Codes
  grants: Grants
  clock: Clock
  /** True if the credential that admitted a caller is still valid. */
  admitted: (caller: Caller) => Promise<boolean>
  /** The URL of `/mcp`, which tokens are for. */
  resource: () => string
}

/** The authorization code grant with PKCE (OAuth 2.1 4.1, RFC 7636, RFC 8707). */
export class Authorization {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Reads a request for access. Throws OAuthError where the client cannot be told; returns an error that it can be. */
  async read(given: ReadonlyMap<string, string>, signal: AbortSignal): Promise<AuthorizationRequest | RedirectedError> {
    const client = await this.#deps.clients.find(required(given, 'client_id'), signal)
    const redirect_uri = required(given, 'redirect_uri')
    if (!isRedirectOf(client, redirect_uri)) {
      throw new OAuthError('invalid_request', 'redirect_uri is none of those that the client has named.')
    }
    const state = given.get('state')
    try {
      return { client, redirect_uri, state, ...this.#asked(given) }
    } catch (error) {
      if (error instanceof OAuthError) return { redirect_uri, state, error }
      throw error
    }
  }

  /** The code for what a person has granted. */
  async issue(
    request: AuthorizationRequest,
    person: Caller,
    { identity_id, scopes }: Pick<IssuedCode, 'identity_id' | 'scopes'>,
  ): Promise<string> {
    const code = randomBytes(32).toString('base64url')
    const { client, redirect_uri, challenge } = request
    await this.#deps.codes.add(code, {
      client_id: detached(client.id),
      label: detached(labelOf(client)),
      redirect_uri: detached(redirect_uri),
      challenge: detached(challenge),
      person,
      identity_id,
      scopes,
      until: this.#deps.clock.now() + validity,
    })
    return code
  }

  /** Tokens for a code. A code that comes twice was stolen: what it gave ends (OAuth 2.1 4.1.3). */
  async redeem(given: ReadonlyMap<string, string>): Promise<Tokens> {
    const { codes, grants } = this.#deps
    const code = required(given, 'code')
    const taken = await codes.take(code)
    if (taken && !taken.issued && taken.key_id !== undefined) await grants.end(taken.key_id)
    // a wrong attempt uses it up too
    if (!taken?.issued) throw invalidCode()
    const granted = await this.#grant(taken.issued, given).catch(async (error: unknown) => {
      await codes.settle(code, undefined)
      throw error
    })
    if (await codes.settle(code, granted.key_id)) return granted.tokens
    await grants.end(granted.key_id)
    throw invalidCode()
  }

  async #grant(issued: IssuedCode, given: ReadonlyMap<string, string>): ReturnType<Grants['create']> {
    if (issued.until <= this.#deps.clock.now()) throw invalidCode()
    await this.#verify(issued, given)
    const { client_id, label, person, identity_id, scopes } = issued
    return this.#deps.grants.create(person, { client_id, label, identity_id, scopes })
  }

  async #verify({ client_id, redirect_uri, challenge, person }: IssuedCode, given: ReadonlyMap<string, string>): Promise<void> {
    if (required(given, 'client_id') !== client_id) throw new OAuthError('invalid_grant', 'This code belongs to another client.')
    if (required(given, 'redirect_uri') !== redirect_uri) {
      throw new OAuthError('invalid_grant', 'redirect_uri is not the one that the code was asked for with.')
    }
    const verifier = required(given, 'code_verifier')
    const hash = createHash('sha256').update(verifier).digest()
    if (!/^[\w.~-]{43,128}$/.test(verifier) || !sameBytes(hash, Buffer.from(challenge, 'base64url'))) {
      throw new OAuthError('invalid_grant', 'code_verifier does not match the code_challenge.')
    }
    this.#requireResource(given)
    if (!(await this.#deps.admitted(person)))
      throw new OAuthError('invalid_grant', 'The person who consented has signed out meanwhile.')
  }

  #asked(given: ReadonlyMap<string, string>): Pick<AuthorizationRequest, 'challenge' | 'scopes' | 'refused'> {
    if (required(given, 'response_type') !== 'code') {
      throw new OAuthError('unsupported_response_type', 'response_type must be code.')
    }
    const challenge = required(given, 'code_challenge')
    // plain is the default (RFC 7636 4.3), and proves nothing
    if (given.get('code_challenge_method') !== 'S256')
      throw new OAuthError('invalid_request', 'code_challenge_method must be S256.')
    if (!/^[\w-]{43}$/.test(challenge))
      throw new OAuthError('invalid_request', 'code_challenge must be 43 characters of base64url.')
    this.#requireResource(given)
    const asked = (given.get('scope') ?? '').split(' ').filter(Boolean)
    const scopes =
      asked.length === 0 ? usual : [...new Set(asked)].filter((scope): scope is Offered => Object.hasOwn(offered, scope))
    if (scopes.length === 0) {
      throw new OAuthError('invalid_scope', `None of these scopes can be granted. There are: ${Object.keys(offered).join(' ')}`)
    }
    return { challenge, scopes, refused: asked.filter((scope) => !Object.hasOwn(offered, scope)) }
  }

  #requireResource(given: ReadonlyMap<string, string>): void {
    const named = given.get('resource')
    if (named !== undefined && named.replace(/\/$/, '') !== this.#deps.resource()) {
      throw new OAuthError('invalid_target', `resource must be ${this.#deps.resource()}.`)
    }
  }
}

function invalidCode(): OAuthError {
  return new OAuthError('invalid_grant', 'This code is not valid: it was used before, or more than a minute ago.')
}

function labelOf({ name, host }: OAuthClient): string {
  return `${name}${host === null || host === name ? '' : ` (${host})`}, by OAuth`.slice(0, 128)
}
