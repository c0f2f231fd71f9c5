/** An error of OAuth 2.1, for a client: an `error` code (RFC 6749 5.2, RFC 8707) and a sentence for its developer. */
export class OAuthError extends Error {
  readonly error: string

  constructor(error: string, message: string) {
    super(message)
    this.name = 'OAuthError'
    this.error = error
  }
}

/** The parameters of a form or query. Throws OAuthError for one that is repeated or too long (RFC 6749 3.1). */
export function parametersOf(text: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (found.has(name) && name !== 'scopes')
      throw new OAuthError('invalid_request', `The parameter ${name.slice(0, 64)} appears twice.`)
    if (value.length > 4096) throw new OAuthError('invalid_request', `The parameter ${name.slice(0, 64)} is too long.`)
    found.set(name, found.has(name) ? `${found.get(name)} ${value}` : value)
  }
  return found
}

export function required(parameters: ReadonlyMap<string, string>, name: string): string {
  const value = parameters.get(name)
  if (value === undefined || value === '') throw new OAuthError('invalid_request', `The parameter ${name} is required.`)
  return value
}
