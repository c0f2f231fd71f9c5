import { Fault } from '../core/fault.ts'
import type { DataFlaw } from './data.ts'

/** A negative SMTP reply: reply code, enhanced code (RFC 3463) and one line of text. */
export class Refusal extends Error {
  readonly code: number
  readonly enhanced: string
  readonly text: string

  constructor(code: number, enhanced: string, text: string) {
    super(`${code} ${enhanced} ${text}`)
    this.name = 'Refusal'
    this.code = code
    this.enhanced = enhanced
    this.text = text
  }
}

const localError = new Refusal(451, '4.3.0', 'Local error, try again later')

/** The reply for an error: a `Refusal` as it is, 452 for a full disk, and for anything else a fixed 451 without details. */
export function refusalFor(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (error instanceof Fault && error.code === 'storage_full')
    return new Refusal(452, '4.3.1', 'Insufficient system storage, try again later')
  return localError
}

/** True if a refusal stands for an internal error, which is logged as such. */
export function isLocalError(refusal: Refusal): boolean {
  return refusal === localError
}

/** A refusal in the form that smtp-server expects. */
export type ReplyError = Error & { responseCode: number }

/** Reduces the text to one line of printable ASCII. */
export function replyError(refusal: Refusal): ReplyError {
  const text = refusal.text.replaceAll(/[^ -~]/g, '?').slice(0, 400)
  return Object.assign(new Error(`${refusal.enhanced} ${text}`), { responseCode: refusal.code })
}

export function refusalForFlaw(flaw: DataFlaw): Refusal {
  if (flaw === 'size') return new Refusal(552, '5.3.4', 'The message is too large')
  if (flaw === 'memory') return new Refusal(452, '4.3.1', 'Too many messages in progress, try again later')
  if (flaw === 'line') return new Refusal(554, '5.6.0', 'A line of the message is too long')
  return new Refusal(550, '5.6.0', 'Bare CR, bare LF or NUL in the message')
}

/** Rejects after this timeout in milliseconds. The work itself is not cancelled. */
export function withTimeout<Value>(milliseconds: number, work: Promise<Value>): Promise<Value> {
  const { promise, resolve, reject } = Promise.withResolvers<Value>()
  const timer = setTimeout(() => reject(new Error(`No answer within ${milliseconds} ms`)), milliseconds)
  // Work that hangs does not delay a shutdown.
  timer.unref()
  work.then(resolve, reject).finally(() => clearTimeout(timer))
  return promise
}
