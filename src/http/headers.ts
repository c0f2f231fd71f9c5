import type { ServerResponse } from 'node:http'

/** Sets these headers on an answer that has not begun. */
export function setHeaders(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  // what every page may read is nobody's in particular: browsers refuse both at once (Fetch standard, CORS protocol)
  if (headers['Access-Control-Allow-Origin'] === '*') response.removeHeader('Access-Control-Allow-Credentials')
}
