import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import { type RetryHint, retryDelay } from './backoff.ts'
import { type AttemptNotes, type AttemptReport, type Courier, TemporaryFailure, PermanentFailure } from './courier.ts'
import type { ClaimedDelivery } from './in-flight.ts'
import type { Result } from './queue-store.ts'

interface Deps extends Pick<Basis, 'database' | 'clock' | 'log'> {
  /** 0 to 1, for jitter. */
  random?: () => number
}

/** Milliseconds after which an attempt counts as slow, by default. */
const defaultSlowAfter = 2000

/** The attempts of a delivery of which those that the store failed take no place in its schedule. */
const attemptsOfStore = 20

/** Makes the attempt of a claim by the courier of its kind. Returns its result, whatever the courier throws. */
export async function makeAttempt(
  deps: Deps,
  courier: Courier | undefined,
  claim: ClaimedDelivery,
  signal: AbortSignal,
): Promise<Result> {
  const began = performance.now()
  const notes: AttemptNotes = {}
  const result = await deliver(deps, courier, claim, { signal, notes })
  return { ...result, ms: performance.now() - began, notes }
}

async function deliver(
  { clock, database, random = Math.random, log }: Deps,
  courier: Courier | undefined,
  claim: ClaimedDelivery,
  { signal, notes }: { signal: AbortSignal; notes: AttemptNotes },
): Promise<Omit<Result, keyof AttemptReport>> {
  const begun = clock.now()
  const slow = (): boolean => clock.now() - begun > (courier?.slowAfter ?? defaultSlowAfter)
  const interrupted = (): Omit<Result, keyof AttemptReport> => {
    return { outcome: 'interrupted', answer: 'cut off', next: iso(clock.now()) }
  }
  try {
    // others may have taken it up since it was claimed
    if (signal.aborted || !database.run.alive) return interrupted()
    if (!courier) throw new Error(`No courier for ${claim.kind}.`)
    const answer = await courier.deliver(claim.load, claim.attempt, signal, notes)
    return { outcome: 'done', answer, slow: slow() }
  } catch (error) {
    if (signal.aborted) return interrupted()
    const failure = error instanceof PermanentFailure || error instanceof TemporaryFailure ? error.answer : undefined
    const answer = failure ?? (error instanceof Error ? error.message : String(error))
    if (error instanceof PermanentFailure) return { outcome: 'failed', answer }
    if (!(error instanceof TemporaryFailure)) log.error({ err: error, kind: claim.kind, lane: claim.lane }, 'courier failed')
    const hint = retryHintOf(error, claim.attempt)
    const wait = courier && retryDelay(claim.tries, courier, random(), hint)
    if (wait === undefined) return { outcome: 'failed', answer }
    return { outcome: 'deferred', answer, next: iso(clock.now() + wait), slow: slow(), early: wait === hint.maxDelay }
  }
}

function retryHintOf(error: unknown, attempt: number): RetryHint {
  if (error instanceof TemporaryFailure) return { minDelay: error.retryAfter, maxDelay: error.maxDelay }
  // the destination was not asked
  const isOurs = error instanceof Fault && error.code?.startsWith('storage_') === true && attempt <= attemptsOfStore
  return isOurs ? { maxDelay: (error.retryAfter ?? 5) * 1000 } : {}
}
