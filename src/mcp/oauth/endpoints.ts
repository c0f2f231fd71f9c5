import { Fault } from '../../core/fault.ts'
import { type Caller, insufficientScope, may } from '../../core/scopes.ts'
import type { Exchange, ProtocolEndpoint } from '../../http/protocol.ts'
import { type Answer, type AnyRoute, routeOf } from '../../http/route.ts'
import type { Identities } from '../../identities/identities.ts'
import type { ReducedIdentity } from '../../identities/model.ts'
import type { Authorization, AuthorizationRequest, RedirectedError } from './authorization.ts'
import type { Clients } from './clients.ts'
import { consentPage, errorPage, signInPage } from './consent-page.ts'
import type { Grants } from './grants.ts'
import { AuthorizationServer, offered, type Offered, ProtectedResource } from './model.ts'
import { OAuthError, parametersOf, required } from './oauth-error.ts'

export interface Deps {
  authorization: Authorization
  clients: Clients
  grants: Grants
  identities: Pick<Identities, 'list'>
  /** The origin of the box, which is the issuer. */
  issuer: () => string
}

const route = routeOf('Public documents')
const common = { root: true, scope: 'public', rate: 'document', document: true } as const

/** The path of the metadata of `/mcp` (RFC 9728 3.1). */
export const metadataPath = '/.well-known/oauth-protected-resource/mcp'

/** What clients find out by themselves. */
export function metadataRoutes({ issuer }: Pick<Deps, 'issuer'>): AnyRoute[] {
  return [
    route('GET', metadataPath, {
      ...common,
      aliases: ['/.well-known/oauth-protected-resource'],
      summary: 'Get the metadata of the MCP endpoint',
      description: 'Of `/mcp`, for clients that ask for access by OAuth (RFC 9728).',
      reply: ProtectedResource,
      handle: async () => ({
        resource: `${issuer()}/mcp`,
        resource_name: 'Pillarbox',
        authorization_servers: [issuer()],
        scopes_supported: Object.keys(offered),
        bearer_methods_supported: ['header' as const],
      }),
    }),
    route('GET', '/.well-known/oauth-authorization-server', {
      ...common,
      summary: 'Get the metadata of the authorization server',
      description: 'The endpoints of OAuth 2.1 and what they support (RFC 8414): codes with PKCE by S256, for public clients.',
      reply: AuthorizationServer,
      handle: async () => ({
        issuer: issuer(),
        authorization_endpoint: `${issuer()}/oauth/authorize`,
        token_endpoint: `${issuer()}/oauth/token`,
        revocation_endpoint: `${issuer()}/oauth/revoke`,
        registration_endpoint: `${issuer()}/oauth/register`,
        scopes_supported: Object.keys(offered),
        response_types_supported: ['code' as const],
        grant_types_supported: ['authorization_code' as const, 'refresh_token' as const],
        code_challenge_methods_supported: ['S256' as const],
        token_endpoint_auth_methods_supported: ['none' as const],
        revocation_endpoint_auth_methods_supported: ['none' as const],
        client_id_metadata_document_supported: true,
        authorization_response_iss_parameter_supported: true,
      }),
    }),
  ]
}

/** The endpoints of OAuth, whose requests are forms and whose errors are its own. */
export function oauthEndpoints(deps: Deps): ProtocolEndpoint[] {
  const form = { limit: 64 * 1024, raw: true } as const
  return [
    {
      method: 'GET',
      path: '/oauth/authorize',
      scope: 'public',
      rate: 'document',
      answer: (exchange) => shown(() => ask(deps, exchange)),
    },
    {
      method: 'POST',
      path: '/oauth/authorize',
      // as for making a key; a request that no page of ours sent is refused with the others of a session
      scope: 'account:write',
      ...form,
      answer: (exchange) => shown(() => decide(deps, exchange)),
    },
    { method: 'POST', path: '/oauth/token', scope: 'public', ...form, answer: (exchange) => told(() => token(deps, exchange)) },
    {
      method: 'POST',
      path: '/oauth/revoke',
      scope: 'public',
      ...form,
      answer: (exchange) => told(() => revoke(deps, exchange)),
    },
    {
      method: 'POST',
      path: '/oauth/register',
      scope: 'public',
      limit: 16 * 1024,
      answer: (exchange) => told(() => register(deps, exchange)),
    },
  ]
}

async function ask(deps: Deps, exchange: Exchange): Promise<Answer> {
  const person = await exchange.signedIn()
  // before anything is fetched: strangers cannot make the box ask other servers
  if (!person) return signInPage(`/oauth/authorize?${exchange.search}`)
  requireOwner(person)
  const given = parametersOf(exchange.search)
  const request = await deps.authorization.read(given, exchange.signal)
  if ('error' in request) return redirected(deps, request)
  return consentPage(request, given, await identitiesOf(deps, person))
}

async function decide(deps: Deps, exchange: Exchange): Promise<Answer> {
  if (exchange.caller.session_id === null) {
    throw new Fault('forbidden', 'Only a person who is signed in can consent.', { code: 'session_required' })
  }
  requireOwner(exchange.caller)
  const given = await formOf(exchange)
  const request = await deps.authorization.read(given, exchange.signal)
  if ('error' in request) return redirected(deps, request)
  if (given.get('decision') !== 'allow') {
    return redirected(deps, { ...request, error: new OAuthError('access_denied', 'The person has not consented.') })
  }
  const again = async (problem: string): Promise<Answer> =>
    consentPage(request, given, await identitiesOf(deps, exchange.caller), problem)
  const chosen = (given.get('scopes') ?? '').split(' ')
  const scopes = request.scopes.filter((scope): scope is Offered => chosen.includes(scope))
  if (scopes.length === 0) return again('Choose at least one thing that it may do, or deny.')
  const email = given.get('identity') ?? ''
  const found = email === '' ? [] : (await deps.identities.list(exchange.caller, { email, limit: 2, offset: 0 })).data
  if (found.length !== 1) return again('Choose the identity that it may act as.')
  const code = await deps.authorization.issue(request, exchange.caller, { identity_id: found[0]!.id, scopes })
  return redirect(deps, request, { code })
}

/** Throws Fault 403 for people who may not make keys: what is granted outlives their session. */
function requireOwner(person: Caller): void {
  if (!may(person, ['account:write'])) throw insufficientScope(['account:write'], person.person)
}

/** The newest identities, if these are all: of more a person writes the address. */
async function identitiesOf({ identities }: Deps, person: Caller): Promise<ReducedIdentity[] | undefined> {
  const { data, has_more } = await identities.list(person, { limit: 200, offset: 0 })
  return has_more ? undefined : data
}

async function token({ authorization, grants }: Deps, exchange: Exchange): Promise<Answer> {
  const given = await formOf(exchange)
  const type = required(given, 'grant_type')
  if (type === 'authorization_code') return json(200, await authorization.redeem(given))
  if (type === 'refresh_token')
    return json(200, await grants.refresh(required(given, 'refresh_token'), required(given, 'client_id')))
  throw new OAuthError('unsupported_grant_type', 'grant_type must be authorization_code or refresh_token.')
}

async function revoke({ grants }: Deps, exchange: Exchange): Promise<Answer> {
  await grants.revoke(required(await formOf(exchange), 'token'))
  return json(200, {})
}

async function register({ clients }: Deps, exchange: Exchange): Promise<Answer> {
  const { client_id, metadata } = clients.register(await exchange.body())
  return json(201, {
    client_id,
    client_name: metadata.client_name,
    redirect_uris: metadata.redirect_uris,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  })
}

async function formOf(exchange: Exchange): Promise<Map<string, string>> {
  const type = exchange.headers['content-type'] ?? ''
  if (!/^application\/x-www-form-urlencoded(?:;|$)/i.test(type)) {
    throw new OAuthError('invalid_request', 'The body must be application/x-www-form-urlencoded.')
  }
  return parametersOf(((await exchange.body()) as Buffer).toString())
}

/** Errors as a page for a person. */
async function shown(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof OAuthError) return errorPage(error.message)
    throw error
  }
}

/** Errors as OAuth has them, for a program. */
async function told(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return json(400, { error: error.error, error_description: error.message })
  }
}

function json(status: number, body: object): Answer {
  return { status, type: 'application/json; charset=utf-8', body: JSON.stringify(body), headers: { 'Cache-Control': 'no-store' } }
}

function redirected(deps: Deps, { redirect_uri, state, error }: RedirectedError): Answer {
  return redirect(deps, { redirect_uri, state }, { error: error.error, error_description: error.message })
}

function redirect(
  { issuer }: Deps,
  { redirect_uri, state }: Pick<AuthorizationRequest, 'redirect_uri' | 'state'>,
  values: Record<string, string>,
): Answer {
  const url = new URL(redirect_uri)
  // RFC 9207: the client learns whose answer it is
  for (const [name, value] of Object.entries({ ...values, ...(state === undefined ? {} : { state }), iss: issuer() })) {
    url.searchParams.set(name, value)
  }
  return {
    status: 303,
    type: 'text/plain; charset=utf-8',
    body: 'See the program.\n',
    headers: { Location: url.href, 'Cache-Control': 'no-store' },
  }
}
