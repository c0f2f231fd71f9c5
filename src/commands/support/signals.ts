import { Failure } from './refuse.ts'

/** Does work that cleans up after itself when it is cut short: by Ctrl-C, a closed terminal or SIGTERM. */
export async function untilSignal<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController()
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const cut = (): void => stop.abort(new Failure('It was cut short. Nothing was left behind.', 'cut_short'))
  // not `once`: signal-exit, which write-file-atomic brings, ends the process when it finds itself the only listener left
  for (const name of names) process.on(name, cut)
  try {
    return await work(stop.signal)
  } catch (error) {
    throw stop.signal.aborted ? stop.signal.reason : error
  } finally {
    for (const name of names) process.removeListener(name, cut)
  }
}
