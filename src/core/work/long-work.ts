import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate } from 'node:timers/promises'
import { relieve } from '../memory.ts'
import { FairQueue } from './fair-queue.ts'
import { FairTurns } from './fair-turns.ts'

/** The kinds of work on long texts in their order: what was read is written before more is read, so that little of it is in memory. */
const kinds = { write: new FairQueue<() => Promise<void>>(), read: new FairQueue<() => Promise<void>>() }

let running = false

/** A call; `cut` says why nobody waits for its result any more. */
interface Asking {
  readonly cut: string | undefined
}

const asking = new AsyncLocalStorage<Asking>()

/** Runs work that does nothing but make the result of a call: long work of it is not begun once the call is cut. */
export function askedBy<Result>(call: Asking, work: () => Result): Result {
  return asking.run(call, work)
}

/** Runs work on long texts when it is the account's turn, one at a time, and returns its result. Rejects when the call that asks for it is cut before. */
export function longWork<Result>(kind: keyof typeof kinds, account: string, work: () => Promise<Result>): Promise<Result> {
  const call = asking.getStore()
  return new Promise((resolve, reject) => {
    kinds[kind].push(account, async () => {
      if (call?.cut === undefined) await Promise.resolve().then(work).then(resolve, reject)
      else reject(new Error(`Nobody waits for this work any more: ${call.cut}`))
    })
    if (!running) void run()
  })
}

async function run(): Promise<void> {
  running = true
  for (let work = next(); work; work = next()) {
    await work()
    // what was read is passed on meanwhile
    await setImmediate()
    relieve()
  }
  running = false
}

function next(): (() => Promise<void>) | undefined {
  return kinds.write.shift() ?? kinds.read.shift()
}

/** Bytes of a message from which work with it takes turns: two messages of 25 MB at once, each in several copies, took the process beyond 600 MiB. */
const large = 2 * 1024 * 1024

/** True for a message that is worked with alone. */
export function isLarge(bytes: number): boolean {
  return bytes >= large
}

const turns = new FairTurns()

/**
 * Runs work with a message of so many bytes: at once if it is small, else when no other large message is worked with, whatever the kind of work, in
 * the turn of its account. Rejects when the signal aborts before. Work must not wait for other large work.
 */
export async function largeWork<Result>(
  account: string,
  bytes: number,
  work: () => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  signal?.throwIfAborted()
  if (!isLarge(bytes)) return work()
  try {
    return await turns.run(account, work, signal)
  } finally {
    relieve()
  }
}
