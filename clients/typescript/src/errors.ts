/** What is known of an error beside its message and code. */
interface Problem {
  /** `invalid_request`, `unauthorized`, …: that of the API; undefined for errors that are not of the box. */
  type?: string | undefined
  /** The parameter or field that was wrong: `metadata.colour`. */
  param?: string | undefined
  status?: number
  /** Names the call in the log of the box. */
  request_id?: string
  /** Seconds after which the box wants to be asked again. */
  retry_after?: number
  cause?: unknown
}

/** Every error of this library. `code` is a stable word; the message says what was wrong and what would be right. */
export class PillarboxError extends Error implements Problem {
  readonly code: string
  declare readonly type?: string | undefined
  declare readonly param?: string | undefined
  declare readonly status?: number
  declare readonly request_id?: string
  declare readonly retry_after?: number

  constructor(message: string, code: string, about: Problem = {}) {
    super(message)
    this.name = new.target.name
    this.code = code
    Object.assign(this, about)
  }
}

/** 400: a parameter is missing or invalid; `param` names it. */
export class InvalidRequestError extends PillarboxError {}
/** 401: no key, or one that is not valid. */
export class UnauthorizedError extends PillarboxError {}
/** 403: the key lacks the scope, or a rule or limit does not allow the call. */
export class ForbiddenError extends PillarboxError {}
/** 404: no such object. */
export class NotFoundError extends PillarboxError {}
/** 409: the object exists already, or its state does not allow the call. */
export class ConflictError extends PillarboxError {}
/** 429: too many calls, also after all retries; `retry_after` says when to try again. */
export class RateLimitedError extends PillarboxError {}
/** 5xx: an error of the box, or of a proxy before it. */
export class ServerError extends PillarboxError {}
/** There was no answer: no connection, or it broke. `cause` says why. */
export class ConnectionError extends PillarboxError {}
/** There was no answer, or no message, in time. */
export class TimeoutError extends PillarboxError {}

const classes: Record<number, typeof PillarboxError> = {
  400: InvalidRequestError,
  401: UnauthorizedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  429: RateLimitedError,
}

/** True for what another attempt may not meet. */
export function isPassing(error: unknown): error is PillarboxError {
  if (!(error instanceof PillarboxError)) return false
  const { status = 0 } = error
  return error instanceof ConnectionError || error instanceof TimeoutError || status === 429 || status >= 500
}

/** The error that a response states; one that is not of the box (a proxy's page, a redirect) has a code such as `http_502`. */
export function errorFrom({ status, headers }: Response, text: string): PillarboxError {
  const Class = status >= 500 ? ServerError : (classes[status] ?? PillarboxError)
  const about: Problem = { status }
  const [id, pause] = [headers.get('X-Request-Id'), secondsOf(headers.get('Retry-After'))]
  if (id !== null) about.request_id = id
  if (pause !== undefined) about.retry_after = pause
  try {
    const { message, code, ...more } = (JSON.parse(text) as { error: Problem & { message: unknown; code: unknown } }).error
    if (typeof message === 'string' && typeof code === 'string') return new Class(message, code, { ...more, ...about })
  } catch {
    // neither JSON nor an object of one
  }
  return new Class(`Status ${status}, not from a Pillarbox. Check baseUrl and proxies.`, `http_${status}`, about)
}

/** RFC 9110 10.2.3: seconds or a date. */
function secondsOf(text: string | null): number | undefined {
  if (text === null) return undefined
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}
