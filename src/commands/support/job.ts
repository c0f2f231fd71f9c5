import { setTimeout as sleep } from 'node:timers/promises'
import type { Job } from '../../jobs/model.ts'
import type { RunningBox } from './box.ts'
import { Failure } from './refuse.ts'

/** Waits for the end of a job and returns its result; cancels it on the signal. Shows progress in a terminal. */
export async function resultOf(box: RunningBox, begun: Job, signal: AbortSignal): Promise<Record<string, unknown>> {
  let job = begun
  while (job.status === 'running') {
    if (signal.aborted) await box.call('POST', `/v1/jobs/${job.id}/cancel`)
    signal.throwIfAborted()
    await sleep(200, undefined, { signal }).catch(() => undefined)
    job = await box.call<Job>('GET', `/v1/jobs/${job.id}`)
    tell(job)
  }
  if (process.stderr.isTTY) process.stderr.write('\n')
  if (job.status === 'done') return job.result ?? {}
  throw new Failure(job.error?.message ?? `The ${job.kind} was ${job.status}.`, `${job.kind}_failed`)
}

function tell({ progress: { done, total, unit } }: Job): void {
  if (!process.stderr.isTTY) return
  const share = total ? ` (${Math.floor((100 * done) / total)} %)` : ''
  process.stderr.write(`\r${done}${total === null ? '' : ` of ${total}`} ${unit}${share}   `)
}

/** Runs work that cleans up when interrupted by Ctrl-C, a closed terminal or SIGTERM. */
export async function untilSignal<T>(
  work: (signal: AbortSignal) => Promise<T>,
  message = 'Interrupted. Partial files were removed.',
): Promise<T> {
  const stop = new AbortController()
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const cut = (): void => stop.abort(new Failure(message, 'cut_short'))
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
