import { badId, Fault, invalid } from '../core/fault.ts'

/** Maximum characters of a path; the longest route with its ids has less than 200. */
const longestPath = 1024

/** The path and query of a request target, checked to be well-formed (RFC 3986 2.1). Throws Fault 400. */
export function readTarget(target: string): { path: string; search: string } {
  // the absolute form is for proxies (RFC 9112 3.2.2), and would add a second host
  if (!target.startsWith('/')) throw malformed('The request target must be a path.')
  const mark = target.indexOf('?')
  const path = mark === -1 ? target : target.slice(0, mark)
  const search = mark === -1 ? '' : target.slice(mark + 1)
  if (path.length > longestPath) throw malformed(`The path is longer than ${longestPath} characters.`)
  if (path.includes('%')) decode(path)
  return { path, search }
}

/** The query parameters as texts. Throws Fault 400 for a repeated parameter or invalid UTF-8. */
export function readQuery(search: string): Record<string, string> {
  const query: Record<string, string> = {}
  if (search === '') return query
  decode(search)
  for (const [name, value] of new URLSearchParams(search)) {
    const shown = name.slice(0, 128)
    if (Object.hasOwn(query, name))
      throw invalid(shown, `The parameter ${JSON.stringify(shown)} appears twice.`, 'repeated_parameter')
    if (`${name}${value}`.includes('\0'))
      throw invalid(shown, `${JSON.stringify(shown)} contains the character NUL.`, 'invalid_value')
    Object.defineProperty(query, name, { value, enumerable: true, configurable: true, writable: true })
  }
  return query
}

/** Checks the form of the ids in a path; whether they exist is left to the handler. Throws Fault 404 for one that cannot exist. */
export function checkIds(params: Record<string, string>): void {
  for (const [name, value] of Object.entries(params)) {
    const isId = name === 'id' || name.endsWith('_id')
    if (isId && !/^[a-z]+_[0-9a-z]{26}$/.test(value))
      throw badId(name, 'must be an id: a prefix, _ and 26 lower-case letters and digits')
    if (!isId && (value.length > 512 || hasControl(value))) throw badId(name, 'is too long or has control characters')
  }
}

function hasControl(text: string): boolean {
  // eslint-disable-next-line no-control-regex
  return /[\u0000-\u001f\u007f]/.test(text)
}

function decode(text: string): void {
  try {
    decodeURIComponent(text)
  } catch {
    throw malformed('The URL contains invalid percent-encoding.')
  }
}

function malformed(message: string): Fault {
  return new Fault('invalid_request', message, { code: 'bad_url' })
}
