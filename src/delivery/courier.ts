import type { Transaction } from '../store/database.ts'
import type { Width } from './flights.ts'

/** What became of an attempt: there, never, or not yet. */
export type Outcome = 'done' | 'failed' | 'deferred'

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
  deliver(load: Load, attempt: number, signal: AbortSignal): Promise<string>
  /** In the transaction that records the attempt; `next` is when the following one is due, undefined when there is none. */
  settle?(tx: Transaction, load: Load, outcome: Outcome, answer: string, next?: string): Promise<void>
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
