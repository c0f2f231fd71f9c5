import { setTimeout as sleep } from 'node:timers/promises'

/** Milliseconds between two steps, for everybody else. */
const pause = 5

/** Takes one small step after the other until one answers false, or the box stops. */
export async function sweep(step: () => Promise<boolean>, signal?: AbortSignal): Promise<void> {
  for (;;) {
    if (signal?.aborted || !(await step())) return
    await sleep(pause)
  }
}
