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
let running = false

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
    running = false
    next()
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
    next()
  })
}

function next(): void {
  if (running || waiting.length === 0) return
  const times = waiting.map(({ account }) => used.get(account) ?? 0)
  const [first] = waiting.splice(times.indexOf(Math.min(...times)), 1)
  running = true
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
