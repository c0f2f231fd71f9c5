import type { Reader, Transaction } from '../store/database.ts'
import type { LaneLimits } from './in-flight.ts'

/** The result of an attempt: delivered, failed for good, or to be retried. */
export type Outcome = 'done' | 'failed' | 'deferred'

/** Fields that a courier adds to the log line of an attempt: snake_case names, no content and no secret. */
export type AttemptNotes = Record<string, unknown>

/** How an attempt was made, for the log. */
export interface AttemptReport {
  /** How long it took, in milliseconds. */
  ms: number
  notes: AttemptNotes
}

/** A finished attempt that is recorded on disk. */
export interface AttemptResult<Load, Answer = unknown> extends AttemptReport {
  /** Of the delivery. */
  id: string
  load: Load
  attempt: number
  outcome: Outcome | 'interrupted'
  /** What the courier answered, or a message of the queue itself. */
  answer: Answer | string
  /** The time of the next attempt, ISO 8601; undefined when there is none. */
  next: string | undefined
}

/** The reply of a mail server to an attempt, and the server. */
export interface ServerAnswer {
  smtp_code: number | null
  enhanced_code: string | null
  response: string | null
  mx: string | null
  ip: string | null
  tls: string | null
}

/** Delivers one kind of load to its destination. An answer is stored as it is when it is a text, and else as JSON. */
export interface Courier<Load = unknown, Answer = unknown> {
  kind: string
  /** Milliseconds to wait before each attempt. The delivery fails after the last one. */
  schedule: readonly number[]
  /** Random variation of each wait: 0.1 is ± 10 %. */
  jitter: number
  /** Concurrent attempts to one lane; the default limits apply without it. */
  limits?: LaneLimits
  /** Milliseconds after which an attempt counts as slow and its lane shares the capacity of slow lanes; 2 s by default. */
  slowAfter?: number
  /** No attempt begins while the account is stopped. */
  readonly stops?: true
  /** Called in the transaction that records the start of an attempt. */
  begin?(tx: Transaction, load: Load, attempt: number): Promise<void>
  /**
   * Makes an attempt and returns the answer of the destination. Throws PermanentFailure for a permanent failure; after any other error the delivery is
   * retried. Attempts are numbered from 1. When the signal aborts, nothing more may be sent to the destination.
   */
  deliver(load: Load, attempt: number, signal: AbortSignal, noted: AttemptNotes): Promise<Answer>
  /**
   * Called in the transaction that records the result. `answer` is that of `deliver`, of PermanentFailure or TemporaryFailure, or a message of the queue itself.
   * `next` is when the next attempt is due, undefined when there is none.
   */
  settle?(tx: Transaction, load: Load, outcome: Outcome, answer: Answer | string, next?: string): Promise<void>
  /**
   * Called in the transaction that records that an attempt was interrupted, with or without `deliver` having been called. Not called where this process
   * cannot know of the attempt: a former one began it, or another box has recorded its end.
   */
  interrupted?(tx: Transaction, load: Load): Promise<void>
  /** Writes the log line of an attempt. */
  finished?(end: AttemptResult<Load, Answer>): void
  /** Ids and addresses of the delivery for the operator, without its content. Without this method the load is shown. */
  describe?(reader: Reader, load: Load): Promise<Record<string, string>>
  /** A stored answer as readable text. */
  answerText?(answer: string): string
  /** A stored answer of a mail server, parsed. */
  serverAnswer?(answer: string): ServerAnswer
  /**
   * Called in the transaction in which the operator cancels a waiting delivery; `why` is the answer to store. Throws a Fault when it cannot be
   * cancelled. Without this method `settle` is called with the outcome failed.
   */
  cancel?(tx: Transaction, load: Load, why: string): Promise<void>
  /**
   * Called in the transaction in which the operator retries a failed delivery. Throws a Fault when it cannot be retried. Without this method
   * none can be.
   */
  retry?(tx: Transaction, load: Load): Promise<void>
}

/** An answer as it is stored. */
export function answerText(answer: unknown): string {
  return typeof answer === 'string' ? answer : JSON.stringify(answer)
}

/** A stored answer as it was given to `answerText`: the text of a message of the queue is no JSON. */
export function readStoredAnswer(stored: string): unknown {
  try {
    return JSON.parse(stored)
  } catch {
    return stored
  }
}

/** A permanent failure: no further attempt is made. */
export class PermanentFailure extends Error {
  readonly answer: unknown

  constructor(answer: unknown) {
    super(answerText(answer))
    this.name = 'PermanentFailure'
    this.answer = answer
  }
}

/**
 * A temporary failure. `retryAfter` is the shortest wait in milliseconds, `maxDelay` the longest: when the
 * planned wait is longer, the attempt takes no place in the schedule, so the courier must limit how often it sets `maxDelay`.
 */
export class TemporaryFailure extends Error {
  readonly answer: unknown
  readonly retryAfter: number | undefined
  readonly maxDelay: number | undefined

  constructor(answer: unknown, retryAfter?: number, maxDelay?: number) {
    super(answerText(answer))
    this.name = 'TemporaryFailure'
    this.answer = answer
    this.retryAfter = retryAfter
    this.maxDelay = maxDelay
  }
}
