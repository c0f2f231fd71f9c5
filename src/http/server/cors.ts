import type { IncomingMessage, ServerResponse } from 'node:http'

const methods = 'GET, HEAD, POST, PATCH, DELETE'
/** The last three are of the Model Context Protocol, whose clients send them to `/mcp`. */
const allowed = 'Authorization, Content-Type, Idempotency-Key, MCP-Protocol-Version, Mcp-Method, Mcp-Name'
/** `WWW-Authenticate` says where a client of `/mcp` gets tokens, `Date` what time it is for the box. */
const exposed =
  'Date, Location, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id, Idempotency-Replayed, Content-Disposition, Content-Range, WWW-Authenticate'

/** The headers that let a page of a listed origin read an answer; the list is exact, no wildcard, `null` is never on it. */
export function corsHeaders(request: IncomingMessage, origins: readonly string[]): Record<string, string> {
  if (origins.length === 0) return {}
  const { origin } = request.headers
  if (!isListed(origin, origins)) return { Vary: 'Origin' }
  return {
    Vary: 'Origin',
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Allow-Credentials': 'true',
    'Access-Control-Expose-Headers': exposed,
  }
}

/** Lets every site read the response, without credentials. */
export function allowAnyOrigin(response: ServerResponse): void {
  response.removeHeader('Access-Control-Allow-Credentials')
  response.removeHeader('Vary')
  response.setHeader('Access-Control-Allow-Origin', '*')
  response.setHeader('Access-Control-Expose-Headers', `ETag, ${exposed}`)
  response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin')
}

/** The headers of a CORS preflight response to a listed origin (Fetch standard); undefined for any other call. */
export function preflight(request: IncomingMessage, origins: readonly string[]): Record<string, string> | undefined {
  const { origin, 'access-control-request-method': wanted } = request.headers
  if (request.method !== 'OPTIONS' || wanted === undefined || !isListed(origin, origins)) return undefined
  return {
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': allowed,
    'Access-Control-Max-Age': '600',
  }
}

function isListed(origin: string | undefined, origins: readonly string[]): origin is string {
  return origin !== undefined && origin !== 'null' && origins.includes(origin)
}
