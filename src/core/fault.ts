/** What a caller may meet: the seven error types of the API. Each protocol edge owns one lookup from it (HTTP status, SMTP reply). */
export type FaultType =
  | 'invalid_request'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'rate_limited'
  | 'internal_error'

export interface FaultDetail {
  /** A stable machine word, e.g. `body_too_large`. */
  code?: string
  /** The offending parameter, as the caller spelled its place: `metadata.colour`. */
  param?: string
  /** Seconds until another try makes sense. */
  retryAfter?: number
  cause?: unknown
}

/** Characters of what a caller is told: much of it may be the caller's own words, which are not repeated at any length. */
const longest = { param: 512, message: 4096 }

/** Characters of one step of a place: a key that the caller chose. */
const longestStep = 128

/** Anything thrown that is not a Fault is a bug and reads as `internal_error`. */
export class Fault extends Error {
  readonly type: FaultType
  readonly code: string | undefined
  readonly param: string | undefined
  readonly retryAfter: number | undefined

  constructor(type: FaultType, message: string, detail: FaultDetail = {}) {
    super(shortened(message, longest.message), detail.cause === undefined ? undefined : { cause: detail.cause })
    this.name = 'Fault'
    this.type = type
    this.code = detail.code
    this.param = detail.param === undefined ? undefined : shortened(detail.param, longest.param)
    this.retryAfter = detail.retryAfter
  }
}

/** The place of a parameter, such as `metadata.colour`; long keys are cut. */
export function placeOf(path: readonly PropertyKey[]): string {
  return path.map((step) => shortened(String(step), longestStep)).join('.')
}

function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`
}

/** 404: what does not exist, and what another account owns, read alike. */
export function notFound(what: string): Fault {
  return new Fault('not_found', `No such ${what}.`)
}

/** 400: a parameter is missing or wrong; the message says what would be right. */
export function invalid(param: string, message: string, code?: string): Fault {
  return new Fault('invalid_request', message, code === undefined ? { param } : { param, code })
}

/** 409: the resource exists already, or is in a state that does not allow the call. */
export function conflict(message: string, detail: FaultDetail = {}): Fault {
  return new Fault('conflict', message, detail)
}

/** 500 with `Retry-After`: the disk is full; nothing was half kept (SMTP says 452 4.3.1). */
export function storageFull(cause?: unknown, message = 'The box has no room left to store this. Try again later.'): Fault {
  return new Fault('internal_error', message, {
    code: 'storage_full',
    retryAfter: 60,
    cause,
  })
}

/** Another process has the data directory. */
export class InUse extends Error {}
