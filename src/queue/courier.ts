import type { Reader, Transaction } from '../store/database.ts'
import type { Width } from './in-flight.ts'

/** What became of an attempt: there, never, or not yet. */
export type Outcome = 'done' | 'failed' | 'deferred'

/** What a courier notes of an attempt while it makes it, for the line that the log gets of it: snake_case names, no content and no secret. */
export type Noted = Record<string, unknown>

/** How an attempt was made, for the log. */
export interface AttemptReport {
  /** How long it took, in milliseconds. */
  ms: number
  noted: Noted
}

/** An attempt that is over, and on disk as such. */
export interface Ended<Load> extends AttemptReport {
  /** Of the delivery. */
  id: string
  load: Load
  attempt: number
  outcome: Outcome | 'interrupted'
  answer: string
  /** When the next attempt is due, ISO 8601; undefined when there is none. */
  next: string | undefined
}

/** What a mail server answered to an attempt, and which server that was. */
export interface ServerAnswer {
  smtp_code: number | null
  enhanced_code: string | null
  response: string | null
  mx: string | null
  ip: string | null
  tls: string | null
}

/** Carries one kind of load to its destination. */
export interface Courier<Load = unknown> {
  kind: string
  /** Milliseconds to wait before each attempt; after as many attempts as it is long, the delivery has failed. */
  schedule: readonly number[]
  /** The part of a wait by which chance may make it shorter or longer: 0.1 is ± 10 %. */
  jitter: number
  /** Attempts under way at once to one lane, unless the usual ones fit. */
  width?: Width
  /** Milliseconds above which an attempt is slow, so that its lane has to share what room such lanes have; 2 s unless said. */
  prompt?: number
  /** In the transaction that writes down that an attempt begins. */
  begin?(tx: Transaction, load: Load, attempt: number): Promise<void>
  /**
   * Answers what the far side said. Throws Refused: never; anything else: later. Attempts are numbered from 1. When the signal aborts,
   * the destination must hear nothing more.
   */
  deliver(load: Load, attempt: number, signal: AbortSignal, noted: Noted): Promise<string>
  /** In the transaction that records the attempt; `next` is when the following one is due, undefined when there is none. */
  settle?(tx: Transaction, load: Load, outcome: Outcome, answer: string, next?: string): Promise<void>
  /** Writes the line that the log gets of each attempt. */
  ended?(end: Ended<Load>): void
  /** What it is about, for the operator: ids and addresses, nothing of the content. Without it, what the load says in so many words. */
  about?(reader: Reader, load: Load): Promise<Record<string, string>>
  /** An answer that was kept, in words. */
  words?(answer: string): string
  /** An answer of a mail server that was kept, taken apart. */
  server?(answer: string): ServerAnswer
  /**
   * In the transaction in which the operator ends one that waits; `why` is the answer to keep. Throws the Fault that says why it cannot be
   * ended. Without this, `settle` hears that it has failed.
   */
  drop?(tx: Transaction, load: Load, why: string): Promise<void>
  /**
   * In the transaction in which the operator has one that failed tried once more. Throws the Fault that says why it cannot be. Without this,
   * none can be.
   */
  repeat?(tx: Transaction, load: Load): Promise<void>
}

/** The destination does not want it and never will: no further attempt. The message is the answer that is kept. */
export class Refused extends Error {
  constructor(answer: string) {
    super(answer)
    this.name = 'Refused'
  }
}

/**
 * Not this time. The message is the answer that is kept; `retryAfter` is the least wait in milliseconds, `within` the longest: where the
 * schedule has a longer one, it goes on at the same place after that, so it is for the courier to say this only so often.
 */
export class Later extends Error {
  readonly retryAfter: number | undefined
  readonly within: number | undefined

  constructor(answer: string, retryAfter?: number, within?: number) {
    super(answer)
    this.name = 'Later'
    this.retryAfter = retryAfter
    this.within = within
  }
}
