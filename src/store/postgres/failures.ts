import { Fault, storageFull } from '../../core/fault.ts'
import type { Log } from '../../core/log.ts'
import { tooSlow } from '../faults.ts'
import { sqlState, withoutValues } from './connections.ts'

/** Transactions that another one made fail: they can run again (Appendix A of PostgreSQL's documentation, as all codes here). */
const conflicts = ['40001', '40P01']

/** The server is not there for writers: its connections end or are refused, or it is a standby. */
const away = /^(?:08|28|57P0|53300|25006|3D000)/

const diskFull = '53100'
const cancelled = '57014'

/** Converts an error of the driver to a Fault; errors of statements and of others are returned unchanged. */
export function asFault(error: unknown): unknown {
  const state = sqlState(error)
  if (state === diskFull) return storageFull(error)
  if (state === cancelled) return tooSlow('The statement took too long. Try again later.')
  if (state !== undefined && away.test(state)) return unavailable(error)
  return error
}

/** The error of a call of the driver: what the server did not report is a failure of the connection. */
export function driverFault(error: unknown): unknown {
  withoutValues(error)
  return sqlState(error) === undefined ? unavailable(error) : asFault(error)
}

export function isConflict(error: unknown): boolean {
  return conflicts.includes(sqlState(error) ?? '')
}

/** True if the connection cannot be used any more. */
export function isLost(error: unknown): boolean {
  const state = sqlState(error)
  return state === undefined || /^(?:08|57P0)/.test(state)
}

/** True if the server could not be reached, is starting, stopping, or has no connection free: it may be there later. */
export function isAway(error: unknown): boolean {
  return isLost(error) || sqlState(error) === '53300'
}

/** The Fault of a database server that does not answer: nothing was stored. */
export function unavailable(cause: unknown): Fault {
  return new Fault('internal_error', 'The database server is not available. Try again later.', {
    code: 'storage_unavailable',
    retryAfter: 5,
    cause,
  })
}

/** The Fault of a COMMIT without an answer: it may have been stored or not. */
export function unsure(cause: unknown): Fault {
  return new Fault(
    'internal_error',
    'The database server did not confirm: this was stored, or it was not. Look before you try again.',
    {
      code: 'storage_unsure',
      cause,
    },
  )
}

/** The Fault of work that other transactions made fail every time. */
export function busy(cause: unknown): Fault {
  return new Fault('internal_error', 'Too many others write the same at once. Try again later.', {
    code: 'storage_busy',
    retryAfter: 5,
    cause,
  })
}

/** Logs when the server goes away, and when it is back: once each. */
export class Availability {
  readonly #target: string
  readonly #log: Log
  #away = false

  constructor(target: string, log: Log) {
    this.#target = target
    this.#log = log
  }

  /** Notes how a call ended; returns its error. */
  note(error?: unknown): unknown {
    const isAwayNow = error instanceof Fault && error.code === 'storage_unavailable'
    if (isAwayNow && !this.#away) {
      const { message } = error.cause as Error
      this.#log.error({ database: this.#target, problem: message }, 'database not available: nothing is stored until it is')
    }
    if (error === undefined && this.#away) this.#log.warn({ database: this.#target }, 'database available again')
    if (isAwayNow || error === undefined) this.#away = isAwayNow
    return error
  }
}
