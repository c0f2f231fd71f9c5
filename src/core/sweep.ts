import { setTimeout as sleep } from 'node:timers/promises'

/** Milliseconds between two steps, for everybody else. */
const pause = 5

/** Takes one small step after the other until one answers false, or the box stops. */
export async function sweep(step: () => Promise<boolean>, signal?: AbortSignal): Promise<void> {
  while (signal?.aborted !== true && (await step())) await sleep(pause)
}
