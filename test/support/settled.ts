import { setImmediate as nextTurn } from 'node:timers/promises'

/** Something that says when what it does now is done; undefined when it does nothing. */
interface Working {
  readonly work: Promise<unknown> | undefined
}

/** Resolves when these have nothing left to do. */
export async function settled(...parts: Working[]): Promise<void> {
  for (;;) {
    // what follows a commit begins in the next turn of the event loop
    await nextTurn()
    const work = parts.flatMap((part) => part.work ?? [])
    if (work.length === 0) return
    await Promise.all(work)
  }
}
