import { setImmediate } from 'node:timers/promises'
import { FairQueue } from './fair-queue.ts'

/** The kinds of work on long texts in their order: what was read is written before more is read, so that little of it is in memory. */
const kinds = { write: new FairQueue<() => Promise<void>>(), read: new FairQueue<() => Promise<void>>() }

let running = false

/** Runs work on long texts when it is the account's turn, one at a time, and returns its result. */
export function longWork<Result>(kind: keyof typeof kinds, account: string, work: () => Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    kinds[kind].push(account, () => Promise.resolve().then(work).then(resolve, reject))
    if (!running) void run()
  })
}

async function run(): Promise<void> {
  running = true
  for (let work = next(); work; work = next()) {
    await work()
    // what was read is passed on meanwhile
    await setImmediate()
  }
  running = false
}

function next(): (() => Promise<void>) | undefined {
  return kinds.write.shift() ?? kinds.read.shift()
}

/** Bytes of a message from which work with it takes turns: two messages of 25 MB at once, each in several copies, took the process beyond 600 MiB. */
const large = 4 * 1024 * 1024

/** True for a message that is worked with alone. */
export function isLarge(bytes: number): boolean {
  return bytes >= large
}

/** Milliseconds for which the time that an account used counts. */
const period = 60_000

interface Waiting {
  account: string
  begin: () => void
}

/** Work that waits, in the order of its arrival. */
const waiting: Waiting[] = []

/** Milliseconds that accounts used since `counted`. */
const used = new Map<string, number>()
let counted = 0
let isWorking = false

/**
 * Runs work with a message of so many bytes: at once if it is small, else when no other large message is worked with, whatever the kind of work. The account
 * that used the least time comes first, so that another's waits for one piece of work at most. Rejects when the signal aborts before. Work must not
 * wait for other large work.
 */
export async function largeWork<Result>(
  account: string,
  bytes: number,
  work: () => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  signal?.throwIfAborted()
  if (!isLarge(bytes)) return work()
  await turn(account, signal)
  const begun = performance.now()
  try {
    return await work()
  } finally {
    count(account, performance.now() - begun)
    isWorking = false
    beginNext()
  }
}

function turn(account: string, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const entry: Waiting = {
      account,
      begin: () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      },
    }
    const leave = (): void => {
      waiting.splice(waiting.indexOf(entry), 1)
      reject(signal!.reason as Error)
    }
    signal?.addEventListener('abort', leave, { once: true })
    waiting.push(entry)
    beginNext()
  })
}

function beginNext(): void {
  if (isWorking || waiting.length === 0) return
  const times = waiting.map(({ account }) => used.get(account) ?? 0)
  const [first] = waiting.splice(times.indexOf(Math.min(...times)), 1)
  isWorking = true
  first!.begin()
}

function count(account: string, time: number): void {
  const now = performance.now()
  if (now - counted > period) {
    used.clear()
    counted = now
  }
  used.set(account, (used.get(account) ?? 0) + time)
}
