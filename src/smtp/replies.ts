import { Fault } from '../core/fault.ts'
import type { DataFlaw } from './data.ts'

/** What an SMTP client is told when we do not take its mail: reply code, enhanced code (RFC 3463) and one line of text. */
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

const trouble = new Refusal(451, '4.3.0', 'Local trouble, try again later')

/** What a client hears of an error: its own words for a `Refusal`, 452 for a full disk, and for all else a fixed 451 that tells nothing. */
export function refusalFor(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (error instanceof Fault && error.code === 'storage_full') return new Refusal(452, '4.3.1', 'No room left, try again later')
  return trouble
}

/** Whether a refusal stands for our own failure, to be logged, and is not an answer. */
export function isTrouble(refusal: Refusal): boolean {
  return refusal === trouble
}

/** A refusal in the form smtp-server passes on. */
export type ReplyError = Error & { responseCode: number }

/** One line of printable ASCII, whatever the refusal says. */
export function replyError(refusal: Refusal): ReplyError {
  const text = refusal.text.replaceAll(/[^ -~]/g, '?').slice(0, 400)
  return Object.assign(new Error(`${refusal.enhanced} ${text}`), { responseCode: refusal.code })
}

/** What we say of a message with this flaw. */
export function refusalOf(flaw: DataFlaw): Refusal {
  if (flaw === 'size') return new Refusal(552, '5.3.4', 'The message is larger than we take')
  if (flaw === 'memory') return new Refusal(452, '4.3.1', 'Too much mail at once, try again later')
  if (flaw === 'line') return new Refusal(554, '5.6.0', 'A line of the message is too long')
  return new Refusal(550, '5.6.0', 'Bare CR, bare LF or NUL in the message')
}

/** Rejects when the work is not done in time (milliseconds); the work itself cannot be called back. */
export function within<Value>(milliseconds: number, work: Promise<Value>): Promise<Value> {
  const { promise, resolve, reject } = Promise.withResolvers<Value>()
  const timer = setTimeout(() => reject(new Error(`No answer in ${milliseconds} ms`)), milliseconds)
  // A box that stops does not wait for work that hangs.
  timer.unref()
  work.then(resolve, reject).finally(() => clearTimeout(timer))
  return promise
}
