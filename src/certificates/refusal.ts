import { day } from '../core/clock.ts'
import { AuthorityError, type CaAnswer } from './transport.ts'

/** A problem document (RFC 7807), as RFC 8555 6.7 has it. */
interface Problem {
  type?: unknown
  detail?: unknown
  subproblems?: unknown
}

/** The longest accepted Retry-After of a CA, in milliseconds. */
const longestPause = 7 * day

/** The refusal in a CA's answer; undefined for a success, or when the request must be repeated with another nonce (RFC 8555 6.5). */
export function refusalIn({ status, headers, data }: CaAnswer): AuthorityError | undefined {
  if (status > 0 && status < 400) return undefined
  const problem: Problem = typeof data === 'object' && data !== null ? data : {}
  if (problem.type === 'urn:ietf:params:acme:error:badNonce') return undefined
  const said = [problem, ...(Array.isArray(problem.subproblems) ? (problem.subproblems as unknown[]) : [])]
    .map(describeProblem)
    .filter(Boolean)
  const words = said.length > 0 ? `CA error: ${said.join('; ')}` : `The CA answered ${status}`
  const kind = typeof problem.type === 'string' ? ` (${problem.type.replace(/^urn:ietf:params:acme:error:/, '')})` : ''
  return new AuthorityError(`${words}${kind}`.slice(0, 1000), pauseOf(headers['retry-after']))
}

/** `The key is bad` or `mx.example.com: the policy forbids it`. */
function describeProblem(problem: unknown): string {
  if (typeof problem !== 'object' || problem === null || !('detail' in problem) || typeof problem.detail !== 'string') return ''
  const identifier = 'identifier' in problem ? (problem.identifier as { value?: unknown } | null)?.value : undefined
  return typeof identifier === 'string' ? `${identifier}: ${problem.detail}` : problem.detail
}

/** Seconds or a date (RFC 9110 10.2.3), in milliseconds from now. */
function pauseOf(said: string | string[] | undefined): number {
  if (typeof said !== 'string') return 0
  const pause = /^\d{1,9}$/.test(said) ? Number(said) * 1000 : Date.parse(said) - Date.now()
  return pause > 0 ? Math.min(pause, longestPause) : 0
}
