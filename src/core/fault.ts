/** The seven error types of the API. Each protocol maps them once: to an HTTP status, to an SMTP reply. */
export type FaultType =
  | 'invalid_request'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'rate_limited'
  | 'internal_error'

interface FaultDetail {
  /** A stable code, e.g. `body_too_large`. */
  code?: string
  /** The path of the wrong parameter: `metadata.colour`. */
  param?: string
  /** Seconds until a retry makes sense. */
  retryAfter?: number
  cause?: unknown
}

/** Maximum characters of `param` and of the message, which may repeat input of the caller. */
const longest = { param: 512, message: 4096 }

/** Maximum characters of one key in the path of a parameter. */
const longestStep = 128

/** An error that a caller sees. Any other thrown error is a bug, which a caller sees as `internal_error`. */
export class Fault extends Error {
  readonly type: FaultType
  readonly code: string | undefined
  readonly param: string | undefined
  readonly retryAfter: number | undefined

  constructor(type: FaultType, message: string, detail: FaultDetail = {}) {
    const { stackTraceLimit } = Error
    // what a caller did wrong needs no trace, which would cost more than most refusals
    if (type !== 'internal_error') Error.stackTraceLimit = 0
    super(shortened(message, longest.message), detail.cause === undefined ? undefined : { cause: detail.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.name = 'Fault'
    this.type = type
    this.code = detail.code
    this.param = detail.param === undefined ? undefined : shortened(detail.param, longest.param)
    this.retryAfter = detail.retryAfter
  }
}

/** The path of a parameter, such as `metadata.colour`; long keys are truncated. */
export function placeOf(path: readonly PropertyKey[]): string {
  return path.map((step) => shortened(String(step), longestStep)).join('.')
}

function shortened(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1).toWellFormed()}…`
}

/** 404: the same for what does not exist and for what another account owns. */
export function notFound(what: string): Fault {
  return new Fault('not_found', `No such ${what}.`)
}

/** 404: this parameter of the path has not the form of what it names. */
export function badId(param: string, what: string): Fault {
  return new Fault('not_found', `${param} in the path ${what}.`, { param, code: 'bad_id' })
}

/** 400: a parameter is missing or wrong; the message states what is expected. */
export function invalid(param: string, message: string, code?: string): Fault {
  return new Fault('invalid_request', message, code === undefined ? { param } : { param, code })
}

/** 409: the resource exists already, or is in a state that does not allow the call. */
export function conflict(message: string, detail: FaultDetail = {}): Fault {
  return new Fault('conflict', message, detail)
}

/** 500 with `Retry-After`: the disk is full; nothing was stored in part (SMTP: 452 4.3.1). */
export function storageFull(
  cause?: unknown,
  message = 'The box has too little free disk space to store this. Try again later.',
): Fault {
  return new Fault('internal_error', message, {
    code: 'storage_full',
    retryAfter: 60,
    cause,
  })
}

/** 500 with `Retry-After`: this run of the box takes no more work. */
export function stopping(): Fault {
  return new Fault('internal_error', 'The box is stopping. Try again later.', { retryAfter: 10 })
}

/** What the work returns; undefined when it throws. */
export function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/** Another process has locked the data directory. */
export class InUse extends Error {}

/** The database server is not there, or takes no writes now: a later start may succeed. */
export class DatabaseAway extends Error {}
