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
