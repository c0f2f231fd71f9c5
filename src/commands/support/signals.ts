import { Failure } from './refuse.ts'

/** Runs work that cleans up when interrupted by Ctrl-C, a closed terminal or SIGTERM. */
export async function untilSignal<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController()
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const cut = (): void => stop.abort(new Failure('Interrupted. Partial files were removed.', 'cut_short'))
  // not `once`: signal-exit, a dependency of write-file-atomic, ends the process when its listener is the only one left
  for (const name of names) process.on(name, cut)
  try {
    return await work(stop.signal)
  } catch (error) {
    throw stop.signal.aborted ? stop.signal.reason : error
  } finally {
    for (const name of names) process.removeListener(name, cut)
  }
}
