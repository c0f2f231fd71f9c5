import { Fault, type FaultType } from '../core/fault.ts'

const statuses: Record<FaultType, number> = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  rate_limited: 429,
  internal_error: 500,
}

/** The fields of a fault that a caller sees; the same in responses and in stored ones. */
export interface Problem {
  type: FaultType
  message: string
  param?: string
  status: number
  code?: string
}

/** The problem of an error. A bug becomes `internal_error` with a fixed message, so that no details leak. */
export function problemOf(error: unknown): Problem {
  if (!(error instanceof Fault)) {
    return {
      type: 'internal_error',
      message: 'Internal error. If it happens again, report the request_id.',
      status: 500,
      code: 'internal_error',
    }
  }
  return {
    type: error.type,
    message: error.message,
    ...(error.param === undefined ? {} : { param: error.param }),
    status: statuses[error.type],
    code: error.code ?? error.type,
  }
}

/** The body of an error response. */
export function errorBody(problem: Problem, requestId: string): string {
  return JSON.stringify({ error: { ...problem, request_id: requestId } })
}

/** The headers of an error: Retry-After, and WWW-Authenticate (RFC 9110 11.6.1). */
export function problemHeaders(error: unknown, status: number, challenge?: () => string): Record<string, string> {
  const headers: Record<string, string> = {}
  if (error instanceof Fault && error.retryAfter !== undefined) headers['Retry-After'] = String(Math.ceil(error.retryAfter))
  if (status === 401) headers['WWW-Authenticate'] = challenge?.() ?? 'Bearer realm="pillarbox"'
  return headers
}
