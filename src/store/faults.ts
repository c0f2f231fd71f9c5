import { Fault } from '../core/fault.ts'

/** The store is closing or closed. */
export function stopping(): Fault {
  return new Fault('internal_error', 'The box is stopping.', { code: 'stopping', retryAfter: 5 })
}

/** The Fault of a read that exceeded its deadline. */
export function tooSlow(message = 'The search took too long. Narrow it down, or try again later.'): Fault {
  return new Fault('internal_error', message, { code: 'too_slow', retryAfter: 5 })
}

/** The Fault of a read that waited past its deadline for others of its own account. */
export function tooManyReads(): Fault {
  const message = 'The search waited too long for others of this account. Make fewer at once, and try again later.'
  return new Fault('rate_limited', message, { code: 'too_many_waiting', retryAfter: 5 })
}

/** The error of work inside a transaction that did not settle in time. */
export function stuck(timeout: number): Error {
  return new Error(`Work inside a transaction did not settle within ${timeout} ms: only database calls may be awaited there.`)
}

/** The error of a transaction inside the work of another. */
export function nested(): Error {
  return new Error('transaction() was called inside the work of another: it would wait for itself.')
}
